"""Reading a feed on: what was read is pending, and stays read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from keywright import AsyncDatabase, aconnect
from keywright.testing import ManualClock
from keywright_openmod.service.connection import RedditConnection
from keywright_openmod.service.feed_poller import FeedReader
from keywright_openmod.service.feeds import reddit_feeds
from keywright_openmod.service.schema import PendingEvents, bind
from keywright_openmod.simulator import RedditSimulator, World

from ..reddit_service import ASYNCPRAW_WARNS, credentials

pytestmark = ASYNCPRAW_WARNS

NOON = datetime(2024, 1, 2, 12, tzinfo=UTC)


class Scene(NamedTuple):
    reddit: RedditSimulator
    db: AsyncDatabase
    clock: ManualClock
    connection: RedditConnection

    def moderate(self) -> None:
        author = self.reddit.populate(1)[0]
        post = self.reddit.world.post(author, "mysub", "title")
        self.reddit.world.moderate(self.reddit.moderator, "removelink", post, "mysub")

    async def read(self) -> int:
        """A process that has just started reads the log; how much was pending, which is handled then."""
        log = reddit_feeds(self.connection, "mysub")[0]
        every = timedelta(seconds=1)
        await FeedReader(self.db, log, "mysub", backfill=timedelta(minutes=1), every=every).step()
        pending = await self.db.run(PendingEvents().members())
        for event in pending:
            await self.db.run(PendingEvents().remove(event))
        return len(pending)


def told(redis_url: str, story: Callable[[Scene], Awaitable[None]]) -> None:
    async def session() -> None:
        clock = ManualClock(NOON)
        world = World(clock=lambda: clock.now().timestamp())
        async with (
            RedditSimulator(world=world) as reddit,
            aconnect(redis_url, *bind(), clock=clock) as db,
            RedditConnection(credentials(reddit)) as connection,
        ):
            await story(Scene(reddit, db, clock, connection))

    asyncio.run(session())


def test_a_restart_reads_the_last_entries_again_as_some_may_have_appeared_late(redis_url: str) -> None:
    async def story(scene: Scene) -> None:
        scene.moderate()
        assert await scene.read() == 1
        scene.clock.advance(hours=1)
        assert await scene.read() == 1

    told(redis_url, story)


@pytest.mark.parametrize("days", [13.5, 14, 30])
def test_entries_whose_markers_may_have_expired_are_not_read_again(redis_url: str, days: float) -> None:
    """In a quiet subreddit the newest entry may be weeks old; handled again it would be published again."""

    async def story(scene: Scene) -> None:
        scene.moderate()
        assert await scene.read() == 1
        scene.clock.advance(days=days)
        assert await scene.read() == 0
        scene.moderate()
        assert await scene.read() == 1

    told(redis_url, story)
