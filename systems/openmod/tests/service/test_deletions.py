"""Checks of stored submissions: none is left out, and one that cannot be erased blocks no other."""

from __future__ import annotations

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
from keywright_openmod.service.deletions import DeletionChecker
from keywright_openmod.service.feeds import submission_event
from keywright_openmod.service.processor import EventProcessor
from keywright_openmod.service.reddit import RedditPlatform
from keywright_openmod.service.schema import PendingEvents, ThingChecks
from keywright_openmod.settings import OpenModSettings
from keywright_openmod.simulator import RedditSimulator

from ..reddit_service import ASYNCPRAW_WARNS

pytestmark = [ASYNCPRAW_WARNS, pytest.mark.anyio]

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
SETTINGS = OpenModSettings(target_subreddit="mysub_log")
SECOND = timedelta(seconds=1)


class Interrupted(RedditPlatform):
    """Runs something else during its first lookup of a submission."""

    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def thing(self, thing: str) -> Thing | None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return await super().thing(thing)


@pytest.mark.parametrize("happening", ["Submit", "Update"])
async def test_a_submission_that_is_recorded_while_its_last_check_ends_is_checked_again(
    redis_url: str, happening: str, reddit: RedditSimulator, db: AsyncDatabase, connection: RedditConnection
) -> None:
    """Nothing was stored of it, so its checks end; at that moment it is stored again."""

    post = reddit.world.post(reddit.world.join("author"), "mysub", "title")
    platform, calm = Interrupted(connection, "mysub"), RedditPlatform(connection, "mysub")
    finder = DeletionChecker(db, calm, Recorder(db, calm, SETTINGS))
    platform.meanwhile = finder.run_batch
    processor = EventProcessor(db, Recorder(db, platform, SETTINGS), idle=SECOND, hold=60 * SECOND)
    await db.run(ThingChecks().schedule(post.id, LONG_AGO))
    await db.run(
        PendingEvents().schedule(msgspec.json.encode(submission_event(post.id, happening)).decode(), LONG_AGO)
    )
    await processor.process_batch()
    assert await db.run(PendingEvents().size()) == 0
    assert await db.run(CacheHash(post.id).exists())
    assert await db.run(ThingChecks().has(post.id))


async def test_a_submission_that_cannot_be_erased_does_not_block_the_others(
    redis_url: str, reddit: RedditSimulator, db: AsyncDatabase, connection: RedditConnection
) -> None:
    platform = RedditPlatform(connection, "mysub")
    author = reddit.world.join("author")
    posts = [reddit.world.post(author, "mysub", f"title {number}") for number in range(3)]
    for post in posts:
        reddit.world.delete(post)
        await db.run(ThingChecks().schedule(post.id, LONG_AGO))
    stuck = posts[0].id
    with redis.Redis.from_url(redis_url) as client:
        client.set(f"mod-actions:{stuck}", "of another program")
    done = await DeletionChecker(db, platform, Recorder(db, platform, SETTINGS)).run_batch()
    assert (done.erased, [type(trouble) for trouble in done.troubles]) == (2, [WrongTypeError])
    assert await db.run(ThingChecks().members()) == [stuck]
    assert not done.more
