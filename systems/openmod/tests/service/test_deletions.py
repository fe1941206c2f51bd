"""Looking at what is kept: nothing is left unwatched, and what cannot be forgotten keeps nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
import redis

from keywright import AsyncDatabase
from keywright.errors import WrongTypeError
from keywright_openmod.platform import Thing
from keywright_openmod.recorder import Recorder
from keywright_openmod.schema import CacheHash
from keywright_openmod.service.connection import RedditConnection
from keywright_openmod.service.deletions import DeletionFinder
from keywright_openmod.service.feeds import about
from keywright_openmod.service.processor import EventHandler
from keywright_openmod.service.reddit import RedditPlatform
from keywright_openmod.service.schema import PendingEvents, ThingChecks
from keywright_openmod.settings import Settings
from keywright_openmod.simulator import RedditSimulator

from ..reddit_service import ASYNCPRAW_WARNS, credentials, database

pytestmark = ASYNCPRAW_WARNS

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
SETTINGS = Settings(target_subreddit="mysub_log")
SECOND = timedelta(seconds=1)


class Interrupted(RedditPlatform):
    """While it first asks for a submission something else happens."""

    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def thing(self, thing: str) -> Thing | None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return await super().thing(thing)


def told(
    redis_url: str, story: Callable[[RedditSimulator, AsyncDatabase, RedditConnection], Awaitable[None]]
) -> None:
    async def session() -> None:
        async with (
            RedditSimulator() as reddit,
            database(redis_url) as db,
            RedditConnection(credentials(reddit)) as connection,
        ):
            await story(reddit, db, connection)

    asyncio.run(session())


@pytest.mark.parametrize("happening", ["Submit", "Update"])
def test_a_submission_that_is_recorded_while_its_last_check_ends_is_checked_again(
    redis_url: str, happening: str
) -> None:
    """Nothing was kept of it any more, so it is not looked at again; just then something is kept again."""

    async def story(reddit: RedditSimulator, db: AsyncDatabase, connection: RedditConnection) -> None:
        post = reddit.world.post(reddit.world.join("author"), "mysub", "title")
        platform, calm = Interrupted(connection, "mysub"), RedditPlatform(connection, "mysub")
        finder = DeletionFinder(db, calm, Recorder(db, calm, SETTINGS))
        platform.meanwhile = finder.run_batch
        handler = EventHandler(db, Recorder(db, platform, SETTINGS), idle=SECOND, hold=60 * SECOND)
        await db.run(ThingChecks().schedule(post.id, LONG_AGO))
        await db.run(
            PendingEvents().schedule(msgspec.json.encode(about(post.id, happening)).decode(), LONG_AGO)
        )
        await handler.step()
        assert await db.run(PendingEvents().size()) == 0
        assert await db.run(CacheHash(post.id).exists())
        assert await db.run(ThingChecks().has(post.id))

    told(redis_url, story)


def test_a_submission_that_cannot_be_erased_does_not_block_the_others(redis_url: str) -> None:
    async def story(reddit: RedditSimulator, db: AsyncDatabase, connection: RedditConnection) -> None:
        platform = RedditPlatform(connection, "mysub")
        author = reddit.world.join("author")
        posts = [reddit.world.post(author, "mysub", f"title {number}") for number in range(3)]
        for post in posts:
            reddit.world.delete(post)
            await db.run(ThingChecks().schedule(post.id, LONG_AGO))
        stuck = posts[0].id
        with redis.Redis.from_url(redis_url) as client:
            client.set(f"mod-actions:{stuck}", "of another program")
        done = await DeletionFinder(db, platform, Recorder(db, platform, SETTINGS)).run_batch()
        assert (done.forgotten, [type(trouble) for trouble in done.troubles]) == (2, [WrongTypeError])
        assert await db.run(ThingChecks().members()) == [stuck]
        assert not done.more

    told(redis_url, story)
