"""The registry's repositories: found through the cache, changed in transactions that the cache follows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

from keywright import AsyncDatabase, Call
from keywright.errors import KeywrightError
from keywright_registry.batches import batched
from keywright_registry.cache import RepositoryCache
from keywright_registry.cache_updates import Publisher
from keywright_registry.circuit_breaker import Access
from keywright_registry.counters import CountFlusher, Flushed, carry, count
from keywright_registry.lookup import Lookup, Patience
from keywright_registry.metadata.contract import Metadata, MetadataTransaction
from keywright_registry.paths import ancestry
from keywright_registry.repository import Repository
from keywright_registry.tallies import Event, Tally, TallyCounts
from keywright_registry.transactions import marked

__all__ = ["Registry", "RegistryTransaction"]


class RegistryTransaction:
    """A database transaction that remembers what the cache must be told once it is committed.

    Changed paths are forgotten and then filled from the database, not set to what was written here: of two
    transactions the one that was committed first may well come last to the cache.
    """

    def __init__(self, transaction: MetadataTransaction, cache: RepositoryCache) -> None:
        self.writes: dict[str, Call[Any]] = {}
        self.there: set[str] = set()
        self.moved: dict[str, str] = {}
        """From the path under which Redis counts to the one that it has in the end."""
        self._transaction = transaction
        self._cache = cache

    async def find(self, path: str) -> Repository | None:
        """The repository of a path, as this transaction sees it; the cache is not asked."""
        return await self._transaction.find(path)

    async def create_or_find(self, path: str) -> Repository:
        """The repository of a path; it and its missing parents are created."""
        repository = await self._transaction.create_or_find(path)
        self._appeared(path)
        self.there.add(path)
        return repository

    async def update(self, repository: Repository) -> Repository:
        """Write size and last push of a repository that lives, by its id; `updated_at` is now."""
        updated = await self._transaction.update(repository)
        self._changed(updated.path)
        self.there.add(updated.path)
        return updated

    async def rename(self, old: str, new: str) -> list[tuple[str, Repository]]:
        """Give a path and everything below it another name; each old path with what it became."""
        moved = await self._transaction.rename(old, new)
        self._appeared(new)
        firsts = {last: first for first, last in self.moved.items()}
        for path, repository in moved:
            self._changed(path)
            self._changed(repository.path)
            if path in firsts:
                self.moved[firsts[path]] = repository.path
            else:
                self.moved.setdefault(path, repository.path)
        self.there.difference_update(path for path, _ in moved)
        self.there.update(repository.path for _, repository in moved)
        return moved

    async def delete(self, path: str) -> bool:
        """Remove one repository; whether it was there. One with repositories below it is refused."""
        deleted = await self._transaction.delete(path)
        self._changed(path)
        self.there.discard(path)
        return deleted

    def _appeared(self, path: str) -> None:
        """A path and its parents may be new; which of them are, the database does not say."""
        for each in ancestry(path):
            self.writes.setdefault(each, self._cache.appeared(each))

    def _changed(self, path: str) -> None:
        self.writes[path] = self._cache.delete(path)


class Registry:
    """Repositories behind a cache. Close it; the databases stay open.

    Every operation on Redis has half a second, and no answer waits for one that failed: reads are answered
    by the database, writes of the cache are owed. `tally` is told of all that.
    """

    def __init__(
        self,
        redis: AsyncDatabase,
        metadata: Metadata,
        *,
        cache: RepositoryCache | None = None,
        tally: Tally | None = None,
        patience: Patience | None = None,
        deadline_seconds: float = 0.5,
    ) -> None:
        self.redis = redis
        self.metadata = metadata
        self.cache = cache or RepositoryCache()
        self.tally: Tally = TallyCounts() if tally is None else tally
        self._access = Access(redis, deadline_seconds=deadline_seconds)
        self._publisher = Publisher(self._access, self.cache, self.tally)
        self._flusher = CountFlusher(redis, metadata)
        self._lookup = Lookup(
            self._access,
            metadata,
            self.cache,
            self.tally,
            patience or Patience(),
            self._publisher.owed,
        )

    async def find(self, path: str) -> Repository | None:
        """The repository of a path: cached, or as the database has it."""
        return await self._lookup.find(path)

    async def find_many(self, paths: Sequence[str]) -> dict[str, Repository]:
        """Those that exist, by path."""
        return await self._lookup.find_many(paths)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[RegistryTransaction]:
        """Change repositories: `async with registry.transaction() as tx:`.

        Committed when the block is left without an error; then, and only then, the cache is told. Running a
        cache write inside the block raises UsageError, and so does opening another transaction there.
        """
        ending: RegistryTransaction | None = None
        try:
            with marked():
                async with self.metadata.transaction() as transaction:
                    changes = RegistryTransaction(transaction, self.cache)
                    yield changes
                    ending = changes
        except BaseException:
            if ending is not None:  # the commit may have been applied, though its answer did not come
                self._outdate(ending)
                self._publisher.owe(ending.writes)
            raise
        await self._committed(changes)

    async def invalidate_size(self, path: str) -> None:
        """Forget the cached size of a repository whose content changed."""
        self._lookup.outdate(path)
        await self._publisher.publish({path: self.cache.invalidate_size(path)})

    async def count(self, path: str, *, pulls: int = 0, pushes: int = 0) -> None:
        """Count pulls and pushes; raises when Redis does not answer, as then nothing may be counted."""
        await self._access.run(count(path, pulls=pulls, pushes=pushes))

    async def flush_counts(self) -> Flushed:
        """Move what was counted to the database."""
        return await self._flusher.flush()

    async def close(self) -> None:
        await self._lookup.close()
        await self._publisher.close()

    async def _committed(self, changes: RegistryTransaction) -> None:
        self._outdate(changes)
        if await self._publisher.publish(changes.writes):
            await self._warm(changes.there)
        try:
            await carry(self._access, self.metadata, changes.moved)
        except KeywrightError:
            self.tally(Event.WRITE_FAILED)  # the next flush moves the counts, under the old path

    def _outdate(self, changes: RegistryTransaction) -> None:
        for path in changes.writes:
            self._lookup.outdate(path)

    async def _warm(self, paths: Collection[str]) -> None:
        """Cache what was just written, as it is now. What fails here is filled by whoever asks for it."""
        try:
            for some in batched(paths):
                await self._lookup.find_many(some)
        except KeywrightError:
            self.tally(Event.WRITE_FAILED)
