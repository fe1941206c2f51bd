"""Writes committed changes to the cache, and retries those that did not arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from keywright import Call, gather_list
from keywright.errors import EngineError
from keywright_registry.batches import batched
from keywright_registry.cache import RepositoryCache
from keywright_registry.cache_metrics import CacheEvent, CacheMetrics
from keywright_registry.circuit_breaker import CircuitBreaker

__all__ = ["CacheUpdater"]


class CacheUpdater:
    """Runs cache writes after a commit. They never fail the caller, whose change is committed already.

    A path whose write did not arrive is stale: this process no longer reads it from the cache, and deletes it
    there as soon as Redis answers. Other processes may read the outdated value until then.
    """

    def __init__(self, breaker: CircuitBreaker, cache: RepositoryCache, metrics: CacheMetrics) -> None:
        self.stale: dict[str, object] = {}
        self._breaker = breaker
        self._cache = cache
        self._metrics = metrics
        self._retrying: asyncio.Task[None] | None = None

    async def apply(self, writes: Mapping[str, Call[Any]]) -> bool:
        """Run the write of each path; return whether all arrived. If cancelled, the paths are stale."""
        try:
            for some in batched(writes.values()):
                await self._breaker.run(gather_list(some))
        except EngineError:
            self._metrics(CacheEvent.WRITE_FAILED, len(writes))
            self.delete_later(writes)
            return False
        except asyncio.CancelledError:
            self.delete_later(writes)
            raise
        return True

    def delete_later(self, paths: Iterable[str]) -> None:
        """Do not read these paths from the cache, and delete them there in the background."""
        self.stale.update((path, object()) for path in paths)
        if self._retrying is None or self._retrying.done():
            self._retrying = asyncio.get_running_loop().create_task(self._retry())

    async def close(self) -> None:
        """Try for the last time; paths that are still stale then stay cached until they expire."""
        if self._retrying is not None:
            self._retrying.cancel()
            await asyncio.gather(self._retrying, return_exceptions=True)
        with suppress(EngineError):
            await self._delete_stale()

    async def _retry(self) -> None:
        while self.stale:
            await asyncio.sleep(self._breaker.reset_seconds)
            with suppress(EngineError):
                await self._delete_stale()

    async def _delete_stale(self) -> None:
        for some in batched(self.stale.items()):
            await self._breaker.run(self._cache.delete(*(path for path, _ in some)))
            for path, mark in some:
                if self.stale.get(path) is mark:  # else it became stale again meanwhile
                    del self.stale[path]
