"""The process of the service: opens what it needs, listens, flushes counts, and ends without loss."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack

from starlette.applications import Starlette

from keywright import AsyncDatabase, aconnect
from keywright.tools.http import listening
from keywright_registry.cache import RepositoryCache
from keywright_registry.metadata import Metadata, open_metadata
from keywright_registry.registry import Registry
from keywright_registry.repository import Counts, Repository
from keywright_registry.schema import FlushLease
from keywright_registry.service.app import RepositoryQueries, registry_app
from keywright_registry.service.configuration import RegistryConfiguration
from keywright_registry.service.flusher import ScheduledFlusher
from keywright_registry.service.metrics import RegistryMetrics
from keywright_registry.service.totals import total
from keywright_service.health import Health
from keywright_service.service import Service

__all__ = ["RegistryService"]

log = logging.getLogger("keywright.registry")


class RegistryService(Service):
    """One process of the service.

    At the end requests under way are answered, then the counts are moved to the database.
    """

    def __init__(self, configuration: RegistryConfiguration) -> None:
        super().__init__()
        self.configuration = configuration
        self.metrics = RegistryMetrics()

    async def start(self, opened: AsyncExitStack) -> None:
        chosen = self.configuration
        bound = opened.enter_context(listening(*chosen.address, remedy="Choose another address."))
        redis = await opened.enter_async_context(aconnect(chosen.redis.url))
        metadata = await self._metadata(opened)
        queries = CachedQueries(redis)
        if metadata:
            registry: Registry | None = None
            queries, transaction = StoredQueries(redis, metadata, metadata), metadata.transaction
            if chosen.cache.repositories:
                registry = Registry(redis, metadata, metrics=self.metrics.cache)
                opened.push_async_callback(registry.close)
                queries, transaction = StoredQueries(redis, metadata, registry), registry.transaction
            # Before the server, so that it ends after it: all that was acknowledged is counted by then.
            flusher = ScheduledFlusher(
                redis, metadata, self.metrics, transaction=transaction, every=chosen.flush_every
            )
            await self.run_tasks(opened, [flusher], grace=None)
        await self.serve(opened, self._app(redis, queries, metadata), bound)

    async def _metadata(self, opened: AsyncExitStack) -> Metadata | None:
        url = self.configuration.database.url
        if url is None:
            log.warning("no metadata database is configured: counts stay in Redis")
            return None
        metadata = await open_metadata(url)
        opened.push_async_callback(metadata.close)
        if taken := await metadata.migrate():
            log.info("migrated the metadata database: %s", ", ".join(taken))
        return metadata

    def _app(self, redis: AsyncDatabase, queries: RepositoryQueries, metadata: Metadata | None) -> Starlette:
        async def reached_redis() -> None:
            await redis.run(FlushLease().holder())

        async def report() -> Health:
            await reached_redis()
            if metadata:
                await metadata.counts("health")
            return Health(ok=True)

        return registry_app(
            redis,
            queries,
            metrics=self.metrics,
            # Counts wait in Redis while the database is away, so notifications need Redis alone.
            monitoring=self.endpoints(self.metrics, report=report, check=reached_redis),
            token=self.configuration.token,
            hosts=self.configuration.hosts,
            largest_body=self.configuration.http.largest_body,
        )


class CachedQueries:
    """What Redis alone knows."""

    def __init__(self, redis: AsyncDatabase) -> None:
        self._redis = redis

    async def find(self, path: str) -> Repository | None:
        return await self._redis.run(RepositoryCache().get(path))

    async def totals(self, path: str) -> Counts:
        return await total(self._redis, None, path)

    async def page(self, after: str, limit: int) -> list[Repository] | None:
        """Return None: Redis has hashes of paths, of the cached repositories only."""
        return None


class StoredQueries(CachedQueries):
    """What the database knows; repositories are found in it, or through a `Registry` that caches them."""

    def __init__(self, redis: AsyncDatabase, metadata: Metadata, found_in: Metadata | Registry) -> None:
        super().__init__(redis)
        self._metadata = metadata
        self._found_in = found_in

    async def find(self, path: str) -> Repository | None:
        return await self._found_in.find(path)

    async def totals(self, path: str) -> Counts:
        return await total(self._redis, self._metadata, path)

    async def page(self, after: str, limit: int) -> list[Repository] | None:
        return await self._metadata.page(after, limit)
