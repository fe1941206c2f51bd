"""The feed poller: entries become pending events once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from keywright import AsyncDatabase, aconnect
from keywright.testing import ManualClock, Raw
from keywright_openmod.service.connection import RedditConnection
from keywright_openmod.service.feed_poller import FeedPoller
from keywright_openmod.service.feeds import FeedEntry, reddit_feeds
from keywright_openmod.service.schema import PendingEvents, bind
from keywright_openmod.simulator import RedditSimulator, RedditWorld

from ..reddit_service import ASYNCPRAW_WARNS, credentials

pytestmark = [ASYNCPRAW_WARNS, pytest.mark.anyio]

NOON = datetime(2024, 1, 2, 12, tzinfo=UTC)


class WatchedSubreddit(NamedTuple):
    """A subreddit of the simulator and a database, with one clock."""

    reddit: RedditSimulator
    db: AsyncDatabase
    clock: ManualClock
    connection: RedditConnection

    def moderate(self) -> None:
        author = self.reddit.populate(1)[0]
        post = self.reddit.world.post(author, "mysub", "title")
        self.reddit.world.moderate(self.reddit.moderator, "removelink", post, "mysub")

    def poller(self, backfill: timedelta = timedelta(minutes=1)) -> FeedPoller:
        log = reddit_feeds(self.connection, "mysub")[0]
        return FeedPoller(self.db, log, "mysub", backfill=backfill, every=timedelta(seconds=1))

    async def poll(self, poller: FeedPoller | None = None) -> int:
        """Poll the log, as a new process unless one is given. Remove and count the pending events."""
        await (poller or self.poller()).poll()
        pending = await self.db.run(PendingEvents().members())
        for event in pending:
            await self.db.run(PendingEvents().remove(event))
        return len(pending)


@pytest.fixture
async def watched(redis_url: str) -> AsyncIterator[WatchedSubreddit]:
    clock = ManualClock(NOON)
    world = RedditWorld(clock=lambda: clock.now().timestamp())
    async with (
        RedditSimulator(world=world) as reddit,
        aconnect(redis_url, *bind(), clock=clock) as db,
        RedditConnection(credentials(reddit)) as connection,
    ):
        yield WatchedSubreddit(reddit, db, clock, connection)


async def test_a_restart_reads_the_last_entries_again_as_some_may_have_appeared_late(
    watched: WatchedSubreddit,
) -> None:
    watched.moderate()
    assert await watched.poll() == 1
    watched.clock.advance(hours=1)
    assert await watched.poll() == 1


@pytest.mark.parametrize("days", [13.5, 14, 30])
async def test_entries_whose_markers_may_have_expired_are_not_read_again(
    watched: WatchedSubreddit, days: float
) -> None:
    """In a quiet subreddit the newest entry may be weeks old; handled again it would be published again."""
    watched.moderate()
    assert await watched.poll() == 1
    watched.clock.advance(days=days)
    assert await watched.poll() == 0
    watched.moderate()
    assert await watched.poll() == 1


async def test_a_process_that_runs_reads_entries_again_after_redis_was_emptied(
    watched: WatchedSubreddit, raw: Raw
) -> None:
    running = watched.poller(backfill=timedelta(hours=2))
    watched.moderate()
    watched.clock.advance(hours=1)
    watched.moderate()
    assert [await watched.poll(running), await watched.poll(running)] == [2, 0]
    raw("FLUSHALL")
    assert [await watched.poll(running), await watched.poll(running)] == [2, 0]


async def test_a_process_that_runs_reads_entries_again_after_redis_was_restored_from_a_backup(
    watched: WatchedSubreddit, raw: Raw
) -> None:
    running = watched.poller()
    watched.moderate()
    assert await watched.poll(running) == 1
    backup = raw("DUMP", "feed:mysub:log")
    watched.clock.advance(hours=1)
    watched.moderate()
    assert await watched.poll(running) == 1
    raw("RESTORE", "feed:mysub:log", 0, backup, "REPLACE")
    assert await watched.poll(running) == 2


async def test_a_second_process_that_never_saw_the_empty_redis_reads_on(
    watched: WatchedSubreddit, raw: Raw
) -> None:
    """The first one dies after it has written the position, and before it has read anything."""
    running = watched.poller()
    watched.moderate()
    assert await watched.poll(running) == 1
    raw("FLUSHALL")
    at = (watched.clock.now() - timedelta(minutes=1)).timestamp()
    raw("HSET", "feed:mysub:log", "at", round(at * 1000), "id", "")
    assert await watched.poll(running) == 1


async def test_a_slow_process_does_not_move_the_position_back(
    watched: WatchedSubreddit, raw: Raw, caplog: pytest.LogCaptureFixture
) -> None:
    """Another one has moved it on while this one was reading the feed."""
    fast, slow = watched.poller(), watched.poller()
    watched.moderate()
    assert await watched.poll(fast) == 1
    before = raw("HGET", "feed:mysub:log", "at")
    watched.clock.advance(seconds=5)
    watched.moderate()
    read = slow._since

    async def meanwhile(horizon: datetime) -> list[FeedEntry]:
        entries = await read(horizon)
        watched.clock.advance(seconds=5)
        watched.moderate()
        assert await watched.poll(fast) == 2
        return entries

    slow._since = meanwhile  # type: ignore[method-assign]  # a step of another process in between
    assert await watched.poll(slow) == 2, "an event twice is recognised by its marker"
    assert int(raw("HGET", "feed:mysub:log", "at")) == int(before) + 10_000
    slow._since = read  # type: ignore[method-assign]  # as above
    assert [await watched.poll(fast), await watched.poll(slow), await watched.poll(fast)] == [0, 1, 0]
    assert "restored" not in caplog.text
