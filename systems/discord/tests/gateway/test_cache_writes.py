"""Cache writes of a shard's pipeline: only while it holds the lease, and each event once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from keywright import AsyncDatabase, aconnect
from keywright.testing import RedisServer
from keywright_discord.drc.reader import DrcReader
from keywright_discord.drc.schema import bind
from keywright_discord.drc.store import DrcCache
from keywright_discord.gateway.actions import Dispatch, Session
from keywright_discord.gateway.cache_watch import CacheWatch
from keywright_discord.gateway.event_filter import EventFilter
from keywright_discord.gateway.metrics import Monitor
from keywright_discord.gateway.pipeline import Pipeline, Progress
from keywright_discord.gateway.schema import gateway
from keywright_discord.gateway.sessions import Tenancy
from keywright_messaging import BrokerSettings, open_broker

from ..gateways import MEMORY, eventually, eventually_true

pytestmark = pytest.mark.anyio

SESSION = Session("abc", "wss://resume")
GUILD, CHANNEL, MESSAGE = "613425648685547541", "613425648685547542", "613425648685547543"


def dispatch(sequence: int, event: str, **data: Any) -> Dispatch:
    return Dispatch(event, sequence, msgspec.Raw(msgspec.json.encode(data)))


def opened(url: str) -> aconnect:
    return aconnect(url, gateway.bind(), *bind("bot"))


@asynccontextmanager
async def writing(
    db: AsyncDatabase, tenancy: Tenancy, *events: Dispatch
) -> AsyncIterator[asyncio.Task[None]]:
    """Run a pipeline with these events, all of one batch, and no more to come."""

    async def save(progress: Progress) -> None:
        pass

    watch = CacheWatch(db, "1", 0, 1, None)
    async with await open_broker(MEMORY, BrokerSettings()) as broker:
        pipeline = Pipeline(tenancy, DrcCache(), db, broker, EventFilter([]), save, Monitor(), watch, SESSION)
        for event in events:
            pipeline.add(event)
        pipeline.close()
        task = asyncio.create_task(pipeline.run())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait([task])


async def test_a_process_that_lost_the_shard_does_not_write_over_its_successor(redis_url: str) -> None:
    async with opened(redis_url) as db:
        stalled = Tenancy(db, "bot", 0, 1, hold=timedelta(milliseconds=100))
        await stalled.begin()
        successor = Tenancy(db, "bot", 0, 1)
        await successor.begin()
        await db.run(DrcCache().apply([("GUILD_CREATE", _guild("new"))]))
        async with writing(db, stalled, dispatch(2, "GUILD_UPDATE", id=GUILD, name="old")) as task:
            await eventually(lambda: stalled.elsewhere or task.done(), "it looks before it writes")
            assert await _name(db) == "new"
            assert not task.done()


async def test_an_expired_lease_is_acquired_again_before_writing(redis_url: str) -> None:
    async with opened(redis_url) as db:
        tenancy = Tenancy(db, "bot", 0, 1, hold=timedelta(milliseconds=50))
        await tenancy.begin()
        await db.run(DrcCache().apply([("GUILD_CREATE", _guild("old"))]))
        await eventually_true(lambda: _is_free(db), "the lease ran out")
        async with writing(db, tenancy, dispatch(2, "GUILD_UPDATE", id=GUILD, name="new")) as task:
            await task
        assert await _name(db) == "new"


async def _is_free(db: AsyncDatabase) -> bool:
    other = Tenancy(db, "bot", 0, 1)
    free = await other._renewed()
    await other.end()
    return free


def _guild(name: str) -> bytes:
    return msgspec.json.encode({"id": GUILD, "name": name, "channels": [], "members": []})


async def _name(db: AsyncDatabase) -> str | None:
    found = await db.run(DrcReader().guild(GUILD))
    return found["name"] if found else None


async def test_events_that_a_refused_write_left_in_the_cache_are_not_applied_again(
    redis_url: str, keywright_server: RedisServer
) -> None:
    def counted(statistic: str, command: str = "") -> int:
        lines = keywright_server.text("INFO", "commandstats").splitlines()
        found = [line.partition(":")[2] for line in lines if line.startswith(f"cmdstat_{command}")]
        return sum(int(dict(part.split("=") for part in each.split(","))[statistic]) for each in found)

    def allow(*rules: str) -> None:
        keywright_server.call("ACL", "SETUSER", "default", *rules)

    try:
        async with opened(redis_url) as db:
            tenancy = Tenancy(db, "bot", 0, 1, hold=timedelta(hours=1))
            await tenancy.begin()
            events = (
                dispatch(2, "GUILD_CREATE", id=GUILD, name="short-lived", channels=[], members=[]),
                dispatch(3, "GUILD_DELETE", id=GUILD),
                dispatch(4, "MESSAGE_CREATE", id=MESSAGE, channel_id=CHANNEL, content="hello"),
            )
            kept = ("gateway*", "bot:v1json:guilds*", f"bot:v1json*{GUILD}*")
            allow("resetkeys", *(f"~{pattern}" for pattern in kept))
            keywright_server.call("CONFIG", "RESETSTAT")
            async with writing(db, tenancy, *events) as task:
                await eventually(lambda: counted("rejected_calls") >= 3 or task.done(), "it tries on")
                assert await tenancy.applied(SESSION.id) == 3
                assert counted("calls", "sadd") == 1
                allow("allkeys")
                await task
            assert await tenancy.applied(SESSION.id) == 4
            assert await db.run(DrcReader(hydrate=False).get("message", MESSAGE)) is not None
    finally:
        allow("allkeys")
