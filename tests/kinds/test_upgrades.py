"""Older shapes and places: read, upgraded atomically on read, once."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from datetime import timedelta
from typing import Annotated, Any

import msgspec
import pytest

from keywright import (
    Call,
    Id,
    Keyring,
    Keyspace,
    Record,
    Sealed,
    Upgrade,
    Value,
    expires_in,
    gather,
    preview,
)
from keywright.errors import StoredDataError
from keywright.operations import Procedure
from keywright.testing.runs import OpenRun, Raw, Run

space = Keyspace("archive", "Documents, some of them old.")

HOUR_MS = 3_600_000
MINUTE_MS = 60_000


class Sheet(msgspec.Struct):
    title: str
    pages: int = 1
    author: str | None = None


class AuthorOf(Value[str], key="author:<sheet>", space=space):
    """Who wrote a sheet; once kept beside it."""

    sheet: Id


def _from_one_line(members: Mapping[bytes, bytes], key: SheetOf) -> Generator[Call[Any], Any, Sheet]:
    title, _, pages = members[b"line"].decode().partition("/")
    author = yield AuthorOf(key.sheet).get()
    return Sheet(title, int(pages), author)


class OldSheetOf(Record[Sheet], key="old_sheet:<sheet>", space=space):
    """Where sheets were."""

    sheet: Id


class SheetOf(
    Record[Sheet],
    key="sheet:<sheet>",
    space=space,
    expiry=expires_in(timedelta(hours=1)),
    upgrades=(
        Upgrade("one line", lambda members: b"line" in members, _from_one_line),
        Upgrade(
            "old place",
            bool,
            lambda members, _: Sheet(members[b"title"].decode(), 9),
            moved_from=lambda key: OldSheetOf(key.sheet),
        ),
    ),
):
    """A sheet; once a single line of title/pages, and before that under another name."""

    sheet: Id


class OldMark(Value[str], key="old_mark:<sheet>", space=space):
    """Where marks were."""

    sheet: Id


class Mark(
    Value[int],
    key="mark:<sheet>",
    space=space,
    upgrades=(
        Upgrade("letters", bytes.isalpha, lambda stored, _: b"fedcba".index(stored)),
        Upgrade(
            "old place",
            bool,
            lambda stored, _: int(stored),
            moved_from=lambda key: OldMark(key.sheet),
        ),
    ),
):
    """The mark of a sheet, 0 to 5; once a letter."""

    sheet: Id


class Pin(
    Value[Annotated[int, Sealed]],
    key="pin:<sheet>",
    space=space,
    upgrades=(Upgrade("negative", lambda stored: stored.startswith(b"-"), lambda stored, _: -int(stored)),),
):
    """A sealed number; once it was written as a negative one."""

    sheet: Id


def _after_one_round(call: Call[bool]) -> Call[bool]:
    """Delay a call by one round trip: gathered with an upgrade, between its read and its write."""

    def steps() -> Generator[Call[Any], Any, bool]:
        yield Mark("nobody").exists()
        written: bool = yield call
        return written

    return Procedure(steps, "a late write")


def test_an_old_shape_is_upgraded_in_place(run: Run, raw: Raw) -> None:
    raw("HSET", "sheet:a", "line", "Waves/12")
    raw("SET", "author:a", "Virginia")
    assert run(SheetOf("a").get()) == Sheet("Waves", 12, "Virginia")
    assert raw("HGETALL", "sheet:a") == {b"title": b"Waves", b"pages": b"12", b"author": b"Virginia"}


def test_an_old_value_is_upgraded_in_place(run: Run, raw: Raw) -> None:
    raw("SET", "mark:a", "b")
    assert run(Mark("a").get()) == 4
    assert raw("GET", "mark:a") == b"4"


def test_an_upgrade_keeps_the_time_that_is_left(run: Run, raw: Raw) -> None:
    raw("HSET", "sheet:a", "line", "Waves/12")
    raw("PEXPIRE", "sheet:a", MINUTE_MS)
    raw("SET", "mark:a", "b", "PX", MINUTE_MS)
    run(SheetOf("a").get())
    run(Mark("a").get())
    assert 0 < raw("PTTL", "sheet:a") <= MINUTE_MS
    assert 0 < raw("PTTL", "mark:a") <= MINUTE_MS


def test_an_upgrade_without_expiry_stays_without(run: Run, raw: Raw) -> None:
    raw("HSET", "sheet:a", "line", "Waves/12")
    run(SheetOf("a").get())
    assert raw("PTTL", "sheet:a") == -1


def test_an_up_to_date_value_is_read_as_it_is(run: Run, raw: Raw) -> None:
    run(SheetOf("a").put(Sheet("Waves", 3)))
    before = raw("HGETALL", "sheet:a")
    assert run(SheetOf("a").get()) == Sheet("Waves", 3)
    assert raw("HGETALL", "sheet:a") == before


def test_reading_an_up_to_date_value_takes_one_round_trip(run: Run) -> None:
    rounds = Mark("a").get().rounds(run.context)
    next(rounds)
    with pytest.raises(StopIteration) as done:
        rounds.send([b"3"] * len(preview(Mark("a").get())))
    assert done.value.value == 3


def test_nothing_anywhere_reads_as_none(run: Run, raw: Raw) -> None:
    assert run(SheetOf("none").get()) is None
    assert run(Mark("none").get()) is None
    assert raw.names() == set()


def test_an_old_place_is_moved(run: Run, raw: Raw) -> None:
    raw("HSET", "old_sheet:a", "title", "Waves")
    assert run(SheetOf("a").get()) == Sheet("Waves", 9)
    assert raw.names() == {b"sheet:a"}
    assert raw("HGETALL", "sheet:a") == {b"title": b"Waves", b"pages": b"9"}


def test_a_moved_value_gets_the_declared_expiry(run: Run, raw: Raw) -> None:
    raw("HSET", "old_sheet:a", "title", "Waves")
    run(SheetOf("a").get())
    assert HOUR_MS - MINUTE_MS < raw("PTTL", "sheet:a") <= HOUR_MS


def test_an_old_value_is_moved(run: Run, raw: Raw) -> None:
    raw("SET", "old_mark:a", "2")
    assert run(Mark("a").get()) == 2
    assert raw.names() == {b"mark:a"}


def test_the_new_place_wins_over_the_old(run: Run, raw: Raw) -> None:
    raw("SET", "old_mark:a", "2")
    raw("SET", "mark:a", "5")
    assert run(Mark("a").get()) == 5
    assert raw("GET", "old_mark:a") == b"2"


def test_two_readers_at_once_upgrade_once(run: Run, raw: Raw) -> None:
    raw("SET", "mark:a", "b")
    raw("CONFIG", "RESETSTAT")
    assert run(gather(Mark("a").get(), Mark("a").get())) == (4, 4)
    assert raw.calls_of("set") == 1
    assert raw("GET", "mark:a") == b"4"


def test_two_readers_at_once_move_once(run: Run, raw: Raw) -> None:
    raw("HSET", "old_sheet:a", "title", "Waves")
    raw("CONFIG", "RESETSTAT")
    wanted = Sheet("Waves", 9)
    assert run(gather(SheetOf("a").get(), SheetOf("a").get())) == (wanted, wanted)
    assert raw.calls_of("hset") == 1


def test_a_writer_in_between_wins(run: Run, raw: Raw) -> None:
    raw("SET", "mark:a", "b")
    assert run(gather(_after_one_round(Mark("a").set(1)), Mark("a").get())) == (True, 1)
    assert raw("GET", "mark:a") == b"1"


def test_many_are_upgraded_together(run: Run, raw: Raw) -> None:
    raw("HSET", "sheet:a", "line", "Waves/12")
    run(SheetOf("b").put(Sheet("Orlando")))
    found = run(SheetOf.get_many(["a", "b", "c"]))
    assert found == [Sheet("Waves", 12), Sheet("Orlando"), None]


def test_many_values_are_upgraded_together(run: Run, raw: Raw) -> None:
    raw("MSET", "mark:a", "b", "mark:b", "5", "old_mark:c", "2")
    assert run(Mark.get_many(["a", "b", "c", "d"])) == [4, 5, 2, None]
    assert raw("MGET", "mark:a", "mark:c") == [b"4", b"2"]


def test_a_shape_that_no_upgrade_knows_is_an_error(run: Run, raw: Raw) -> None:
    raw("SET", "mark:a", "4.5")
    with pytest.raises(StoredDataError) as wrong:
        run(Mark("a").get())
    assert wrong.value.key == b"mark:a"
    assert raw("GET", "mark:a") == b"4.5"


def test_a_sealed_value_is_upgraded_under_its_seal(open_run: OpenRun, redis_url: str, raw: Raw) -> None:
    run = open_run(redis_url, space.bind(keyring=Keyring.generate("k1")))
    run(Pin("a").set(-7))
    assert run(Pin("a").get()) == 7
    assert raw("GET", "pin:a").startswith(b"kw2")
    assert run(Pin("a").get()) == 7


def test_shapes_and_places_are_upgraded_on_a_cluster(cluster_run: Run, raw_cluster: Raw) -> None:
    raw_cluster("HSET", "sheet:a", "line", "Waves/12")
    raw_cluster("HSET", "old_sheet:b", "title", "Orlando")
    assert cluster_run(SheetOf.get_many(["a", "b"])) == [Sheet("Waves", 12), Sheet("Orlando", 9)]
    assert raw_cluster("HGET", "sheet:a", "pages") == b"12"
    assert raw_cluster("HGET", "sheet:b", "pages") == b"9"
    assert raw_cluster("EXISTS", "old_sheet:b") == 0
