"""UUIDs, dates, decimals, durations and times, in every kind that holds them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated
from uuid import UUID

import msgspec
import pytest

from declaring import key_class
from keywright import (
    Bytes,
    Duration,
    EmptyAsNone,
    EpochFloat,
    EpochSeconds,
    Id,
    Keyspace,
    List,
    Map,
    Record,
    Set,
    SortedSet,
    Value,
    check,
)
from keywright.errors import DeclarationError, StoredDataError, ValueRefusedError
from keywright.testing.runs import Raw, Run
from keywright.tools.describe.description import describe

space = Keyspace("rentals", "Values of the types that Python has.")
BIKE = UUID("f81d4fae-7dec-41d0-a765-00a0c91e6bf6")
NOON = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


class Details(msgspec.Struct):
    bike: UUID
    since: date
    price: Decimal
    limit: timedelta
    pause: Annotated[timedelta, Duration("ms")]
    seen: Annotated[datetime, EpochFloat]
    checked: Annotated[date | None, EmptyAsNone]
    returned: date | None = None


class Rental(Record[Details], key="rental:<rental>", space=space):
    """A rental."""

    rental: Id


class Bikes(Set[UUID], key="bikes", space=space):
    """The bikes."""


class Prices(Map[date, Decimal], key="prices", space=space):
    """What a day costs."""


class Waits(List[timedelta], key="waits", space=space):
    """How long customers waited."""


class Blobs(Set[Annotated[bytes, Bytes(b"")]], key="blobs", space=space):
    """Ids that are not text."""


class Closed(Value[date], key="closed", space=space):
    """The last day."""


class Expiring(SortedSet[Id, Annotated[datetime | None, EpochFloat]], key="expiring", space=space):
    """When entries expire, in seconds; some never do."""


class Due(SortedSet[Id, Annotated[datetime, EpochSeconds]], key="due", space=space):
    """When bikes are due, in whole seconds."""


class Ridden(SortedSet[Id, timedelta], key="ridden", space=space):
    """How long each bike was ridden."""


DETAILS = Details(
    BIKE, date(2026, 11, 16), Decimal("12.50"), timedelta(hours=1.5), timedelta(seconds=0.25), NOON, None
)


def test_each_type_is_written_as_its_table_says(run: Run, raw: Raw) -> None:
    run(Rental("a").put(DETAILS))
    assert raw("HGETALL", "rental:a") == {
        b"bike": b"f81d4fae-7dec-41d0-a765-00a0c91e6bf6",
        b"since": b"2026-11-16",
        b"price": b"12.50",
        b"limit": b"5400",
        b"pause": b"250",
        b"seen": b"1794830400.0",
        b"checked": b"",
    }
    assert run(Rental("a").get()) == DETAILS


def test_sets_maps_lists_and_values_hold_them(run: Run, raw: Raw) -> None:
    run(Bikes().add(BIKE))
    run(Prices().put(date(2026, 1, 1), Decimal("0.10")))
    run(Waits().push(timedelta(seconds=1, microseconds=5)))
    run(Closed().set(date.max))
    assert raw("HGETALL", "prices") == {b"2026-01-01": b"0.10"}
    assert raw("LRANGE", "waits", 0, -1) == [b"1.000005"]
    assert run(Bikes().members()) == {BIKE}
    assert run(Prices().all()) == {date(2026, 1, 1): Decimal("0.10")}
    assert run(Waits().range()) == [timedelta(seconds=1, microseconds=5)]
    assert run(Closed().get()) == date.max


def test_ids_that_are_not_utf_8_are_members(run: Run, raw: Raw) -> None:
    many = {bytes([0xFF, each]) for each in range(20)}
    run(Blobs().add(*many))
    assert set(raw("SMEMBERS", "blobs")) == many
    assert run(Blobs().members()) == many


def test_scores_in_seconds_are_read_and_written_with_their_fraction(run: Run, raw: Raw) -> None:
    moment = NOON + timedelta(microseconds=123_456)
    run(Expiring().add("a", moment))
    run(Due().add("a", moment))
    run(Ridden().add("a", timedelta(seconds=1.5)))
    assert raw("ZSCORE", "expiring", "a") == 1794830400.123456
    assert raw("ZSCORE", "due", "a") == 1794830400
    assert raw("ZSCORE", "ridden", "a") == 1.5
    assert run(Expiring().score("a")) == moment
    assert run(Due().range()) == [("a", NOON)]
    assert run(Due().range_by_score(NOON, NOON)) == [("a", NOON)]
    assert run(Ridden().score("a")) == timedelta(seconds=1.5)


def test_an_infinite_score_is_none_where_the_time_may_be_none(run: Run, raw: Raw) -> None:
    raw("ZADD", "expiring", "inf", "forever", "1700000000.5", "soon")
    raw("ZADD", "due", "inf", "forever")
    soon = datetime(2023, 11, 14, 22, 13, 20, 500_000, UTC)
    assert run(Expiring().range()) == [("soon", soon), ("forever", None)]
    run(Expiring().add("soon", None))
    assert raw("ZSCORE", "expiring", "soon") == float("inf")
    with pytest.raises(StoredDataError, match="seconds since the epoch"):
        run(Due().range())
    with pytest.raises(ValueRefusedError):
        Due().add("a", None)  # type: ignore[arg-type]  # that is the point


def test_a_score_that_a_float_cannot_hold_is_refused_when_declared() -> None:
    with pytest.raises(DeclarationError, match="EpochSeconds"):
        key_class(Keyspace("bad", "."), "bad", {}, base=SortedSet[Id, Decimal])  # type: ignore[type-var]


def test_the_proof_and_the_description_know_every_type() -> None:
    assert check(space) == []
    described = {each.name: each for each in describe(space).keys}
    assert described["Ridden"].score == "a duration in seconds"
    assert described["Expiring"].score == (
        "a time, in seconds since the epoch with a fraction, or inf for none"
    )
    members = {each.name: each for each in described["Rental"].shapes[0].members}
    assert members["checked"].type == "a date (YYYY-MM-DD), or nothing"
    assert members["checked"].required


def test_an_empty_member_is_changed_to_a_value_and_back(run: Run, raw: Raw) -> None:
    run(Rental("a").put(DETAILS))
    run(Rental("a").update(checked=date(2026, 1, 1)))
    assert raw("HGET", "rental:a", "checked") == b"2026-01-01"
    run(Rental("a").update(checked=None))
    assert raw("HGET", "rental:a", "checked") == b""
    assert run(Rental("a").get()) == DETAILS
