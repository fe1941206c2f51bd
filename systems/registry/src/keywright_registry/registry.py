"""The repositories of a registry: found through the cache, changed in transactions that the cache follows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

from keywright import AsyncDatabase, Call
from keywright.errors import KeywrightError
from keywright_registry.batches import batched
from keywright_registry.cache import RepositoryCache
from keywright_registry.cache_metrics import CacheEvent, CacheEventCounter, CacheMetrics
from keywright_registry.cache_updates import CacheUpdater
from keywright_registry.circuit_breaker import CircuitBreaker
from keywright_registry.counters import CountFlusher, Flushed, count, move_counts
from keywright_registry.lookup import LookupTimings, RepositoryLookup
from keywright_registry.metadata.contract import Metadata, MetadataTransaction
from keywright_registry.paths import ancestry
from keywright_registry.repository import Repository
from keywright_registry.transactions import transaction_scope

__all__ = ["Registry", "RegistryTransaction"]


class RegistryTransaction:
    """A database transaction that collects the cache writes to run after its commit.

    Changed paths are deleted from the cache and then filled from the database, not set to the values written
    here: of two transactions the one that was committed first may reach the cache last.
    """

    def __init__(self, transaction: MetadataTransaction, cache: RepositoryCache) -> None:
        self.cache_writes: dict[str, Call[Any]] = {}
        self.existing: set[str] = set()
        """The paths to warm in the cache after the commit."""
        self.renamed: dict[str, str] = {}
        """From the path under which Redis has counts to the final path."""
        self._transaction = transaction
        self._cache = cache

    async def find(self, path: str) -> Repository | None:
        """Return the repository of a path as this transaction sees it; the cache is not read."""
        return await self._transaction.find(path)

    async def create_or_find(self, path: str) -> Repository:
        """Return the repository of a path; create it and its missing parents."""
        repository = await self._transaction.create_or_find(path)
        self._may_be_new(path)
        self.existing.add(path)
        return repository

    async def update(self, repository: Repository) -> Repository:
        """Write size and last push of a repository that is not deleted, by its id; set `updated_at`."""
        updated = await self._transaction.update(repository)
        self._changed(updated.path)
        self.existing.add(updated.path)
        return updated

    async def rename(self, old: str, new: str) -> list[tuple[str, Repository]]:
        """Rename a path and everything below it; return each old path with the renamed repository."""
        moved = await self._transaction.rename(old, new)
        self._may_be_new(new)
        origins = {last: first for first, last in self.renamed.items()}
        for path, repository in moved:
            self._changed(path)
            self._changed(repository.path)
            if path in origins:
                self.renamed[origins[path]] = repository.path
            else:
                self.renamed.setdefault(path, repository.path)
        self.existing.difference_update(path for path, _ in moved)
        self.existing.update(repository.path for _, repository in moved)
        return moved

    async def delete(self, path: str) -> bool:
        """Delete one repository; return whether it existed. Refuse one with repositories below it."""
        deleted = await self._transaction.delete(path)
        self._changed(path)
        self.existing.discard(path)
        return deleted

    def _may_be_new(self, path: str) -> None:
        # The database does not report which of the parents it created.
        for each in ancestry(path):
            self.cache_writes.setdefault(each, self._cache.appeared(each))

    def _changed(self, path: str) -> None:
        self.cache_writes[path] = self._cache.delete(path)


class Registry:
    """Repositories behind a cache. Close it at the end; both databases stay open.

    Each call to Redis has `deadline_seconds`, and no lookup fails because of Redis: reads are answered by the
    database, cache writes are retried in the background. `metrics` receives every such event.
    """

    def __init__(
        self,
        redis: AsyncDatabase,
        metadata: Metadata,
        *,
        cache: RepositoryCache | None = None,
        metrics: CacheMetrics | None = None,
        timings: LookupTimings | None = None,
        deadline_seconds: float = 0.5,
        reset_seconds: float = 0.25,
    ) -> None:
        self.redis = redis
        self.metadata = metadata
        self.cache = cache or RepositoryCache()
        self.metrics: CacheMetrics = CacheEventCounter() if metrics is None else metrics
        self._breaker = CircuitBreaker(redis, deadline_seconds=deadline_seconds, reset_seconds=reset_seconds)
        self._updater = CacheUpdater(self._breaker, self.cache, self.metrics)
        self._flusher = CountFlusher(redis, metadata)
        self._lookup = RepositoryLookup(
            self._breaker,
            metadata,
            self.cache,
            self.metrics,
            timings or LookupTimings(),
            self._updater.stale,
        )

    async def find(self, path: str) -> Repository | None:
        """Return the repository of a path from the cache or the database."""
        return await self._lookup.find(path)

    async def find_many(self, paths: Sequence[str]) -> dict[str, Repository]:
        """Return those that exist, by path."""
        return await self._lookup.find_many(paths)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[RegistryTransaction]:
        """Change repositories: `async with registry.transaction() as tx:`.

        Commit when the block ends without an error, and write the cache after the commit. Raise UsageError
        for a cache write inside the block, and for another transaction there.
        """
        ending: RegistryTransaction | None = None
        try:
            with transaction_scope():
                async with self.metadata.transaction() as transaction:
                    changes = RegistryTransaction(transaction, self.cache)
                    yield changes
                    ending = changes
        except BaseException:
            if ending is not None:  # the commit may have been applied although its reply was lost
                self._outdate(ending)
                self._updater.delete_later(ending.cache_writes)
            raise
        await self._committed(changes)

    async def invalidate_size(self, path: str) -> None:
        """Drop the cached size of a repository whose content changed."""
        self._lookup.outdate(path)
        await self._updater.apply({path: self.cache.invalidate_size(path)})

    async def count(self, path: str, *, pulls: int = 0, pushes: int = 0) -> None:
        """Count pulls and pushes. Raise EngineError if Redis does not answer: they may be lost then."""
        await self._breaker.run(count(path, pulls=pulls, pushes=pushes))

    async def flush_counts(self) -> Flushed:
        """Move all pending counts to the database."""
        return await self._flusher.flush()

    async def close(self) -> None:
        await self._lookup.close()
        await self._updater.close()

    async def _committed(self, changes: RegistryTransaction) -> None:
        self._outdate(changes)
        if await self._updater.apply(changes.cache_writes):
            await self._warm(changes.existing)
        try:
            await move_counts(self._breaker, self.metadata, changes.renamed)
        except KeywrightError:
            self.metrics(CacheEvent.WRITE_FAILED)  # the next flush adds these counts to the old path

    def _outdate(self, changes: RegistryTransaction) -> None:
        for path in changes.cache_writes:
            self._lookup.outdate(path)

    async def _warm(self, paths: Collection[str]) -> None:
        """Cache the current state of changed paths. If it fails, the next lookup fills the cache."""
        try:
            for some in batched(paths):
                await self._lookup.find_many(some)
        except KeywrightError:
            self.metrics(CacheEvent.WRITE_FAILED)
