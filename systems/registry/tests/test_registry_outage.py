"""Redis is killed under load: every lookup is answered by the database, and hits return without a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from keywright import AsyncDatabase
from keywright.testing import RedisServer
from keywright_registry.cache_metrics import CacheEvent, CacheEventCounter
from keywright_registry.registry import Registry
from keywright_registry.repository import Repository

from .registry_databases import create, opened
from .registry_doubles import until

pytestmark = pytest.mark.anyio

PATHS = [f"acme/{number}" for number in range(20)]
CLIENTS = 8


async def test_lookups_go_on_without_redis_and_hit_again_when_it_is_back(
    redis: AsyncDatabase, keywright_server: RedisServer, tmp_path: Path
) -> None:
    async with opened(f"sqlite:///{tmp_path}/registry.db") as metadata:
        await create(metadata, *PATHS)
        expected = await metadata.find_many(PATHS)
        metrics = CacheEventCounter()
        registry = Registry(redis, metadata, metrics=metrics)
        load = Load(registry, expected)
        clients = [asyncio.create_task(load.look_up()) for _ in range(CLIENTS)]
        await load.answered(200)
        assert metrics[CacheEvent.HIT] > 0
        keywright_server.kill()
        await load.answered(200)
        assert metrics[CacheEvent.UNREACHABLE] > 0
        assert metrics[CacheEvent.SKIPPED] > 0
        keywright_server.start()
        before = metrics[CacheEvent.HIT]
        while metrics[CacheEvent.HIT] < before + 100:
            await load.answered(50)
        load.over = True
        await asyncio.gather(*clients)
        await registry.close()


class Load:
    """Clients that look repositories up and check every answer."""

    def __init__(self, registry: Registry, expected: dict[str, Repository]) -> None:
        self.registry = registry
        self.expected = expected
        self.answers = 0
        self.over = False

    async def look_up(self) -> None:
        while not self.over:
            for path in PATHS:
                assert await self.registry.find(path) == self.expected[path]
                self.answers += 1

    async def answered(self, more: int) -> None:
        """Until that many more lookups were answered."""
        enough = self.answers + more

        async def are_there() -> bool:
            return self.answers >= enough

        await until(are_there)
