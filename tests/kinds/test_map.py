"""Map: ids to values in one hash."""

from __future__ import annotations

from datetime import timedelta

import pytest

from keywright import Id, Keyspace, Map, SnowflakeId, preview
from keywright.errors import CapabilityError, StoredDataError, ValueRefusedError, WrongTypeError
from keywright.testing.runs import Raw, Run

space = Keyspace("seats", "Who sits where in a theatre.")

ABOVE_DOUBLES = 2**53 + 1


class Seats(Map[SnowflakeId, str], key="seats:<evening>", space=space):
    """The seat of each guest."""

    evening: Id


class Drinks(Map[Id, int], key="drinks:<evening>", space=space):
    """How many of each drink were sold."""

    evening: Id


def test_put_returns_whether_the_field_is_new(run: Run, raw: Raw) -> None:
    assert run(Seats("mon").put(ABOVE_DOUBLES, "A1")) is True
    assert run(Seats("mon").put(ABOVE_DOUBLES, "A2")) is False
    assert raw("HGETALL", "seats:mon") == {b"9007199254740993": b"A2"}
    assert run(Seats("mon").get(ABOVE_DOUBLES)) == "A2"


def test_a_missing_field_reads_as_none(run: Run) -> None:
    assert run(Seats("mon").get(1)) is None


def test_put_many_counts_the_new_fields_and_keeps_the_others(run: Run, raw: Raw) -> None:
    run(Seats("mon").put(1, "A1"))
    assert run(Seats("mon").put_many({1: "B1", 2: "B2"})) == 1
    assert raw("HGETALL", "seats:mon") == {b"1": b"B1", b"2": b"B2"}


def test_put_if_absent_keeps_a_stored_value(run: Run, raw: Raw) -> None:
    assert run(Seats("mon").put_if_absent(1, "A1")) is True
    assert run(Seats("mon").put_if_absent(1, "A2")) is False
    assert raw("HGET", "seats:mon", "1") == b"A1"


def test_get_many_leaves_out_the_missing(run: Run) -> None:
    run(Seats("mon").put_many({1: "A1", 2: "A2"}))
    assert run(Seats("mon").get_many([2, 3])) == {2: "A2"}


def test_the_whole_map_is_read(run: Run) -> None:
    run(Seats("mon").put_many({1: "A1", 2: "A2"}))
    assert run(Seats("mon").all()) == {1: "A1", 2: "A2"}
    assert sorted(run(Seats("mon").fields())) == [1, 2]
    assert sorted(run(Seats("mon").values())) == ["A1", "A2"]
    assert run(Seats("mon").size()) == 2
    assert run(Seats("mon").has(1)) is True
    assert run(Seats("mon").has(3)) is False


def test_a_missing_map_is_empty(run: Run) -> None:
    assert run(Seats("none").all()) == {}
    assert run(Seats("none").size()) == 0


def test_a_sample_holds_different_fields(run: Run) -> None:
    run(Seats("mon").put_many({1: "A1", 2: "A2", 3: "A3"}))
    sample = run(Seats("mon").sample(2))
    assert len(set(sample)) == 2
    assert set(sample) <= {1, 2, 3}
    assert sorted(run(Seats("mon").sample(9))) == [1, 2, 3]


def test_replace_leaves_only_the_given_entries(run: Run, raw: Raw) -> None:
    run(Seats("mon").put_many({1: "A1", 2: "A2"}))
    run(Seats("mon").replace({3: "C3"}))
    assert raw("HGETALL", "seats:mon") == {b"3": b"C3"}
    run(Seats("mon").replace({}))
    assert raw("EXISTS", "seats:mon") == 0


def test_remove_counts_the_entries_that_existed(run: Run, raw: Raw) -> None:
    run(Seats("mon").put_many({1: "A1", 2: "A2"}))
    assert run(Seats("mon").remove(1, 5)) == 1
    assert raw("HKEYS", "seats:mon") == [b"2"]


def test_add_counts_in_the_map(run: Run, raw: Raw) -> None:
    assert run(Drinks("mon").add("tea")) == 1
    assert run(Drinks("mon").add("tea", ABOVE_DOUBLES)) == ABOVE_DOUBLES + 1
    assert raw("HGET", "drinks:mon", "tea") == b"9007199254740994"


def test_scan_pages_through_every_entry(run: Run) -> None:
    entries = {number: f"seat {number}" for number in range(1000)}
    run(Seats("mon").put_many(entries))
    found: dict[int, str] = {}
    cursor, page = run(Seats("mon").scan(count=100))
    pages = 1
    found |= page
    while cursor:
        cursor, page = run(Seats("mon").scan(cursor, count=100))
        found |= page
        pages += 1
    assert found == entries
    assert pages > 1


def test_calls_without_fields_send_nothing(run: Run) -> None:
    for call in (Seats("mon").get_many([]), Seats("mon").put_many({}), Seats("mon").remove()):
        assert preview(call) == []
    assert run(Seats("mon").get_many([])) == {}
    assert run(Seats("mon").put_many({})) == 0
    assert run(Seats("mon").remove()) == 0


def test_a_value_of_another_type_is_not_sent() -> None:
    with pytest.raises(ValueRefusedError) as refused:
        Drinks("mon").put("tea", "two")  # type: ignore[arg-type]  # what the checker refuses, we refuse too
    assert refused.value.template == "drinks:<evening>"


def test_a_stored_value_that_does_not_decode_names_the_key(run: Run, raw: Raw) -> None:
    raw("HSET", "drinks:mon", "tea", "two")
    for read in (Drinks("mon").get("tea"), Drinks("mon").get_many(["tea"]), Drinks("mon").all()):
        with pytest.raises(StoredDataError) as wrong:
            run(read)
        assert wrong.value.key == b"drinks:mon"
        assert wrong.value.expected == "a signed 64-bit integer"
        assert wrong.value.found == "b'two'"


def test_a_string_under_the_name_is_named(run: Run, raw: Raw) -> None:
    raw("SET", "drinks:mon", "tea")
    with pytest.raises(WrongTypeError) as wrong:
        run(Drinks("mon").all())
    assert wrong.value.expected == "a map (hash)"


def test_one_field_expires_where_the_server_can_do_that(run: Run, raw: Raw) -> None:
    run(Seats("mon").put_many({1: "A1", 2: "A2"}))
    done = run(Seats("mon").expire_field(1, timedelta(hours=1)).attempt())
    if isinstance(done, CapabilityError):
        assert "Redis 7.4 or Valkey 9" in str(done)
        assert run(Seats("mon").size()) == 2
    else:
        assert done is True
        assert raw("HPTTL", "seats:mon", "FIELDS", 2, "1", "2")[0] > 0
