"""Everyday traffic from Discord to workers: the final cache, and the events of each worker."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from keywright import AsyncDatabase, aconnect
from keywright.testing import Raw
from keywright_discord.drc.schema import bind
from keywright_discord.drc.store import DrcCache
from keywright_discord.gateway.close_codes import CloseCode
from keywright_discord.gateway.gateway import Gateway
from keywright_discord.gateway.intents import Intents
from keywright_discord.simulator import DiscordSimulator, SimulatorSettings
from keywright_messaging import Broker

from ..gateways import configured, eventually, ready, running, workers_broker

pytestmark = pytest.mark.anyio

TRAFFIC = SimulatorSettings(identify_window_seconds=0.01, guilds=60, members=8)
EVENTS = 3000
WANTED = ("MESSAGE_CREATE", "MESSAGE_UPDATE", "PRESENCE_UPDATE", "GUILD_MEMBER_ADD")


async def test_cache_and_workers_have_all_events_in_spite_of_cuts(redis_url: str, raw: Raw) -> None:
    async with DiscordSimulator(TRAFFIC) as discord, await workers_broker(redis_url) as broker:
        more = {"DISCORD_INTENTS": ",".join(Intents.__members__), "DISCORD_EVENTS": ",".join(WANTED)}
        async with running(configured(discord, redis_url, BROKER_URL=redis_url, **more)) as gateway:
            await ready(gateway)
            traffic = discord.start_traffic(rate=2000, count=EVENTS)
            while not traffic.done():
                await _disturb(discord, gateway)
            sent = _sent(discord)
            wanted = [each for each in sent if each[0] in WANTED]
            got = await _received(broker, len(wanted))
            for event in WANTED:
                assert got[event] == [msgspec.json.decode(data) for name, data in wanted if name == event]
            await eventually(lambda: gateway.monitor.health().shards[0].backlog == 0, "it is done")
        assert len(discord.sessions) == 1
    await _apply(redis_url, sent)
    cached = _contents(raw, "bot:")
    assert len(cached) > 1000
    assert cached.pop(b"v1json-private:session:1:0"), "the mark of the gateway's session"
    assert cached == _contents(raw, "reference:")


async def _disturb(discord: DiscordSimulator, gateway: Gateway) -> None:
    for code in (None, CloseCode.UNKNOWN_ERROR):
        await asyncio.sleep(0.2)
        # A busy gateway may not have noticed the last end yet, and be ready.
        await discord.until(lambda: any(each.shard for each in discord.connections), "it is connected")
        await (discord.cut(0) if code is None else discord.close(0, code))
    await ready(gateway)


def _sent(discord: DiscordSimulator) -> list[tuple[str, bytes]]:
    [session] = discord.sessions
    payloads = session.buffer.after(0)
    assert payloads is not None
    packets = [msgspec.json.decode(each, type=dict[str, msgspec.Raw]) for each in payloads]
    return [(msgspec.json.decode(each["t"], type=str), bytes(each["d"])) for each in packets]


async def _received(broker: Broker, number: int) -> dict[str, list[Any]]:
    got: dict[str, list[Any]] = {event: [] for event in WANTED}
    async with asyncio.timeout(30), broker.consume(*WANTED) as consumer:
        while sum(map(len, got.values())) < number:
            batch = await consumer.batch(100)
            for delivery in batch:
                got[delivery.event].append(delivery.data)
            await consumer.acknowledge_all(batch)
    return got


async def _apply(redis_url: str, sent: list[tuple[str, bytes]]) -> None:
    """Apply the same events to a cache directly."""
    cache = DrcCache()
    db: AsyncDatabase
    async with aconnect(redis_url, *bind("reference")) as db:
        for start in range(0, len(sent), 100):
            await db.run(cache.apply(sent[start : start + 100]))


def _contents(raw: Raw, prefix: str) -> dict[bytes, Any]:
    readers = {b"string": "GET", b"hash": "HGETALL", b"set": "SMEMBERS"}
    lead = prefix.encode()
    return {
        name.removeprefix(lead): raw(readers[raw("TYPE", name)], name)
        for name in raw.names()
        if name.startswith(lead)
    }


@pytest.mark.parametrize("guilds", [200])
async def test_many_guilds_are_all_cached(redis_url: str, raw: Raw, guilds: int) -> None:
    settings = SimulatorSettings(identify_window_seconds=0.01, guilds=guilds, members=3)
    async with DiscordSimulator(settings) as discord, running(configured(discord, redis_url)) as gateway:
        await ready(gateway)
        await eventually(
            lambda: f't="GUILD_CREATE"}} {guilds}.0' in gateway.monitor.exposition().decode(), "all came"
        )
    assert raw("SCARD", "bot:v1json:guilds") == guilds
