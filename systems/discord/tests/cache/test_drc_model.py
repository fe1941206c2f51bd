"""After any events, in batches of any size, Redis holds what a plain in-memory cache holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
import redis
from hypothesis import Phase, given, settings
from redis.cluster import RedisCluster as ClusterClient

from keywright import Database, connect
from keywright.testing import Raw, RedisCluster, RedisServer
from keywright_discord import model
from keywright_discord.drc import bind
from keywright_discord.drc.store import DrcCache

from .reference import Reference
from .sessions import BOUNDED, SESSIONS, Session, apply, encoded, findings, leaving, malformed
from .survey import PRIVATE, survey

GLOBAL = {"users", "messages", "reactions", "interactions", "applications", "invites"}


class Stage(NamedTuple):
    """A database, and a client to read it directly."""

    database: Database
    raw: Raw
    flush: Callable[[], object]
    url: str
    cluster: bool = False


@pytest.fixture
def stage(keywright_server: RedisServer, redis_url: str) -> Iterator[Stage]:
    with connect(redis_url, *bind()) as database, redis.Redis.from_url(redis_url) as client:
        yield Stage(database, Raw(client), client.flushall, redis_url)


@pytest.fixture
def cluster_stage(keywright_cluster: RedisCluster, cluster_url: str) -> Iterator[Stage]:
    client = ClusterClient.from_url(cluster_url)
    with connect(cluster_url, *bind()) as database:
        yield Stage(database, Raw(client), keywright_cluster.flush, cluster_url, cluster=True)
    client.close()


def assert_agrees(stage: Stage, session: Session) -> None:
    stage.flush()
    cache, reference = DrcCache(), Reference(cluster=stage.cluster)
    events = list(session.events())
    for event, data in events:
        if not isinstance(data, bytes):
            reference.apply(event, data)
    assert apply(stage.database.run, cache, encoded(events), session.windows) == malformed(events)
    assert survey(stage.raw) == reference.layout()
    if not stage.cluster:
        assert findings(stage.url, model.drc) == []

    apply(stage.database.run, cache, encoded(leaving(events)), session.windows)
    left = survey(stage.raw)
    assert {name.partition(":")[0] for name in left} <= GLOBAL
    assert [name for name in left if name.startswith("invites:") and not left[name]["max_age"]] == []
    assert {name.partition(":")[0] for name in survey(stage.raw, PRIVATE)} <= {"super-reactions"}


@settings(BOUNDED, max_examples=300)
@given(session=SESSIONS)
def test_any_traffic_leaves_what_the_plain_cache_has(stage: Stage, session: Session) -> None:
    """Repeats, replays, restarts, downtimes and malformed events included; without guilds nothing of a guild
    is left, and an audit finds nothing."""
    assert_agrees(stage, session)


@settings(BOUNDED, max_examples=150, phases=[Phase.generate])  # a failing example shrinks faster above
@given(session=SESSIONS)
def test_any_traffic_leaves_the_same_on_a_cluster(cluster_stage: Stage, session: Session) -> None:
    """The same where no two keys share a slot."""
    assert_agrees(cluster_stage, session)


@pytest.mark.parametrize("seed", range(5))
def test_a_session_that_is_played_again_changes_nothing(stage: Stage, seed: int) -> None:
    """The whole session once more, in other batches: every event may come twice."""
    events = encoded(list(Session(seed, 400, frozenset(), (), ()).events()))
    cache = DrcCache()
    apply(stage.database.run, cache, events, (50,))
    once = survey(stage.raw), survey(stage.raw, PRIVATE)
    apply(stage.database.run, cache, events, (7,))
    assert (survey(stage.raw), survey(stage.raw, PRIVATE)) == once


@pytest.mark.parametrize("window", [1, 2, 13, 1000])
def test_windows_of_any_size_give_the_same(stage: Stage, window: int) -> None:
    """Events that are applied together give what they give one by one."""
    events = encoded(list(Session(7, 500, frozenset(), (), ()).events()))
    apply(stage.database.run, DrcCache(), events, (1,))
    single = survey(stage.raw), survey(stage.raw, PRIVATE)
    stage.flush()
    apply(stage.database.run, DrcCache(), events, (window,))
    assert (survey(stage.raw), survey(stage.raw, PRIVATE)) == single
