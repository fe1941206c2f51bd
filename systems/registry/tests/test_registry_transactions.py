"""Changes go to the database first; the cache follows the commit, and never before it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from keywright import AsyncDatabase, Call, Retry, Settings, aconnect
from keywright.errors import UsageError
from keywright.testing import Proxy, Raw
from keywright_registry.cache import RepositoryCache
from keywright_registry.cache_metrics import CacheEvent, CacheEventCounter
from keywright_registry.counters import count, pending
from keywright_registry.metadata import Metadata, MetadataTransaction
from keywright_registry.registry import Registry, RegistryTransaction
from keywright_registry.repository import Counts, Repository

from .registry_databases import opened
from .registry_doubles import CountingMetadata, until

pytestmark = pytest.mark.anyio

QUICK = Settings(timeout_seconds=0.5, connect_seconds=0.5, retry=Retry(attempts=1))
BELOW = ("acme/old", "acme/old/api", "acme/old/api/v1")


@asynccontextmanager
async def registry_in(
    redis: AsyncDatabase, folder: Path, *, absence: bool = False
) -> AsyncIterator[Registry]:
    async with opened(f"sqlite:///{folder}/registry.db") as metadata:
        registry = Registry(redis, metadata, cache=RepositoryCache(absence=absence))
        try:
            yield registry
        finally:
            await registry.close()


async def test_nothing_is_cached_before_the_commit_and_everything_after(
    redis: AsyncDatabase, raw: Raw, tmp_path: Path
) -> None:
    async with registry_in(redis, tmp_path) as registry:
        async with registry.transaction() as transaction:
            made = await transaction.create_or_find("acme/web")
            assert await transaction.find("acme/web") == made
            assert raw.names() == set()
        assert await redis.run(registry.cache.get("acme/web")) == made
        async with registry.transaction() as transaction:
            updated = await transaction.update(msgspec.structs.replace(made, size=5))
        assert await redis.run(registry.cache.get("acme/web")) == updated
        async with registry.transaction() as transaction:
            assert await transaction.delete("acme/web")
        assert await redis.run(registry.cache.get("acme/web")) is None
        assert await registry.find("acme/web") is None


async def test_a_transaction_that_fails_leaves_the_cache_as_it_was(
    redis: AsyncDatabase, raw: Raw, tmp_path: Path
) -> None:
    async with registry_in(redis, tmp_path) as registry:
        with pytest.raises(RuntimeError):
            await _create_and_fail(registry)
        assert raw.names() == set()
        assert await registry.find("acme/web") is None


async def test_a_cache_write_inside_is_refused_there_and_in_tasks_of_it(
    redis: AsyncDatabase, raw: Raw, tmp_path: Path
) -> None:
    async with registry_in(redis, tmp_path) as registry:
        async with registry.transaction() as transaction:
            made = await transaction.create_or_find("acme/web")
            write = registry.cache.set(made)
            with pytest.raises(UsageError, match="after the commit"):
                await redis.run(write)
            with pytest.raises(UsageError, match="after the commit"):
                await asyncio.create_task(redis.run(write))
            with pytest.raises(UsageError, match="after the commit"):
                await registry.invalidate_size("acme/web")
            with pytest.raises(UsageError, match="open here already"):
                async with registry.transaction():
                    pass
            left = asyncio.Event()
            late = asyncio.create_task(_run_after(left, redis, write))
            assert raw.names() == set()
        await redis.run(registry.cache.delete("acme/web"))
        left.set()
        await late  # its copy of the mark ended with the transaction
        assert await redis.run(registry.cache.get("acme/web")) == made


async def _create_and_fail(registry: Registry) -> None:
    async with registry.transaction() as transaction:
        await transaction.create_or_find("acme/web")
        raise RuntimeError("changed its mind")


async def _run_after(left: asyncio.Event, redis: AsyncDatabase, write: Call[None]) -> None:
    await left.wait()
    await redis.run(write)


async def test_a_rename_takes_the_cache_and_the_counts_along(redis: AsyncDatabase, tmp_path: Path) -> None:
    async with registry_in(redis, tmp_path) as registry:
        async with registry.transaction() as transaction:
            for path in BELOW:
                await transaction.create_or_find(path)
        await redis.run(count("acme/old/api", pulls=3))
        async with registry.transaction() as transaction:
            moved = await transaction.rename("acme/old", "elsewhere/new")
        assert [old for old, _ in moved] == list(BELOW)
        cached = await redis.run(registry.cache.get_many([*BELOW, *(new.path for _, new in moved)]))
        assert cached == {new.path: new for _, new in moved}
        assert await registry.find("acme/old/api") is None
        assert await registry.metadata.counts("elsewhere/new/api") == Counts("elsewhere/new/api", 3)
        assert await redis.run(pending("acme/old/api")) == Counts("acme/old/api")


async def test_known_absence_ends_when_a_repository_or_its_parents_appear(
    redis: AsyncDatabase, tmp_path: Path
) -> None:
    async with registry_in(redis, tmp_path, absence=True) as registry:
        for path in ("acme", "acme/web", "new", "new/home"):
            assert await registry.find(path) is None
        async with registry.transaction() as transaction:
            await transaction.create_or_find("acme/web")
        assert [await registry.find(path) is not None for path in ("acme", "acme/web")] == [True, True]
        async with registry.transaction() as transaction:
            await transaction.rename("acme/web", "new/home/web")
        assert [await registry.find(path) is not None for path in ("new", "new/home")] == [True, True]


class Held(CountingMetadata):
    """A database that can hold back the result of a query."""

    def __init__(self, inner: Metadata) -> None:
        super().__init__()
        self.inner = inner

    async def find(self, path: str) -> Repository | None:
        found = await self.inner.find(path)
        await self._answer()
        return found

    def transaction(self) -> AbstractAsyncContextManager[MetadataTransaction]:
        return self.inner.transaction()


async def test_a_lookup_after_a_commit_does_not_join_an_earlier_query(
    redis: AsyncDatabase, tmp_path: Path
) -> None:
    async with registry_in(redis, tmp_path) as other:
        async with other.transaction() as transaction:
            made = await transaction.create_or_find("acme")
        await redis.run(other.cache.delete("acme"))
        held = Held(other.metadata)
        registry = Registry(redis, held)
        held.gate.clear()
        before = asyncio.create_task(registry.find("acme"))
        await held.asked.wait()
        async with registry.transaction() as transaction:
            await transaction.delete("acme")
        after = asyncio.create_task(registry.find("acme"))
        held.gate.set()
        assert (await before, await after) == (made, None)
        assert await redis.run(registry.cache.get("acme")) is None
        await registry.close()


class Slow(Registry):
    """Reaches the cache late: its commit is written there when the gate opens."""

    def __init__(self, redis: AsyncDatabase, metadata: Metadata) -> None:
        super().__init__(redis, metadata)
        self.committed, self.gate = asyncio.Event(), asyncio.Event()

    async def _committed(self, changes: RegistryTransaction) -> None:
        self.committed.set()
        await self.gate.wait()
        await super()._committed(changes)


async def test_a_transaction_that_reaches_the_cache_last_does_not_overwrite_a_later_commit(
    redis: AsyncDatabase, tmp_path: Path
) -> None:
    async with registry_in(redis, tmp_path) as registry:
        async with registry.transaction() as transaction:
            made = await transaction.create_or_find("acme")
        slow = Slow(redis, registry.metadata)
        first = asyncio.create_task(_resize(slow, made, 1))
        await slow.committed.wait()
        await _resize(registry, made, 2)
        slow.gate.set()
        await first
        cached = await redis.run(registry.cache.get("acme"))
        assert cached is not None
        assert cached.size == 2


async def test_writers_and_readers_at_once_leave_the_cache_as_the_database(
    redis: AsyncDatabase, tmp_path: Path
) -> None:
    async with registry_in(redis, tmp_path) as one, AsyncExitStack() as closing:
        other = Registry(redis, one.metadata)
        closing.push_async_callback(other.close)
        async with one.transaction() as transaction:
            made = await transaction.create_or_find("acme")
        for turn in range(10):
            writing = [_resize((one, other)[number % 2], made, 10 * turn + number) for number in range(6)]
            reading = [(one, other)[number % 2].find("acme") for number in range(60)]
            forgetting = [redis.run(one.cache.delete("acme")) for _ in range(5)]
            await asyncio.gather(*writing, *reading, *forgetting)
            expected = await one.metadata.find("acme")
            assert await redis.run(one.cache.get("acme")) in (expected, None)
            assert await one.find("acme") == await other.find("acme") == expected


async def _resize(registry: Registry, repository: Repository, size: int) -> None:
    async with registry.transaction() as transaction:
        await transaction.update(msgspec.structs.replace(repository, size=size))


async def test_a_change_that_did_not_reach_the_cache_is_retried(
    redis_url: str, make_proxy: Callable[[str], Proxy], raw: Raw, tmp_path: Path
) -> None:
    proxy = make_proxy(redis_url)
    async with aconnect(proxy.url, settings=QUICK) as redis, registry_in(redis, tmp_path) as registry:
        async with registry.transaction() as transaction:
            made = await transaction.create_or_find("acme")
        outdated = raw.names()
        proxy.refuse()
        proxy.cut()
        async with registry.transaction() as transaction:
            updated = await transaction.update(msgspec.structs.replace(made, size=9))
        metrics = registry.metrics
        assert isinstance(metrics, CacheEventCounter)
        assert metrics[CacheEvent.WRITE_FAILED] == 1
        assert raw.names() == outdated  # Redis still has the old one
        assert await registry.find("acme") == updated
        proxy.heal()

        async def is_cached_again() -> bool:
            assert await registry.find("acme") == updated
            return await redis.run(registry.cache.get("acme")) == updated

        await until(is_cached_again)
        assert raw.names() == outdated
