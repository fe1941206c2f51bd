"""A committed change reaches the cache despite cancellations, lost replies and slow servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from keywright import AsyncDatabase, Retry, Settings, aconnect
from keywright.testing import Proxy, Raw
from keywright_registry import counters
from keywright_registry.cache import RepositoryCache
from keywright_registry.cache_metrics import CacheEvent, CacheEventCounter
from keywright_registry.cache_updates import CacheUpdater
from keywright_registry.circuit_breaker import CircuitBreaker
from keywright_registry.counters import CountFlusher, count, pending
from keywright_registry.errors import MetadataUnreachableError
from keywright_registry.metadata import Metadata, MetadataTransaction
from keywright_registry.registry import Registry
from keywright_registry.repository import Counts, Repository
from keywright_registry.schema import CachedRepository, CountBatch

from .registry_databases import opened
from .registry_doubles import CountingMetadata, until
from .registry_vectors import repository_at

pytestmark = pytest.mark.anyio

QUICK = Settings(timeout_seconds=0.5, connect_seconds=0.5, retry=Retry(attempts=1))
PATIENT = Settings(timeout_seconds=600, connect_seconds=600, retry=Retry(attempts=1))
CACHED = b"registry:" + bytes(CachedRepository.of("acme"))


class Answerless(CountingMetadata):
    """A database whose reply to one commit is lost; it adds no counts."""

    def __init__(self, inner: Metadata, loss: BaseException | None = None) -> None:
        super().__init__()
        self.inner = inner
        self.loss = loss

    async def add_counts(self, batch: str, counts: Sequence[Counts]) -> bool:
        raise MetadataUnreachableError("here", "it is gone")

    async def find(self, path: str) -> Repository | None:
        return await self.inner.find(path)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[MetadataTransaction]:
        async with self.inner.transaction() as transaction:
            yield transaction
        loss, self.loss = self.loss, None
        if loss is not None:
            raise loss


@asynccontextmanager
async def cached_acme(
    redis: AsyncDatabase, folder: Path, *, deadline_seconds: float = 0.5
) -> AsyncIterator[tuple[Registry, Repository]]:
    """A registry whose cache has one repository."""
    async with opened(f"sqlite:///{folder}/registry.db") as metadata:
        registry = Registry(redis, metadata, deadline_seconds=deadline_seconds)
        try:
            async with registry.transaction() as transaction:
                made = await transaction.create_or_find("acme")
            yield registry, made
        finally:
            await registry.close()


async def resize(registry: Registry, repository: Repository, size: int) -> None:
    async with registry.transaction() as transaction:
        await transaction.update(msgspec.structs.replace(repository, size=size))


async def size_in(registry: Registry) -> int | None:
    found = await registry.find("acme")
    assert found is not None
    return found.size


async def test_a_path_is_stale_after_its_writer_was_cancelled_during_the_cache_write(
    redis_url: str, make_proxy: Callable[[str], Proxy], raw: Raw, tmp_path: Path
) -> None:
    proxy = make_proxy(redis_url)
    async with (
        aconnect(proxy.url, settings=PATIENT) as redis,
        cached_acme(redis, tmp_path, deadline_seconds=60) as (registry, made),
    ):
        proxy.delay(60)  # no connection is greeted any more, so nothing is sent
        proxy.cut()
        before = proxy.connections
        writing = asyncio.create_task(resize(registry, made, 9))

        async def is_telling() -> bool:
            return proxy.connections > before

        await until(is_telling)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        proxy.cut()
        proxy.heal()
        assert raw("EXISTS", CACHED), "Redis still has the old one"
        assert await size_in(registry) == 9
        assert [each.size for each in (await registry.find_many(["acme"])).values()] == [9]

        async def is_forgotten() -> bool:
            return not raw("EXISTS", CACHED)

        await until(is_forgotten)


@pytest.mark.parametrize(
    "loss", [MetadataUnreachableError("here", "lost"), asyncio.CancelledError()], ids=["lost", "cancelled"]
)
async def test_a_commit_with_a_lost_reply_invalidates_the_cache(
    loss: BaseException, redis: AsyncDatabase, tmp_path: Path
) -> None:
    async with cached_acme(redis, tmp_path) as (registry, made):
        unsure = Registry(redis, Answerless(registry.metadata, loss))
        with pytest.raises(type(loss)):
            await resize(unsure, made, 9)
        assert await size_in(unsure) == 9

        async def is_known_to_all() -> bool:
            return await size_in(registry) == 9

        await until(is_known_to_all)
        await unsure.close()


async def test_stale_paths_are_deleted_when_the_registry_is_closed(
    redis_url: str, make_proxy: Callable[[str], Proxy], raw: Raw, tmp_path: Path
) -> None:
    proxy = make_proxy(redis_url)
    async with (
        aconnect(proxy.url, settings=QUICK) as redis,
        cached_acme(redis, tmp_path) as (registry, made),
    ):
        proxy.refuse()
        proxy.cut()
        await resize(registry, made, 9)
        assert raw("EXISTS", CACHED)
        proxy.heal()
        await registry.close()
        assert not raw("EXISTS", CACHED)


async def test_a_path_that_becomes_stale_again_during_its_deletion_stays_stale(
    redis_url: str, make_proxy: Callable[[str], Proxy], raw: Raw
) -> None:
    proxy = make_proxy(redis_url)

    async def is_deleted() -> bool:
        return not raw("EXISTS", CACHED)

    async with aconnect(proxy.url, settings=PATIENT) as redis:
        await redis.run(RepositoryCache().get("acme"))
        breaker = CircuitBreaker(redis, deadline_seconds=60, reset_seconds=0)
        updater = CacheUpdater(breaker, RepositoryCache(), CacheEventCounter())
        raw("SET", CACHED, "old")
        proxy.delay(60)
        updater.delete_later(["acme"])
        await until(is_deleted)  # the reply is still under way
        raw("SET", CACHED, "older than the next change")
        updater.delete_later(["acme"])
        proxy.heal()
        await until(is_deleted)
        await updater.close()
        assert not updater.stale


async def test_many_changes_are_written_in_batches_that_meet_the_deadline(redis: AsyncDatabase) -> None:
    """A rename of thousands of paths would never meet the deadline of one call."""
    cache = RepositoryCache()
    updater = CacheUpdater(
        CircuitBreaker(redis, deadline_seconds=0.2, reset_seconds=0.01), cache, CacheEventCounter()
    )
    paths = [f"acme/{number}" for number in range(5000)]
    await redis.run(cache.set(repository_at(paths[-1])))
    await updater.apply({path: cache.delete(path) for path in paths})

    async def is_told() -> bool:
        return not updater.stale

    await until(is_told)
    assert await redis.run(cache.get(paths[-1])) is None
    await updater.close()


async def test_invalidating_the_size_of_a_key_of_another_type_does_not_fail(
    redis: AsyncDatabase, raw: Raw, tmp_path: Path
) -> None:
    async with cached_acme(redis, tmp_path) as (registry, made):
        raw("DEL", CACHED)
        raw("LPUSH", CACHED, "stray")
        await registry.invalidate_size("acme")
        assert not raw("EXISTS", CACHED)
        assert await registry.find("acme") == made


async def test_a_batch_under_way_and_later_counts_both_follow_a_rename(
    redis: AsyncDatabase, tmp_path: Path
) -> None:
    async with cached_acme(redis, tmp_path) as (registry, _):
        await redis.run(count("acme", pulls=3))
        await redis.run(counters.take(CountBatch.of("acme"), "of one who died"))
        await redis.run(count("acme", pulls=4))
        async with registry.transaction() as transaction:
            await transaction.rename("acme", "new")
        await registry.flush_counts()
        assert await registry.metadata.counts("new") == Counts("new", 7)
        assert await registry.metadata.counts("acme") == Counts("acme")


async def test_counts_follow_all_renames_of_a_transaction_to_the_last_name(
    redis: AsyncDatabase, tmp_path: Path
) -> None:
    async with cached_acme(redis, tmp_path) as (registry, _):
        async with registry.transaction() as transaction:
            await transaction.create_or_find("other")
        await redis.run(count("acme", pulls=3))
        await redis.run(count("other", pulls=5))
        async with registry.transaction() as transaction:
            await transaction.rename("acme", "spare")
            await transaction.rename("other", "acme")
            await transaction.rename("spare", "other")
        found = [await registry.metadata.counts(path) for path in ("acme", "other", "spare")]
        assert found == [
            Counts("acme", 5),
            Counts("other", 3),
            Counts("spare"),
        ]
        assert await redis.run(pending("acme")) == Counts("acme")


async def test_counts_that_are_on_their_way_follow_a_rename_with_the_next_flush(
    redis: AsyncDatabase, tmp_path: Path
) -> None:
    async with cached_acme(redis, tmp_path) as (registry, _):
        await redis.run(count("acme", pulls=3))
        half_way = Registry(redis, Answerless(registry.metadata))
        async with half_way.transaction() as transaction:
            await transaction.rename("acme", "new")
        assert await registry.metadata.counts("new") == Counts("new")
        await registry.flush_counts()
        assert await registry.metadata.counts("new") == Counts("new", 3)
        await half_way.close()


async def test_a_rename_does_not_wait_for_a_silent_redis_longer_than_its_deadline(
    redis_url: str, make_proxy: Callable[[str], Proxy], tmp_path: Path
) -> None:
    proxy = make_proxy(redis_url)
    async with (
        aconnect(proxy.url, settings=PATIENT) as redis,
        cached_acme(redis, tmp_path) as (registry, _),
    ):
        proxy.delay(600)
        async with asyncio.timeout(60):
            async with registry.transaction() as transaction:
                await transaction.rename("acme", "new")
        assert await registry.find("acme") is None
        assert isinstance(registry.metrics, CacheEventCounter)
        assert registry.metrics[CacheEvent.WRITE_FAILED] > 0
        proxy.heal()


async def test_a_flush_that_cannot_reach_the_database_does_not_try_every_repository(
    redis: AsyncDatabase, tmp_path: Path
) -> None:
    for number in range(200):
        await redis.run(count(f"acme/{number}", pulls=1))
    with pytest.raises(MetadataUnreachableError):
        await CountFlusher(redis, Answerless(CountingMetadata()), concurrency=4).flush()
    begun = [key async for key in redis.scan(CountBatch)]
    assert 0 < len(begun) < 20
    async with opened(f"sqlite:///{tmp_path}/registry.db") as metadata:
        assert (await CountFlusher(redis, metadata).flush()).pulls == 200
