"""A gateway in this event loop against the simulated Discord, and helpers of its tests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import urlsplit

from keywright_discord.gateway.configuration import Configuration, load
from keywright_discord.gateway.gateway import Gateway
from keywright_discord.gateway.sessions import HOLD
from keywright_discord.simulator import DiscordSimulator
from keywright_messaging import Broker, BrokerSettings, open_broker

T = TypeVar("T")

MEMORY = "memory://gateway-tests"


def environment(discord: DiscordSimulator, redis_url: str, **more: str) -> dict[str, str]:
    """Return the environment variables of a gateway that connects to the simulator."""
    return {
        "DISCORD_TOKEN": discord.token,
        "DISCORD_API_PROTOCOL": "http",
        "DISCORD_API_HOST": urlsplit(discord.api_url).netloc,
        "DISCORD_INTENTS": "GUILDS,GUILD_MEMBERS,GUILD_MESSAGES,MESSAGE_CONTENT",
        "DISCORD_EVENTS": "MESSAGE_CREATE",
        "REDIS_URL": redis_url,
        "BROKER_URL": MEMORY,
        "CACHE_PREFIX": "bot",
        **more,
    }


def configured(discord: DiscordSimulator, redis_url: str, **more: str) -> Configuration:
    return load(environment=environment(discord, redis_url, **more))


@asynccontextmanager
async def running(configuration: Configuration, *, hold: timedelta = HOLD) -> AsyncIterator[Gateway]:
    """Run a gateway and stop it cleanly. Raise its error."""
    gateway = Gateway(configuration, identify_pause=timedelta(milliseconds=50), hold=hold)
    task = asyncio.create_task(gateway.run())
    try:
        yield gateway
    finally:
        gateway.stop()
        await task


async def ready(gateway: Gateway) -> None:
    await eventually(lambda: gateway.monitor.health().ok or None, "every shard is ready")


async def backed_up(gateway: Gateway, discord: DiscordSimulator) -> None:
    """Send more events than a gateway with a frozen Redis takes, so that it stops reading."""
    for number in range(1000):
        await discord.say(str(number), guild=discord.world.guilds[0])
    await eventually(lambda: gateway.monitor.health().shards[0].backlog >= 50, "it is full")


async def eventually(probe: Callable[[], T | None], what: str, *, seconds: float = 30.0) -> T:
    """Poll until the probe returns something true, and return it."""
    deadline = time.monotonic() + seconds
    while not (found := probe()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        await asyncio.sleep(0.01)
    return found


async def eventually_true(probe: Callable[[], Awaitable[T | None]], what: str, *, seconds: float = 30.0) -> T:
    deadline = time.monotonic() + seconds
    while not (found := await probe()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        await asyncio.sleep(0.02)
    return found


async def workers_broker(url: str = MEMORY) -> Broker:
    """Open the broker of a worker."""
    return await open_broker(url, BrokerSettings(group="gateway", client="worker"))


async def take(broker: Broker, event: str, number: int, subgroup: str | None = None) -> list[Any]:
    """Consume and acknowledge `number` messages. Return their data."""
    found: list[Any] = []
    async with asyncio.timeout(30), broker.consume(event, subgroup=subgroup) as consumer:
        while len(found) < number:
            batch = await consumer.batch(number - len(found))
            found += [delivery.data for delivery in batch]
            await consumer.acknowledge_all(batch)
    return found
