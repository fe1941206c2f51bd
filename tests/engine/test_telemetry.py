"""Telemetry: the data about each round trip that observers get, and the data they never get."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from engines import Engine, Tally, Word
from keywright import RoundTrip, gather, gather_list
from keywright.errors import WrongTypeError
from keywright.testing.runs import Raw

OpenEngine = Callable[..., Engine]


@pytest.fixture
def trips() -> list[RoundTrip]:
    return []


@pytest.fixture(params=["redis_url", "cluster_url"])
def engine(request: pytest.FixtureRequest, open_engine: OpenEngine, trips: list[RoundTrip]) -> Engine:
    engine = open_engine(request.getfixturevalue(request.param), None, trips.append)
    engine.run(Word("warm").get())
    trips.clear()
    return engine


def test_a_round_trip_is_reported_by_template_and_operation(engine: Engine, trips: list[RoundTrip]) -> None:
    engine.run(gather(Word("a").set("x"), Word("b").set("y"), Tally("a").add(1)))
    (trip,) = trips
    assert trip.operations == Counter({("word:<word>", "set"): 2, ("tally:<tally>", "add"): 1})
    assert trip.errors == 0
    assert trip.seconds > 0


def test_bytes_are_counted_both_ways(engine: Engine, trips: list[RoundTrip]) -> None:
    engine.run(Word("a").set("x" * 10_000))
    engine.run(Word("a").get())
    write, read = trips
    assert write.bytes_sent > 10_000 > write.bytes_received
    assert read.bytes_received >= 10_000 > read.bytes_sent


def test_errors_are_counted(
    open_engine: OpenEngine, redis_url: str, raw: Raw, trips: list[RoundTrip]
) -> None:
    engine = open_engine(redis_url, None, trips.append)
    raw("SADD", "word:a", "stray")
    trips.clear()
    with pytest.raises(WrongTypeError):
        engine.run(gather(Word("a").get(), Word("b").get()))
    assert [trip.errors for trip in trips] == [1]


def test_neither_names_nor_values_are_reported(engine: Engine, trips: list[RoundTrip]) -> None:
    engine.run(gather_list(Word("confidential").set("private") for _ in range(3)))
    assert "confidential" not in repr(trips)
    assert "private" not in repr(trips)


def test_every_observer_is_called(open_engine: OpenEngine, redis_url: str) -> None:
    first: list[RoundTrip] = []
    second: list[RoundTrip] = []
    engine = open_engine(redis_url, None, first.append, second.append)
    engine.run(Word("a").get())
    assert first == second != []
