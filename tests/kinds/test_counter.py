"""Counter: a number that the server adds to."""

from __future__ import annotations

import pytest

from keywright import Counter, Id, Keyspace, preview
from keywright.errors import ServerRefusedError, StoredDataError, ValueRefusedError, WrongTypeError
from keywright.testing.runs import Raw, Run

space = Keyspace("turnstiles", "What a museum counts.")

ABOVE_DOUBLES = 2**53 + 1


class Visitors(Counter, key="visitors:<gate>", space=space):
    """Visitors through a gate."""

    gate: Id


def test_a_missing_counter_reads_as_zero(run: Run, raw: Raw) -> None:
    assert run(Visitors("north").get()) == 0
    assert raw("EXISTS", "visitors:north") == 0


def test_add_returns_the_new_number(run: Run, raw: Raw) -> None:
    assert run(Visitors("north").add()) == 1
    assert run(Visitors("north").add(10)) == 11
    assert run(Visitors("north").add(-1)) == 10
    assert raw("GET", "visitors:north") == b"10"


def test_set_writes_the_number(run: Run, raw: Raw) -> None:
    run(Visitors("north").set(ABOVE_DOUBLES))
    assert raw("GET", "visitors:north") == b"9007199254740993"
    assert run(Visitors("north").get()) == ABOVE_DOUBLES


def test_adding_stays_exact_above_two_to_the_53(run: Run) -> None:
    run(Visitors("north").set(ABOVE_DOUBLES))
    assert run(Visitors("north").add(1)) == ABOVE_DOUBLES + 1


def test_take_returns_the_number_and_leaves_no_key(run: Run, raw: Raw) -> None:
    run(Visitors("north").set(7))
    assert run(Visitors("north").take()) == 7
    assert run(Visitors("north").take()) == 0
    assert raw("EXISTS", "visitors:north") == 0


def test_swap_returns_the_number_before(run: Run, raw: Raw) -> None:
    assert run(Visitors("north").swap(5)) == 0
    assert run(Visitors("north").swap(0)) == 5
    assert raw("GET", "visitors:north") == b"0"


def test_get_many_reads_zero_for_the_missing(run: Run) -> None:
    run(Visitors("north").set(3))
    assert run(Visitors.get_many(["south", "north"])) == [0, 3]


def test_get_many_without_ids_sends_nothing(run: Run) -> None:
    assert preview(Visitors.get_many([])) == []
    assert run(Visitors.get_many([])) == []


def test_adding_beyond_64_bits_is_refused_and_changes_nothing(run: Run, raw: Raw) -> None:
    run(Visitors("north").set(2**63 - 1))
    with pytest.raises(ServerRefusedError) as refused:
        run(Visitors("north").add(1))
    assert refused.value.command == "INCRBY"
    assert refused.value.key == b"visitors:north"
    assert raw("GET", "visitors:north") == b"9223372036854775807"


def test_a_number_beyond_64_bits_is_not_sent() -> None:
    with pytest.raises(ValueRefusedError):
        Visitors("north").add(2**63)


def test_a_stored_text_is_not_a_number(run: Run, raw: Raw) -> None:
    raw("SET", "visitors:north", "many")
    with pytest.raises(StoredDataError) as wrong:
        run(Visitors("north").get())
    assert wrong.value.key == b"visitors:north"
    assert wrong.value.template == "visitors:<gate>"
    assert wrong.value.expected == "a signed 64-bit integer"
    assert wrong.value.found == "b'many'"


def test_a_list_under_the_name_is_named(run: Run, raw: Raw) -> None:
    raw("RPUSH", "visitors:north", "x")
    with pytest.raises(WrongTypeError) as wrong:
        run(Visitors("north").add())
    assert wrong.value.expected == "a counter (string)"
