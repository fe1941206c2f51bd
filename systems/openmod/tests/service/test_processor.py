"""The event processor: concurrent events, several of which fail."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from keywright import AsyncDatabase
from keywright_openmod.platform import Thing
from keywright_openmod.recorder import Recorder
from keywright_openmod.service.connection import RedditConnection
from keywright_openmod.service.feeds import submission_event
from keywright_openmod.service.processor import EventProcessor
from keywright_openmod.service.reddit import RedditPlatform
from keywright_openmod.service.schema import PendingEvents
from keywright_openmod.settings import OpenModSettings
from keywright_openmod.simulator import RedditSimulator
from keywright_service.errors import PlatformTroubleError

from ..reddit_service import ASYNCPRAW_WARNS

pytestmark = [ASYNCPRAW_WARNS, pytest.mark.anyio]

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Troubled(RedditPlatform):
    """Fails in one way for one submission and in another for the next."""

    async def thing(self, thing: str) -> Thing | None:
        if thing == "t3_1":
            raise PlatformTroubleError("Reddit", thing, "an outage")
        if thing == "t3_2":
            raise RecursionError("a bug")
        return await super().thing(thing)


@pytest.mark.parametrize("second", [None, "t3_2"])
async def test_a_bug_is_raised_though_an_outage_came_first(
    second: str | None, reddit: RedditSimulator, db: AsyncDatabase, connection: RedditConnection
) -> None:
    platform = Troubled(connection, "mysub")
    recorder = Recorder(db, platform, OpenModSettings(target_subreddit="mysub_log"))
    processor = EventProcessor(db, recorder, idle=SECOND, hold=60 * SECOND)
    post = reddit.world.post(reddit.world.join("author"), "mysub", "title")
    for place, thing in enumerate(filter(None, ("t3_1", second, post.id))):
        event = msgspec.json.encode(submission_event(thing, "Submit")).decode()
        await db.run(PendingEvents().schedule(event, LONG_AGO + place * SECOND))
    with pytest.raises(RecursionError if second else PlatformTroubleError):
        await processor.process_batch()
    left = await db.run(PendingEvents().members())
    assert sorted(msgspec.json.decode(event)["post"]["id"] for event in left) == sorted(
        filter(None, ("t3_1", second))
    )
