"""SortedSet: members ordered by a typed score."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from keywright import Id, Keyspace, SnowflakeId, SortedSet, preview
from keywright.errors import DeclarationError, StoredDataError, ValueRefusedError, WrongTypeError
from keywright.operations import Effect
from keywright.testing.runs import Raw, Run

space = Keyspace("races", "Who runs how far, how fast and when.")

ABOVE_DOUBLES = 2**53 + 1
NOON = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)


class Laps(SortedSet[SnowflakeId, int], key="laps:<race>", space=space):
    """Laps run, by runner."""

    race: Id


class Speeds(SortedSet[SnowflakeId, float], key="speeds:<race>", space=space):
    """Metres a second, by runner."""

    race: Id


class Starts(SortedSet[SnowflakeId, datetime], key="starts:<race>", space=space):
    """When each runner starts."""

    race: Id


def test_a_member_above_two_to_the_53_stays_exact(run: Run, raw: Raw) -> None:
    assert run(Laps("spring").add(ABOVE_DOUBLES, 3)) is True
    assert raw("ZRANGE", "laps:spring", 0, -1) == [b"9007199254740993"]
    assert run(Laps("spring").score(ABOVE_DOUBLES)) == 3


def test_each_score_type_is_written_as_declared(run: Run, raw: Raw) -> None:
    run(Laps("spring").add(1, -(2**53)))
    run(Speeds("spring").add(1, 3.25))
    run(Starts("spring").add(1, NOON))
    assert raw("ZSCORE", "laps:spring", "1") == -(2.0**53)
    assert raw("ZSCORE", "speeds:spring", "1") == 3.25
    assert raw("ZSCORE", "starts:spring", "1") == 1714564800000
    assert run(Laps("spring").score(1)) == -(2**53)
    assert run(Speeds("spring").score(1)) == 3.25
    assert run(Starts("spring").score(1)) == NOON


def test_a_time_is_floored_to_its_millisecond(run: Run) -> None:
    run(Starts("spring").add(1, NOON + timedelta(microseconds=1999)))
    assert run(Starts("spring").score(1)) == NOON + timedelta(milliseconds=1)


def test_add_returns_whether_anything_changed(run: Run) -> None:
    laps = Laps("spring")
    assert run(laps.add(1, 3)) is True
    assert run(laps.add(1, 3)) is False
    assert run(laps.add(1, 4)) is True
    assert run(laps.add(1, 9, when="absent")) is False
    assert run(laps.add(2, 9, when="present")) is False
    assert run(laps.add(1, 3, when="greater")) is False
    assert run(laps.add(1, 3, when="less")) is True
    assert run(laps.range()) == [(1, 3)]


def test_add_many_counts_the_changes(run: Run, raw: Raw) -> None:
    run(Laps("spring").add(1, 3))
    assert run(Laps("spring").add_many({1: 3, 2: 5, 3: 4})) == 2
    assert run(Laps("spring").add_many({1: 9, 4: 1}, when="present")) == 1
    assert raw("ZRANGE", "laps:spring", 0, -1) == [b"3", b"2", b"1"]


def test_adding_only_the_absent_is_not_repeated_after_a_lost_connection() -> None:
    for call in (Laps("spring").add(1, 1, when="absent"), Laps("spring").add_many({1: 1}, when="absent")):
        (wire,) = preview(call)
        assert wire.operation.effect is Effect.ONCE


def test_replace_leaves_only_the_given_entries(run: Run, raw: Raw) -> None:
    run(Laps("spring").add_many({1: 1, 2: 2}))
    run(Laps("spring").replace({3: 3}))
    assert raw("ZRANGE", "laps:spring", 0, -1) == [b"3"]
    run(Laps("spring").replace({}))
    assert raw("EXISTS", "laps:spring") == 0


def test_increase_returns_the_new_score(run: Run) -> None:
    assert run(Laps("spring").increase(1, 2)) == 2
    assert run(Laps("spring").increase(1, -1)) == 1
    assert run(Speeds("spring").increase(1, 0.5)) == 0.5
    run(Starts("spring").add(1, NOON))
    assert run(Starts("spring").increase(1, 1000)) == NOON + timedelta(seconds=1)


def test_remove_takes_members_scores_or_places(run: Run, raw: Raw) -> None:
    laps = Laps("spring")
    run(laps.add_many({number: number for number in range(10)}))
    assert run(laps.remove(0, 99)) == 1
    assert run(laps.remove_by_score(8)) == 2
    assert run(laps.remove_by_score(high=1)) == 1
    assert run(laps.remove_by_rank(0, 1)) == 2
    assert raw("ZRANGE", "laps:spring", 0, -1) == [b"4", b"5", b"6", b"7"]


def test_scores_omit_absent_members(run: Run) -> None:
    run(Laps("spring").add_many({1: 10, 2: 20}))
    assert run(Laps("spring").scores([2, 3])) == {2: 20}
    assert run(Laps("spring").score(3)) is None
    assert run(Laps("spring").has(1)) is True
    assert run(Laps("spring").has(3)) is False


def test_places_count_from_either_end(run: Run) -> None:
    run(Laps("spring").add_many({1: 10, 2: 20, 3: 30}))
    assert run(Laps("spring").rank(1)) == 0
    assert run(Laps("spring").rank(1, descending=True)) == 2
    assert run(Laps("spring").rank(9)) is None
    assert run(Laps("spring").size()) == 3
    assert run(Laps("spring").count(15)) == 2
    assert run(Laps("spring").count(high=15)) == 1
    assert run(Laps("spring").count()) == 3


def test_ranges_by_place_and_by_score(run: Run) -> None:
    laps = Laps("spring")
    run(laps.add_many({1: 10, 2: 20, 3: 30}))
    assert run(laps.range()) == [(1, 10), (2, 20), (3, 30)]
    assert run(laps.range(0, 0, descending=True)) == [(3, 30)]
    assert run(laps.range_by_score(20)) == [(2, 20), (3, 30)]
    assert run(laps.range_by_score(high=20, descending=True)) == [(2, 20), (1, 10)]
    assert run(laps.range_by_score(limit=1)) == [(1, 10)]
    assert run(laps.range_by_score(offset=1)) == [(2, 20), (3, 30)]
    assert run(laps.range_by_score(limit=1, offset=2)) == [(3, 30)]
    assert run(laps.members()) == [1, 2, 3]


def test_a_range_of_times_asks_with_times(run: Run) -> None:
    run(Starts("spring").add_many({1: NOON, 2: NOON + timedelta(hours=1)}))
    assert run(Starts("spring").range_by_score(high=NOON)) == [(1, NOON)]
    assert run(Starts("spring").count(NOON + timedelta(minutes=1))) == 1


def test_pop_takes_from_either_end(run: Run, raw: Raw) -> None:
    laps = Laps("spring")
    run(laps.add_many({1: 10, 2: 20, 3: 30, 4: 40}))
    assert run(laps.pop_lowest()) == [(1, 10)]
    assert run(laps.pop_highest(2)) == [(4, 40), (3, 30)]
    assert raw("ZRANGE", "laps:spring", 0, -1) == [b"2"]
    assert run(Laps("none").pop_lowest()) == []


def test_a_sample_holds_different_members(run: Run) -> None:
    run(Laps("spring").add_many({1: 10, 2: 20, 3: 30}))
    assert len(set(run(Laps("spring").sample(2)))) == 2


def test_scan_pages_through_every_member(run: Run) -> None:
    scores = {number: number * 2 for number in range(1000)}
    run(Laps("spring").add_many(scores))
    cursor, page = run(Laps("spring").scan(count=100))
    found, pages = dict(page), 1
    while cursor:
        cursor, page = run(Laps("spring").scan(cursor, count=100))
        found |= dict(page)
        pages += 1
    assert found == scores
    assert pages > 1


def test_calls_without_members_send_nothing(run: Run) -> None:
    laps = Laps("spring")
    for call in (laps.add_many({}), laps.remove(), laps.scores([])):
        assert preview(call) == []
    assert run(laps.add_many({})) == 0
    assert run(laps.remove()) == 0
    assert run(laps.scores([])) == {}


def test_a_score_that_a_double_cannot_hold_is_not_sent() -> None:
    with pytest.raises(ValueRefusedError) as refused:
        Laps("spring").add(1, 2**53 + 1)
    assert refused.value.template == "laps:<race>"
    assert refused.value.expected == "a whole number within ±2^53"
    assert refused.value.found == "9007199254740993"


@pytest.mark.parametrize("score", [True, 1.5, "1"])
def test_a_score_of_another_type_is_not_sent(score: int) -> None:
    with pytest.raises(ValueRefusedError):
        Laps("spring").add(1, score)


def test_a_score_that_is_not_a_number_is_not_sent() -> None:
    with pytest.raises(ValueRefusedError):
        Speeds("spring").add(1, float("nan"))


def test_a_time_without_a_zone_is_not_sent() -> None:
    with pytest.raises(ValueRefusedError):
        Starts("spring").add(1, datetime(2024, 5, 1))  # the fault under test


def test_a_score_must_be_a_number_or_a_time() -> None:
    with pytest.raises(DeclarationError, match="a score cannot be"):

        class Names(SortedSet[Id, str], key="names", space=Keyspace("x", "y")):  # type: ignore[type-var]
            """Scored by text, which Redis cannot."""


def test_a_stored_member_that_does_not_decode_names_the_key(run: Run, raw: Raw) -> None:
    raw("ZADD", "laps:spring", 1, "Anna")
    with pytest.raises(StoredDataError) as wrong:
        run(Laps("spring").range())
    assert wrong.value.key == b"laps:spring"
    assert wrong.value.template == "laps:<race>"
    assert wrong.value.found == "b'Anna'"


def test_a_fraction_where_whole_numbers_are_declared_is_named(run: Run, raw: Raw) -> None:
    raw("ZADD", "laps:spring", 1.5, "1")
    with pytest.raises(StoredDataError) as wrong:
        run(Laps("spring").score(1))
    assert wrong.value.key == b"laps:spring"
    assert wrong.value.expected == "a whole number within ±2^53"
    assert wrong.value.found == "1.5"


def test_a_string_under_the_name_is_named(run: Run, raw: Raw) -> None:
    raw("SET", "laps:spring", "x")
    with pytest.raises(WrongTypeError) as wrong:
        run(Laps("spring").add(1, 1))
    assert wrong.value.expected == "a sorted set (zset)"
