"""The feeder of the sample Spectacles cache: generated Discord traffic, applied event by event."""

from __future__ import annotations

import asyncio
import os

import msgspec

from keywright import aconnect
from keywright.errors import KeywrightError
from keywright_demo import names
from keywright_discord.spectacles.schema import bind
from keywright_discord.spectacles.store import SpectaclesCache
from keywright_discord.traffic import Traffic

__all__ = ["feed"]

GUILDS, MEMBERS = 5, 30
EVENTS_A_SECOND = 4
ENDLESS = 10**12
OPENING = 1 + GUILDS
"""READY and the guilds are applied before the feeder is ready."""


async def feed() -> None:
    """Apply events until the process is stopped."""
    cache, encode = SpectaclesCache(), msgspec.json.Encoder().encode
    events = Traffic(seed=1).events(ENDLESS, guilds=GUILDS, members=MEMBERS)
    async with aconnect(os.environ["REDIS_URL"], *bind(names.SPECTACLES)) as db:
        for number, (event, data) in enumerate(events, 1):
            outcome = await db.run(cache.apply([(event, encode(data))]).attempt())
            if isinstance(outcome, KeywrightError):
                print(f"{event} could not be applied: {outcome}")
            if number == OPENING:
                print("ready")
            if number >= OPENING:
                await asyncio.sleep(1 / EVENTS_A_SECOND)


if __name__ == "__main__":
    asyncio.run(feed())
