"""After any events, in batches of any size, Redis holds what a plain in-memory cache holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings

from keywright.testing import RedisCluster
from keywright_discord import model
from keywright_discord.spectacles.store import SpectaclesCache

from ..sessions import BOUNDED, SESSIONS, Session, apply, encoded, findings, leaving, malformed
from .payloads import World
from .reference_spectacles import SpectaclesReference


def of_no_guild(reference: SpectaclesReference) -> dict[str, Any]:
    """What a reference that has left its guilds may still hold: users, and what was said directly."""
    assert not any("guild_id" in message for message in reference.messages.values())
    kept = SpectaclesReference()
    kept.users, kept.messages = reference.users, reference.messages
    return {**kept.public(), **kept.private()}


def assert_agrees(
    world: World, reference: SpectaclesReference, session: Session, url: str | None = None
) -> None:
    cache = SpectaclesCache()
    events = list(session.events())
    for event, data in events:
        if not isinstance(data, bytes):
            reference.apply(event, data)
    assert apply(world.run, cache, encoded(events), session.windows) == malformed(events)
    assert world.all() == {**reference.public(), **reference.private()}
    if url is not None:
        assert findings(url, model.spectacles) == []

    gone = leaving(events)
    for event, data in gone:
        reference.apply(event, data)
    apply(world.run, cache, encoded(gone), session.windows)
    assert world.all() == of_no_guild(reference)


@settings(BOUNDED, max_examples=300)
@given(session=SESSIONS)
def test_any_traffic_leaves_what_the_plain_cache_has(world: World, redis_url: str, session: Session) -> None:
    """Repeats, replays, restarts, downtimes and malformed events included; without guilds nothing of a guild
    is left, and an audit finds nothing."""
    world.raw("FLUSHALL")
    assert_agrees(world, SpectaclesReference(), session, redis_url)


@settings(BOUNDED, max_examples=150, phases=[Phase.generate])  # a failing example shrinks faster above
@given(session=SESSIONS)
def test_any_traffic_leaves_the_same_on_a_cluster(
    cluster_world: World, keywright_cluster: RedisCluster, session: Session
) -> None:
    """The same where no two keys share a slot."""
    keywright_cluster.flush()
    assert_agrees(cluster_world, SpectaclesReference(cluster=True), session)


@pytest.mark.parametrize("seed", range(5))
def test_a_session_that_is_played_again_changes_nothing(world: World, seed: int) -> None:
    """The whole session once more, in other batches: every event may come twice."""
    events = encoded(list(Session(seed, 400, frozenset(), (), ()).events()))
    apply(world.run, world.cache, events, (50,))
    once = world.all()
    apply(world.run, world.cache, events, (7,))
    assert world.all() == once


@pytest.mark.parametrize("window", [1, 2, 13, 1000])
def test_windows_of_any_size_give_the_same(world: World, window: int) -> None:
    """Events that are applied together give what they give one by one."""
    events = encoded(list(Session(7, 500, frozenset(), (), ()).events()))
    apply(world.run, SpectaclesCache(), events, (1,))
    single = world.all()
    world.raw("FLUSHALL")
    apply(world.run, SpectaclesCache(), events, (window,))
    assert world.all() == single
