"""Whatever comes, in whatever windows: Redis holds what a plain in-memory cache holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any, NamedTuple

import pytest
import redis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from redis.cluster import RedisCluster as ClusterClient

from keywright import Database, connect
from keywright.models.discord.drc import bind
from keywright.models.discord.drc.store import DrcCache
from keywright.testing import RedisCluster, RedisServer
from keywright.testing.discord_traffic import EVERYDAY, Traffic
from models.discord.reference import Reference
from models.discord.survey import PRIVATE, survey
from running import Raw

GLOBAL = {"users", "messages", "reactions", "interactions", "applications", "invites"}
MALFORMED = (
    ("MESSAGE_CREATE", b'{"id": "1"}'),
    ("GUILD_CREATE", b"[]"),
    ("GUILD_MEMBER_ADD", b'{"guild_id": "1", "user": {"id": "x"}}'),
    ("READY", b'{"user": {"id": "1", "username": "b"}, "guilds": [], "shard": [3, 2]}'),
    ("TYPING_START", b'{"guild_id": '),
)


class Disturbance(NamedTuple):
    """Something that happens after an event: how far back events repeat, or another sort of trouble."""

    at: int
    what: str
    size: int


class Session(NamedTuple):
    """A session's traffic: chosen by a seed, disturbed, and applied in windows."""

    seed: int
    length: int
    often: frozenset[str]
    disturbances: tuple[Disturbance, ...]
    windows: tuple[int, ...]

    def events(self) -> Iterator[tuple[str, Any]]:
        """Dispatches, decoded; malformed ones are bytes."""
        mix = {name: 40.0 if name in self.often else 1.0 for name in EVERYDAY}
        traffic = Traffic(self.seed)
        past: list[tuple[str, Any]] = []
        for place, (event, data) in enumerate(traffic.events(self.length, members=5, mix=mix)):
            past.append((event, json.loads(json.dumps(data))))
            yield past[-1]
            for disturbance in self.disturbances:
                if disturbance.at == place:
                    yield from _disturbed(disturbance, past, traffic)


def _disturbed(
    disturbance: Disturbance, past: list[tuple[str, Any]], traffic: Traffic
) -> Iterator[tuple[str, Any]]:
    size = disturbance.size
    match disturbance.what:
        case "repeat":
            yield past[-1]
        case "replay":
            yield from past[-size:]
        case "restart":
            kept = [{"id": guild} for guild in traffic.guilds if int(guild) % 3]
            yield "READY", {**traffic.ready((size % 3, 3)), "guilds": kept}
        case _:
            yield MALFORMED[size % len(MALFORMED)]


DISTURBANCES = st.builds(
    Disturbance,
    st.integers(0, 100),
    st.sampled_from(["repeat", "replay", "restart", "malformed"]),
    st.integers(1, 60),
)
SESSIONS = st.builds(
    Session,
    st.integers(0, 2**32),
    st.integers(1, 120),
    st.frozensets(st.sampled_from(sorted(EVERYDAY)), max_size=12),
    st.tuples(DISTURBANCES, DISTURBANCES, DISTURBANCES),
    st.tuples(st.integers(1, 8), st.integers(1, 60)),
)
BOUNDED = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


class Stage(NamedTuple):
    """A database, and what it really holds."""

    database: Database
    raw: Raw
    flush: Callable[[], object]
    cluster: bool = False


@pytest.fixture
def stage(keywright_server: RedisServer, redis_url: str) -> Iterator[Stage]:
    with connect(redis_url, *bind()) as database, redis.Redis.from_url(redis_url) as client:
        yield Stage(database, Raw(client), client.flushall)


@pytest.fixture
def cluster_stage(keywright_cluster: RedisCluster, cluster_url: str) -> Iterator[Stage]:
    client = ClusterClient.from_url(cluster_url)
    with connect(cluster_url, *bind()) as database:
        yield Stage(database, Raw(client), keywright_cluster.flush, cluster=True)
    client.close()


def encoded(events: list[tuple[str, Any]]) -> list[tuple[str, bytes]]:
    return [
        (event, data if isinstance(data, bytes) else json.dumps(data, separators=(",", ":")).encode())
        for event, data in events
    ]


def apply(stage: Stage, cache: DrcCache, events: list[tuple[str, bytes]], windows: tuple[int, ...]) -> int:
    """How many events were refused."""
    sizes, start, refused = cycle(windows), 0, 0
    while start < len(events):
        size = next(sizes)
        refused += len(stage.database.run(cache.apply(events[start : start + size])))
        start += size
    return refused


def assert_agrees(stage: Stage, session: Session) -> None:
    stage.flush()
    cache, reference = DrcCache(), Reference(cluster=stage.cluster)
    events = list(session.events())
    for event, data in events:
        if not isinstance(data, bytes):
            reference.apply(event, data)
    malformed = sum(isinstance(data, bytes) for _, data in events)
    assert apply(stage, cache, encoded(events), session.windows) == malformed
    assert survey(stage.raw) == reference.layout()

    seen = {data["id"] for event, data in events if event == "GUILD_CREATE" and isinstance(data, dict)}
    seen |= reference.sets.get("guilds", set())
    gone = [("GUILD_DELETE", {"id": guild}) for guild in sorted(seen)]
    apply(stage, cache, encoded(gone), session.windows)
    assert {name.partition(":")[0] for name in survey(stage.raw)} <= GLOBAL
    assert survey(stage.raw, PRIVATE) == {}


@settings(BOUNDED, max_examples=300)
@given(session=SESSIONS)
def test_any_traffic_leaves_what_the_plain_cache_has(stage: Stage, session: Session) -> None:
    """Repeats, replays, restarts and malformed events included; without guilds nothing of a guild is left."""
    assert_agrees(stage, session)


@settings(BOUNDED, max_examples=150, phases=[Phase.generate])  # what fails here, shrinks faster above
@given(session=SESSIONS)
def test_any_traffic_leaves_the_same_on_a_cluster(cluster_stage: Stage, session: Session) -> None:
    """The same where no two keys share a slot."""
    assert_agrees(cluster_stage, session)


@pytest.mark.parametrize("seed", range(5))
def test_a_session_that_is_played_again_changes_nothing(stage: Stage, seed: int) -> None:
    """From READY to the end, once more, and in other windows: every event may come twice."""
    events = encoded(list(Session(seed, 400, frozenset(), (), ()).events()))
    cache = DrcCache()
    apply(stage, cache, events, (50,))
    once = survey(stage.raw), survey(stage.raw, PRIVATE)
    apply(stage, cache, events, (7,))
    assert (survey(stage.raw), survey(stage.raw, PRIVATE)) == once


@pytest.mark.parametrize("window", [1, 2, 13, 1000])
def test_windows_of_any_size_give_the_same(stage: Stage, window: int) -> None:
    """Events that are applied together give what they give one by one."""
    events = encoded(list(Session(7, 500, frozenset(), (), ()).events()))
    apply(stage, DrcCache(), events, (1,))
    single = survey(stage.raw), survey(stage.raw, PRIVATE)
    stage.flush()
    apply(stage, DrcCache(), events, (window,))
    assert (survey(stage.raw), survey(stage.raw, PRIVATE)) == single
