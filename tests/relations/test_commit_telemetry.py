"""Telemetry of commits: observers get the label, and no ids."""

from __future__ import annotations

from collections import Counter

import pytest

from keywright import RoundTrip, connect
from keywright.keyspace.checks import absent
from keywright.keyspace.commits.journal import commit
from keywright.keyspace.commits.recovery import recover
from kinship import HomeOf, Mortal, home


def _operations(trips: list[RoundTrip]) -> Counter[tuple[str, str]]:
    return sum((trip.operations for trip in trips), Counter[tuple[str, str]]())


def test_a_commit_across_slots_names_its_relation_in_every_round_trip(cluster_url: str) -> None:
    trips: list[RoundTrip] = []
    with connect(cluster_url, observers=[trips.append]) as db:
        trips.clear()
        db.run(home.assign("ann", "one"))
    seen = {operation for _, operation in _operations(trips)} - {"topology", "get", "journal"}
    assert seen == {f"{step} {home.name}" for step in ("journal", "commit", "decide")}


def test_a_commit_in_one_script_names_its_relation(redis_url: str) -> None:
    trips: list[RoundTrip] = []
    with connect(redis_url, observers=[trips.append]) as db:
        db.run(home.assign("ann", "one"))
    assert _operations(trips)["", f"commit {home.name}"] == 1


@pytest.mark.parametrize("url", ["redis_url", "cluster_url"])
def test_the_subject_of_a_commit_is_in_errors_only(url: str, request: pytest.FixtureRequest) -> None:
    trips: list[RoundTrip] = []
    call = commit("settle", [absent(HomeOf("ann"))], [HomeOf("ann").set("one")], subject="ann")
    assert repr(call) == "<settle ann>"
    with connect(request.getfixturevalue(url), observers=[trips.append]) as db:
        db.run(call)
    assert any(operation == "commit settle" for _, operation in _operations(trips))
    assert "ann" not in repr(trips)


def test_a_recovery_is_named_too(cluster_url: str) -> None:
    trips: list[RoundTrip] = []
    with connect(cluster_url, observers=[trips.append]) as db:
        Mortal(db, home.assign("ann", "one")).step()
        trips.clear()
        db.run(recover())
    assert _operations(trips)["intents:<space>:<prefix>:<shard>", "journal recover"] == 16
