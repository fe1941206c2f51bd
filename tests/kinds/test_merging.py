"""Gathered GETs and SETs become batches, with the same results as one by one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from keywright import Call, Context, Id, Keyspace, Set, Value, atomic, expires_in, gather_list, preview
from keywright.errors import StoredDataError, WrongTypeError
from keywright.keyspace.composition import MERGED_FROM
from keywright.testing.runs import Raw, Run

space = Keyspace("shelf", "Values that are read and written by the hundred.")
MANY = 2 * MERGED_FROM


class Title(Value[str], key="title:<book>", space=space):
    """The title of a book."""

    book: Id


class Pages(Value[int], key="pages:<book>", space=space):
    """How many pages it has."""

    book: Id


class Loan(Value[str], key="loan:<book>", space=space, expiry=expires_in(timedelta(days=14))):
    """Who has it."""

    book: Id


class Visit(
    Value[str], key="visit:<book>", space=space, expiry=expires_in(timedelta(days=1), since="last use")
):
    """Who looked at it last."""

    book: Id


class Readers(Set[str], key="title:<book>:readers", space=space):
    """Who read it."""

    book: Id


BOOKS = [f"b{number}" for number in range(MANY)]


def verbs(call: Call[object], context: Context | None = None) -> set[bytes]:
    wires = preview(call, context)
    return {wire.arguments[0] for wire in wires}


def test_gathered_gets_are_sent_as_mget() -> None:
    assert verbs(gather_list(Title(book).get() for book in BOOKS)) == {b"MGET"}


def test_gathered_sets_are_sent_as_mset() -> None:
    assert verbs(gather_list(Title(book).set("x") for book in BOOKS)) == {b"MSET"}


def test_a_few_calls_stay_as_they_are_written() -> None:
    assert verbs(gather_list(Title(book).get() for book in BOOKS[:3])) == {b"GET"}


def test_on_a_cluster_every_name_has_its_own_command() -> None:
    sharded = Context(sharded=True)
    assert verbs(gather_list(Title(book).get() for book in BOOKS), sharded) == {b"GET"}
    assert verbs(gather_list(Title(book).set("x") for book in BOOKS), sharded) == {b"SET"}


def test_a_value_that_expires_is_set_by_a_command_of_its_own() -> None:
    assert verbs(gather_list(Loan(book).set("ada") for book in BOOKS)) == {b"SET"}


def test_a_sliding_expiry_is_renewed_by_each_read() -> None:
    assert verbs(gather_list(Visit(book).get() for book in BOOKS)) == {b"GETEX"}


def test_conditions_are_kept() -> None:
    assert verbs(gather_list(Title(book).set("x", when="absent") for book in BOOKS)) == {b"SET"}


def test_a_transaction_sends_its_commands_as_written() -> None:
    (wire,) = preview(atomic(gather_list(Title(book).get() for book in BOOKS), spread=True))
    assert {arguments[0] for arguments in wire.arguments} == {b"GET"}


def test_values_come_back_in_order_and_missing_ones_are_none(run: Run) -> None:
    assert run(gather_list(Title(book).set(f"of {book}") for book in BOOKS[::2])) == [True] * MERGED_FROM
    found = run(gather_list(Title(book).get() for book in BOOKS))
    assert found == [f"of {book}" if number % 2 == 0 else None for number, book in enumerate(BOOKS)]


def test_the_last_of_two_writes_to_one_key_stays(run: Run) -> None:
    run(gather_list(Title("same").set(book) for book in BOOKS))
    assert run(Title("same").get()) == BOOKS[-1]


def test_two_kinds_of_keys_are_decoded_each_by_its_own_codec(run: Run) -> None:
    run(gather_list([*(Title(book).set(book) for book in BOOKS), *(Pages(book).set(7) for book in BOOKS)]))
    found = run(gather_list([*(Title(book).get() for book in BOOKS), *(Pages(book).get() for book in BOOKS)]))
    assert found == [*BOOKS, *([7] * MANY)]


def test_a_key_of_another_type_is_refused_as_by_get(run: Run, raw: Raw) -> None:
    run(gather_list(Title(book).set("x") for book in BOOKS))
    raw(b"DEL", b"title:b5")
    raw(b"SADD", b"title:b5", b"not a string")
    with pytest.raises(WrongTypeError, match="title:b5"):
        run(gather_list(Title(book).get() for book in BOOKS))


def test_a_wrong_type_is_found_among_missing_keys_too(run: Run, raw: Raw) -> None:
    raw(b"SADD", b"title:b5", b"not a string")
    with pytest.raises(WrongTypeError, match="title:b5"):
        run(gather_list(Title(book).get() for book in BOOKS))


def test_an_undecodable_value_is_named(run: Run, raw: Raw) -> None:
    run(gather_list(Pages(book).set(1) for book in BOOKS))
    raw(b"SET", b"pages:b9", b"many")
    with pytest.raises(StoredDataError, match="pages:b9"):
        run(gather_list(Pages(book).get() for book in BOOKS))
