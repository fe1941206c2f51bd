"""The process of the service: opens what it needs, listens, flushes counts, and ends without loss."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from datetime import timedelta

import msgspec
from starlette.applications import Starlette

from keywright import AsyncDatabase, Secret, aconnect
from keywright.errors import UsageError
from keywright.tools.http import LOOPBACK, LOOPBACK_HOSTS, check_token, is_loopback, listening
from keywright_registry.cache import RepositoryCache
from keywright_registry.metadata import Metadata, open_metadata
from keywright_registry.registry import Registry
from keywright_registry.repository import Counts, Repository
from keywright_registry.schema import FlushLease
from keywright_registry.service.app import LARGEST_BODY, registry_app
from keywright_registry.service.flusher import FLUSH_EVERY, ScheduledFlusher
from keywright_registry.service.metrics import RegistryMetrics
from keywright_registry.service.totals import total
from keywright_service.service import Service

__all__ = ["RegistryService", "ServiceSettings"]

log = logging.getLogger("keywright.registry")


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Addresses and intervals. Without `redis` it is REDIS_URL, else an embedded server."""

    host: str = LOOPBACK
    port: int = 8088
    token: Secret[str] | None = None
    redis: str | None = None
    database: str | None = None
    flush_every: timedelta = FLUSH_EVERY
    largest_body: int = LARGEST_BODY

    @property
    def hosts(self) -> frozenset[str] | None:
        """The hosts that requests may be addressed to. With a token any: a foreign page does not know it."""
        return LOOPBACK_HOSTS | {self.host.lower()} if self.token is None else None

    def __repr__(self) -> str:
        return f"<ServiceSettings {self.host}:{self.port}>"  # the URLs may have passwords


class RegistryService(Service):
    """One process of the service.

    At the end requests under way are answered, then the counts are moved to the database.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        super().__init__()
        _require_token(settings)
        self.settings = settings
        self.metrics = RegistryMetrics()

    async def start(self, opened: AsyncExitStack) -> None:
        chosen = self.settings
        bound = opened.enter_context(listening(chosen.host, chosen.port, remedy="Choose another address."))
        redis = await opened.enter_async_context(aconnect(chosen.redis))
        metadata = await self._metadata(opened)
        app = await self._app(redis, metadata, opened)
        if metadata:
            # Before the server, so that it ends after it: all that was acknowledged is counted by then.
            flusher = ScheduledFlusher(redis, metadata, self.metrics, every=chosen.flush_every)
            await self.run_tasks(opened, [flusher], grace=None)
        await self.serve(opened, app, bound)

    async def _metadata(self, opened: AsyncExitStack) -> Metadata | None:
        if self.settings.database is None:
            log.warning("no metadata database is configured: counts stay in Redis")
            return None
        metadata = await open_metadata(self.settings.database)
        opened.push_async_callback(metadata.close)
        if taken := await metadata.migrate():
            log.info("migrated the metadata database: %s", ", ".join(taken))
        return metadata

    async def _app(
        self, redis: AsyncDatabase, metadata: Metadata | None, opened: AsyncExitStack
    ) -> Starlette:
        cache = RepositoryCache()
        registry = Registry(redis, metadata, cache=cache, metrics=self.metrics.cache) if metadata else None
        if registry:
            opened.push_async_callback(registry.close)

        async def find(path: str) -> Repository | None:
            return await (registry.find(path) if registry else redis.run(cache.get(path)))

        async def totals(path: str) -> Counts:
            return await total(redis, metadata, path)

        async def check() -> None:
            await redis.run(FlushLease().holder())
            if metadata:
                await metadata.counts("health")

        return registry_app(
            redis,
            find=find,
            totals=totals,
            check=check,
            metrics=self.metrics,
            token=self.settings.token,
            hosts=self.settings.hosts,
            largest_body=self.settings.largest_body,
        )


def _require_token(settings: ServiceSettings) -> None:
    if settings.token is not None:
        check_token(settings.token)
    elif not is_loopback(settings.host):
        raise UsageError(
            f"{settings.host} can be reached from outside, so anyone could post events there. "
            f"Set KEYWRIGHT_REGISTRY_TOKEN, or listen on {LOOPBACK}."
        )
