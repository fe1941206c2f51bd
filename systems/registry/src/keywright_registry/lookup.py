"""Read-through lookup: from the cache, else from the database, with one query for all concurrent misses.

Within a process one task queries for all callers that miss the same path (single flight). Across processes
that task holds the fill lease of the repository; processes without the lease poll the cache until it is
filled, and query for themselves in the end. Redis is never waited for longer than its deadline: when it
fails, the database answers.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Container, Coroutine, Sequence
from contextlib import asynccontextmanager
from contextvars import Context as TaskContext
from datetime import timedelta
from typing import Any

import msgspec

from keywright import gather, gather_list, new_token
from keywright.errors import EngineError, StoredDataError
from keywright_registry.cache import Miss, RepositoryCache
from keywright_registry.cache_metrics import CacheEvent, CacheMetrics
from keywright_registry.circuit_breaker import CircuitBreaker
from keywright_registry.metadata.contract import Metadata
from keywright_registry.repository import Repository
from keywright_registry.schema import CachedRepository

__all__ = ["LookupTimings", "RepositoryLookup"]

_EVENTS = {
    Miss.ABSENT: CacheEvent.MISS,
    Miss.KNOWN_ABSENT: CacheEvent.KNOWN_ABSENT,
    Miss.MISMATCH: CacheEvent.MISMATCH,
}
Query = Coroutine[Any, Any, Repository | None]


class LookupTimings(msgspec.Struct, frozen=True, kw_only=True):
    """How long the steps of a lookup may take, and when a repository is refreshed before it expires."""

    fill_lease: timedelta = timedelta(seconds=5)
    """How long one process may take for its query before another one queries too."""
    wait_for_fill: timedelta = timedelta(seconds=1)
    """How long to wait for the query of another process."""
    poll_interval: timedelta = timedelta(milliseconds=20)
    """The mean time between two looks at the cache while waiting."""
    refresh_share: float = 0.1
    """The last share of the expiry in which a frequently read repository is refreshed."""
    refresh_sample: float = 1 / 64
    """The share of hits that look at the remaining time, so that only frequently read ones are refreshed."""


class RepositoryLookup:
    """Finds repositories. `stale` are the paths whose cached repositories are known to be outdated."""

    def __init__(
        self,
        breaker: CircuitBreaker,
        metadata: Metadata,
        cache: RepositoryCache,
        metrics: CacheMetrics,
        timings: LookupTimings,
        stale: Container[str],
    ) -> None:
        self._breaker = breaker
        self._metadata = metadata
        self._cache = cache
        self._metrics = metrics
        self._timings = timings
        self._stale = stale
        self._flights: dict[str, asyncio.Task[Repository | None]] = {}
        self._running: set[asyncio.Task[Repository | None]] = set()

    async def find(self, path: str) -> Repository | None:
        """Return the repository of a path from the cache or the database."""
        if path in self._stale or self._breaker.is_open():
            self._metrics(CacheEvent.SKIPPED)
            return await self._join(path, self._query(path))
        try:
            found = await self._look(path)
        except StoredDataError:
            self._metrics(CacheEvent.UNDECODABLE)
            found = Miss.ABSENT
        except EngineError:
            self._metrics(CacheEvent.UNREACHABLE)
            return await self._join(path, self._query(path))
        if isinstance(found, Repository):
            return found
        return None if found is Miss.KNOWN_ABSENT else await self._join(path, self._load(path))

    async def find_many(self, paths: Sequence[str]) -> dict[str, Repository]:
        """Return those that exist, with one round trip to the cache and one query for its misses."""
        wanted = list(dict.fromkeys(paths))
        cached = await self._cached([path for path in wanted if path not in self._stale])
        missing = [path for path in wanted if path not in cached]
        if not missing:
            return cached
        token = new_token()
        leased = await self._begin_all(missing, token)
        self._metrics(CacheEvent.QUERIED)
        async with self._abandoning(leased, token):
            found = await self._metadata.find_many(missing)
        await self._fill_all({path: found.get(path) for path in leased}, token)
        return {path: cached.get(path) or found[path] for path in wanted if path in cached or path in found}

    def outdate(self, path: str) -> None:
        """Do not answer lookups that come from now on with a query that began before."""
        self._flights.pop(path, None)

    async def close(self) -> None:
        """Cancel queries that are still running."""
        for flight in self._running:
            flight.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _look(self, path: str) -> Repository | Miss:
        if random.random() >= self._timings.refresh_sample:
            found = await self._breaker.run(self._cache.look(path))
        else:
            found, remaining = await self._breaker.run(
                gather(self._cache.look(path), self._cache.remaining(path))
            )
            if isinstance(found, Repository) and self._expires_soon(remaining) and path not in self._flights:
                self._metrics(CacheEvent.REFRESHED)
                self._start(path, self._load(path))
        self._metrics(CacheEvent.HIT if isinstance(found, Repository) else _EVENTS[found])
        return found

    def _expires_soon(self, remaining: timedelta | None) -> bool:
        expiry = self._breaker.redis.context.expiry_of(CachedRepository)
        if expiry is None or expiry.ttl_ms is None or remaining is None:
            return False
        return remaining < timedelta(milliseconds=expiry.ttl_ms) * self._timings.refresh_share

    async def _join(self, path: str, query: Query) -> Repository | None:
        """Share the flight of a path; it goes on for the others when one caller is cancelled."""
        flight = self._flights.get(path)
        if flight is None:
            flight = self._start(path, query)
        else:
            query.close()
        return await asyncio.shield(flight)

    def _start(self, path: str, query: Query) -> asyncio.Task[Repository | None]:
        # A context of its own: the first caller may be inside a transaction, those that join are not.
        flight = asyncio.get_running_loop().create_task(query, context=TaskContext())
        self._flights[path] = flight
        self._running.add(flight)
        flight.add_done_callback(lambda done: self._landed(path, done))
        return flight

    def _landed(self, path: str, flight: asyncio.Task[Repository | None]) -> None:
        self._running.discard(flight)
        if self._flights.get(path) is flight:
            del self._flights[path]
        if not flight.cancelled():
            flight.exception()  # marks it as retrieved: it is raised in the callers, if there are any

    async def _query(self, path: str) -> Repository | None:
        self._metrics(CacheEvent.QUERIED)
        return await self._metadata.find(path)

    async def _load(self, path: str) -> Repository | None:
        """Query under the fill lease, or wait for the process that holds it."""
        token, timings = new_token(), self._timings
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timings.wait_for_fill.total_seconds()
        try:
            while not await self._breaker.run(self._cache.begin_fill(path, token, timings.fill_lease)):
                if loop.time() > deadline:
                    return await self._query(path)
                await asyncio.sleep(timings.poll_interval.total_seconds() * random.uniform(0.5, 1.5))
                found = await self._breaker.run(self._cache.look(path))
                if isinstance(found, Repository) or found is Miss.KNOWN_ABSENT:
                    return found if isinstance(found, Repository) else None
        except (EngineError, StoredDataError):
            self._metrics(CacheEvent.UNREACHABLE)
            return await self._query(path)
        async with self._abandoning([path], token):
            queried = await self._query(path)
        await self._fill_all({path: queried}, token)
        return queried

    @asynccontextmanager
    async def _abandoning(self, paths: Sequence[str], token: str) -> AsyncIterator[None]:
        """Give the fill leases up when the query fails, so that other processes need not wait."""
        try:
            yield
        except BaseException:
            if paths:
                try:
                    release = gather_list(self._cache.abandon_fill(path, token) for path in paths)
                    await self._breaker.run(release)
                except EngineError:
                    self._metrics(CacheEvent.UNREACHABLE)  # the leases run out
            raise

    async def _cached(self, paths: list[str]) -> dict[str, Repository]:
        if not paths:
            return {}
        if self._breaker.is_open():
            self._metrics(CacheEvent.SKIPPED, len(paths))
            return {}
        try:
            cached = await self._breaker.run(self._cache.get_many(paths))
        except EngineError:
            self._metrics(CacheEvent.UNREACHABLE, len(paths))
            return {}
        self._metrics(CacheEvent.HIT, len(cached))
        self._metrics(CacheEvent.MISS, len(paths) - len(cached))
        return cached

    async def _begin_all(self, paths: list[str], token: str) -> list[str]:
        """Return the paths whose fill lease this token holds now."""
        if self._breaker.is_open():
            return []
        begin = [self._cache.begin_fill(path, token, self._timings.fill_lease) for path in paths]
        try:
            begun = await self._breaker.run(gather_list(begin))
        except EngineError:
            self._metrics(CacheEvent.UNREACHABLE)
            return []
        return [path for path, ours in zip(paths, begun, strict=True) if ours]

    async def _fill_all(self, found: dict[str, Repository | None], token: str) -> None:
        if not found:
            return
        fills = [self._cache.fill(path, repository, token) for path, repository in found.items()]
        try:
            filled = await self._breaker.run(gather_list(fills))
        except EngineError:
            self._metrics(CacheEvent.UNREACHABLE)
            return
        written = zip(found.values(), filled, strict=True)
        self._metrics(CacheEvent.FILLED, sum(done for repository, done in written if repository is not None))
        self._metrics(CacheEvent.FILL_REFUSED, len(filled) - sum(filled))
