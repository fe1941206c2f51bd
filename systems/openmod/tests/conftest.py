"""An installation of Open Mod on an empty server, single or cluster; a simulated Reddit and a database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from keywright import AsyncDatabase
from keywright.testing import Raw
from keywright_openmod.service.connection import RedditConnection
from keywright_openmod.service.reddit import RedditPlatform
from keywright_openmod.simulator import RedditSimulator

from .newsroom import Newsroom, newsroom
from .reddit_service import credentials, database


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def reddit() -> AsyncIterator[RedditSimulator]:
    async with RedditSimulator() as simulator:
        yield simulator


@pytest.fixture
async def connection(reddit: RedditSimulator) -> AsyncIterator[RedditConnection]:
    async with RedditConnection(credentials(reddit)) as opened:
        yield opened


@pytest.fixture
def platform(connection: RedditConnection) -> RedditPlatform:
    return RedditPlatform(connection, "mysub")


@pytest.fixture
async def db(redis_url: str) -> AsyncIterator[AsyncDatabase]:
    async with database(redis_url) as opened:
        yield opened


@pytest.fixture
def room(redis_url: str, raw: Raw) -> Iterator[Newsroom]:
    with newsroom(redis_url, raw) as opened:
        yield opened


@pytest.fixture
def cluster_room(cluster_url: str, raw_cluster: Raw) -> Iterator[Newsroom]:
    with newsroom(cluster_url, raw_cluster) as opened:
        yield opened


@pytest.fixture(params=["single", "cluster"])
def any_room(request: pytest.FixtureRequest) -> Newsroom:
    """Once on a single server, once on a cluster."""
    found: Newsroom = request.getfixturevalue("room" if request.param == "single" else "cluster_room")
    return found
