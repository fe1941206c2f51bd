"""The service of Open Mod in this event loop against the simulated Reddit, and waits for its results."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest

from keywright import AsyncDatabase, Secret, aconnect
from keywright_openmod.service.configuration import OpenModConfiguration, load
from keywright_openmod.service.connection import RedditConnection
from keywright_openmod.service.credentials import Credentials
from keywright_openmod.service.reddit import RedditPlatform
from keywright_openmod.service.schema import PendingEvents, bind
from keywright_openmod.service.service import OpenModService
from keywright_openmod.simulator import RedditSimulator

T = TypeVar("T")

# asyncprawcore 4.0 uses what aiohttp 3.14 deprecates; nothing of ours does.
ASYNCPRAW_WARNS = pytest.mark.filterwarnings(
    "ignore:(BasicAuth|The 'auth' parameter) is deprecated:DeprecationWarning"
)


def environment(reddit: RedditSimulator, redis_url: str, **more: str) -> dict[str, str]:
    """Return the variables that point a service at the simulator."""
    chosen = reddit.settings
    return {
        "OPENMOD_SUBREDDIT": chosen.subreddit,
        "OPENMOD_TARGET_SUBREDDIT": chosen.target,
        "OPENMOD_POLL": "20ms",
        "OPENMOD_ENFORCE": "20ms",
        "OPENMOD_RETRY": "20ms",
        "OPENMOD_HOLD": "5s",
        "REDDIT_CLIENT_ID": chosen.client_id,
        "REDDIT_CLIENT_SECRET": chosen.client_secret,
        "REDDIT_USERNAME": chosen.username,
        "REDDIT_PASSWORD": chosen.password,
        "REDDIT_URL": reddit.url,
        "REDDIT_OAUTH_URL": reddit.url,
        "REDIS_URL": redis_url,
        **more,
    }


def configured(reddit: RedditSimulator, redis_url: str, **more: str) -> OpenModConfiguration:
    return load(environment=environment(reddit, redis_url, **more))


def credentials(reddit: RedditSimulator, timeout_seconds: float = 16.0) -> Credentials:
    chosen = reddit.settings
    return Credentials(
        client_id=chosen.client_id,
        client_secret=Secret(chosen.client_secret),
        username=chosen.username,
        password=Secret(chosen.password),
        url=reddit.url,
        oauth_url=reddit.url,
        timeout_seconds=timeout_seconds,
    )


@asynccontextmanager
async def platform_of(
    reddit: RedditSimulator, timeout_seconds: float = 16.0
) -> AsyncIterator[RedditPlatform]:
    async with RedditConnection(credentials(reddit, timeout_seconds)) as connection:
        yield RedditPlatform(connection, reddit.settings.subreddit)


@asynccontextmanager
async def serving(configuration: OpenModConfiguration) -> AsyncIterator[OpenModService]:
    """Run the service, and stop it cleanly. An error of the service is raised here."""
    service = OpenModService(configuration)
    task = asyncio.create_task(service.run())
    try:
        yield service
    finally:
        service.stop()
        await task


@asynccontextmanager
async def database(redis_url: str) -> AsyncIterator[AsyncDatabase]:
    async with aconnect(redis_url, *bind()) as db:
        yield db


async def eventually(probe: Callable[[], T | None], what: str, *, seconds: float = 30.0) -> T:
    """Call the probe until it returns something true, and return that."""

    async def asynchronous() -> T | None:
        return probe()

    return await eventually_true(asynchronous, what, seconds=seconds)


async def eventually_true(probe: Callable[[], Awaitable[T | None]], what: str, *, seconds: float = 30.0) -> T:
    """Await the probe until it returns something true, and return that."""
    deadline = time.monotonic() + seconds
    while not (found := await probe()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        await asyncio.sleep(0.01)
    return found


async def published(reddit: RedditSimulator, number: int) -> None:
    """Wait for this many extracts."""
    await eventually(lambda: len(reddit.extracts) >= number, f"{number} extracts", seconds=60)


async def settled(db: AsyncDatabase) -> None:
    """Wait until no event is pending."""

    async def nothing_pending() -> bool:
        return await db.run(PendingEvents().size()) == 0

    await eventually_true(nothing_pending, "no event is pending", seconds=60)
