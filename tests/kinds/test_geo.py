"""Geo: members with a position."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright import Geo, Id, Keyspace, Near, Point, expires_in, preview
from keywright.errors import ServerRefusedError, StoredDataError, ValueRefusedError, WrongTypeError
from keywright.keyspace.kinds.geo import point_of, score_of
from keywright.testing.runs import Raw, Run
from keywright.tools.describe.inspection import inspect

space = Keyspace("stops", "Where the stops of a line are.")
PALERMO, CATANIA = Point(13.361389, 38.115556), Point(15.087269, 37.502669)


class Stops(Geo[Id], key="stops:<line>", space=space):
    """The stops of a line."""

    line: Id


class Brief(Geo[Id], key="brief", space=space, expiry=expires_in(timedelta(minutes=1))):
    """Stops that are soon forgotten."""


def _fill(run: Run) -> Stops:
    stops = Stops("a")
    assert run(stops.add_many({"palermo": PALERMO, "catania": CATANIA})) == 2
    return stops


def test_a_member_is_added_and_moved(run: Run, raw: Raw) -> None:
    stops = Stops("a")
    assert run(stops.add("palermo", PALERMO)) is True
    assert run(stops.add("palermo", PALERMO)) is False
    assert run(stops.add("palermo", CATANIA, when="absent")) is False
    assert run(stops.add("catania", CATANIA, when="present")) is False
    assert run(stops.add("palermo", CATANIA, when="present")) is True
    ((longitude, latitude),) = raw("GEOPOS", "stops:a", "palermo")
    assert (float(longitude), float(latitude)) == pytest.approx(CATANIA, abs=1e-5)


def test_positions_are_those_that_were_written_within_a_metre(run: Run) -> None:
    stops = _fill(run)
    assert run(stops.position("palermo")) == pytest.approx(PALERMO, abs=1e-5)
    assert run(stops.position("none")) is None
    found = run(stops.positions(["catania", "none"]))
    assert list(found) == ["catania"]
    assert found["catania"] == pytest.approx(CATANIA, abs=1e-5)


def test_distances_are_in_metres(run: Run) -> None:
    stops = _fill(run)
    assert run(stops.distance("palermo", "catania")) == pytest.approx(166_274, abs=1)
    assert run(stops.distance("palermo", "none")) is None


def test_a_search_returns_the_nearest_first(run: Run) -> None:
    stops = _fill(run)
    center = Point(15, 37)
    found = run(stops.within(center, 200_000))
    assert [each.member for each in found] == ["catania", "palermo"]
    assert all(isinstance(each, Near) and isinstance(each.point, Point) for each in found)
    assert found[0].distance == pytest.approx(56_441, abs=1)
    assert [each.member for each in run(stops.within(center, 100_000))] == ["catania"]
    assert [each.member for each in run(stops.within(center, 200_000, limit=1))] == ["catania"]
    assert [each.member for each in run(stops.within("palermo", 1))] == ["palermo"]
    assert [each.member for each in run(stops.in_box(center, 400_000, 400_000))] == ["catania", "palermo"]
    assert [each.member for each in run(stops.in_box("catania", 10, 10))] == ["catania"]


def test_a_search_around_a_missing_member_is_refused_by_the_server(run: Run) -> None:
    stops = _fill(run)
    with pytest.raises(ServerRefusedError):
        run(stops.within("none", 1))


def test_members_are_listed_counted_and_removed(run: Run, raw: Raw) -> None:
    stops = _fill(run)
    assert sorted(run(stops.members())) == ["catania", "palermo"]
    assert run(stops.size()) == 2
    assert run(stops.remove("palermo", "none")) == 1
    assert raw("ZRANGE", "stops:a", 0, -1) == [b"catania"]


def test_calls_without_members_send_nothing() -> None:
    for call in (Stops("a").add_many({}), Stops("a").remove(), Stops("a").positions([])):
        assert preview(call) == []


@pytest.mark.parametrize(
    "point", [Point(181, 0), Point(0, 86), Point(math.nan, 0), Point(0, math.inf), (1, 2), None]
)
def test_a_position_that_no_server_takes_is_not_sent(point: Point) -> None:
    with pytest.raises(ValueRefusedError, match="longitude"):
        Stops("a").add("x", point)


@pytest.mark.parametrize("radius", [-1, math.nan, math.inf, True, "1"])
def test_a_radius_that_is_not_a_length_is_not_sent(radius: float) -> None:
    with pytest.raises(ValueRefusedError):
        Stops("a").within("x", radius)


def test_writes_give_the_key_its_expiry(run: Run, raw: Raw) -> None:
    run(Brief().add("x", PALERMO))
    assert 0 < raw("PTTL", "brief") <= 60_000


@pytest.mark.parametrize("score", ["-1", "1.5", "4503599627370496", "inf"])
def test_a_score_that_is_not_a_position_is_malformed(score: str, run: Run, raw: Raw) -> None:
    raw("ZADD", "stops:a", score, "x")
    with pytest.raises(StoredDataError, match="position"):
        run(inspect(Stops("a")))


def test_a_stored_score_is_the_position_that_the_server_returns(run: Run, raw: Raw) -> None:
    points = {f"p{n}": Point(-179.9 + n * 3.59, -85 + n * 1.69) for n in range(100)}
    run(Stops("a").add_many(points))
    for member, point in points.items():
        score = float(raw("ZSCORE", "stops:a", member))
        ((longitude, latitude),) = raw("GEOPOS", "stops:a", member)
        assert point_of(score) == pytest.approx((float(longitude), float(latitude)), abs=1e-9)
        assert score_of(point) == score


@given(st.integers(0, 2**52 - 1))
def test_every_score_stands_for_one_position(score: int) -> None:
    assert score_of(point_of(score)) == score


def test_a_string_under_the_name_is_named(run: Run, raw: Raw) -> None:
    raw("SET", "stops:a", "x")
    with pytest.raises(WrongTypeError):
        run(Stops("a").add("x", PALERMO))


def test_positions_are_searched_on_a_cluster(cluster_run: Run, raw_cluster: Raw) -> None:
    cluster_run(Stops("a").add("palermo", PALERMO))
    assert [each.member for each in cluster_run(Stops("a").within(PALERMO, 10))] == ["palermo"]
    assert raw_cluster("ZCARD", "stops:a") == 1
