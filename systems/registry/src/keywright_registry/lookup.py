"""Read-through: a repository from the cache, else from the database, which is asked once however many wait.

Within the process one task asks for all who miss the same path; across processes it takes the repository's
filling lease, and those without it look again until it is filled, or ask for themselves in the end. Redis is
never waited for longer than its deadline: when it fails, the database answers.
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
from keywright_registry.circuit_breaker import Access
from keywright_registry.metadata.contract import Metadata
from keywright_registry.repository import Repository
from keywright_registry.schema import CachedRepository
from keywright_registry.tallies import Event, Tally

__all__ = ["Lookup", "Patience"]

_EVENTS = {
    Miss.ABSENT: Event.MISS,
    Miss.KNOWN_ABSENT: Event.KNOWN_ABSENT,
    Miss.MISMATCH: Event.MISMATCH,
}
Asked = Coroutine[Any, Any, Repository | None]


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long things may take, and when a repository is refreshed before it expires."""

    hold: timedelta = timedelta(seconds=5)
    """How long one process may take to ask the database before another does."""
    others: timedelta = timedelta(seconds=1)
    """How long to wait for another process that asks the database."""
    look_again: timedelta = timedelta(milliseconds=20)
    early: float = 0.1
    """The last share of a repository's time in which a hot one is read anew."""
    sampled: float = 1 / 64
    """The share of hits whose remaining time is looked at: what is hit more often than that is hot."""


class Lookup:
    """Finds repositories. `owed` are the paths whose cached repositories are known to be outdated."""

    def __init__(
        self,
        access: Access,
        metadata: Metadata,
        cache: RepositoryCache,
        tally: Tally,
        patience: Patience,
        owed: Container[str],
    ) -> None:
        self._access = access
        self._metadata = metadata
        self._cache = cache
        self._tally = tally
        self._patience = patience
        self._owed = owed
        self._flights: dict[str, asyncio.Task[Repository | None]] = {}
        self._running: set[asyncio.Task[Repository | None]] = set()

    async def find(self, path: str) -> Repository | None:
        """The repository of a path, as the cache or the database knows it."""
        if path in self._owed or self._access.rests():
            self._tally(Event.SKIPPED)
            return await self._join(path, self._query(path))
        try:
            found = await self._look(path)
        except StoredDataError:
            self._tally(Event.UNDECODABLE)
            found = Miss.ABSENT
        except EngineError:
            self._tally(Event.UNREACHABLE)
            return await self._join(path, self._query(path))
        if isinstance(found, Repository):
            return found
        return None if found is Miss.KNOWN_ABSENT else await self._join(path, self._load(path))

    async def find_many(self, paths: Sequence[str]) -> dict[str, Repository]:
        """Those that exist, in one round trip to the cache and one query for what it does not have."""
        wanted = list(dict.fromkeys(paths))
        cached = await self._cached([path for path in wanted if path not in self._owed])
        missing = [path for path in wanted if path not in cached]
        if not missing:
            return cached
        token = new_token()
        begun = await self._begin_all(missing, token)
        self._tally(Event.QUERIED)
        async with self._abandoning(begun, token):
            found = await self._metadata.find_many(missing)
        await self._fill_all({path: found.get(path) for path in begun}, token)
        return {path: cached.get(path) or found[path] for path in wanted if path in cached or path in found}

    def outdate(self, path: str) -> None:
        """Whoever asks from now on must not be answered from what was asked before."""
        self._flights.pop(path, None)

    async def close(self) -> None:
        """End what still runs for nobody."""
        for flight in self._running:
            flight.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _look(self, path: str) -> Repository | Miss:
        if random.random() >= self._patience.sampled:
            found = await self._access.run(self._cache.look(path))
        else:
            found, remaining = await self._access.run(
                gather(self._cache.look(path), self._cache.remaining(path))
            )
            if isinstance(found, Repository) and self._is_late(remaining) and path not in self._flights:
                self._tally(Event.REFRESHED)
                self._start(path, self._load(path))
        self._tally(Event.HIT if isinstance(found, Repository) else _EVENTS[found])
        return found

    def _is_late(self, remaining: timedelta | None) -> bool:
        expiry = self._access.redis.context.expiry_of(CachedRepository)
        if expiry is None or expiry.ttl_ms is None or remaining is None:
            return False
        return remaining < timedelta(milliseconds=expiry.ttl_ms) * self._patience.early

    async def _join(self, path: str, asking: Asked) -> Repository | None:
        """Share the flight of a path; it goes on for the others when one of them is cancelled."""
        flight = self._flights.get(path)
        if flight is None:
            flight = self._start(path, asking)
        else:
            asking.close()
        return await asyncio.shield(flight)

    def _start(self, path: str, asking: Asked) -> asyncio.Task[Repository | None]:
        # A context of its own: whoever came first may be inside a transaction, the others are not.
        flight = asyncio.get_running_loop().create_task(asking, context=TaskContext())
        self._flights[path] = flight
        self._running.add(flight)
        flight.add_done_callback(lambda done: self._landed(path, done))
        return flight

    def _landed(self, path: str, flight: asyncio.Task[Repository | None]) -> None:
        self._running.discard(flight)
        if self._flights.get(path) is flight:
            del self._flights[path]
        if not flight.cancelled():
            flight.exception()  # raised in those who wait; nobody else is to be warned

    async def _query(self, path: str) -> Repository | None:
        self._tally(Event.QUERIED)
        return await self._metadata.find(path)

    async def _load(self, path: str) -> Repository | None:
        """Ask the database as the only one, or be answered by the one who does."""
        token, patience = new_token(), self._patience
        deadline = asyncio.get_running_loop().time() + patience.others.total_seconds()
        try:
            while not await self._access.run(self._cache.begin_fill(path, token, patience.hold)):
                if asyncio.get_running_loop().time() > deadline:
                    return await self._query(path)
                await asyncio.sleep(patience.look_again.total_seconds() * random.uniform(0.5, 1.5))
                found = await self._access.run(self._cache.look(path))
                if isinstance(found, Repository) or found is Miss.KNOWN_ABSENT:
                    return found if isinstance(found, Repository) else None
        except (EngineError, StoredDataError):
            self._tally(Event.UNREACHABLE)
            return await self._query(path)
        return await self._load_holding(path, token)

    async def _load_holding(self, path: str, token: str) -> Repository | None:
        async with self._abandoning([path], token):
            found = await self._query(path)
        await self._fill_all({path: found}, token)
        return found

    @asynccontextmanager
    async def _abandoning(self, paths: Sequence[str], token: str) -> AsyncIterator[None]:
        """Around a question to the database: when it fails, others need not wait for the answer."""
        try:
            yield
        except BaseException:
            await self._abandon_all(paths, token)
            raise

    async def _abandon_all(self, paths: Sequence[str], token: str) -> None:
        if not paths:
            return
        try:
            await self._access.run(gather_list(self._cache.abandon_fill(path, token) for path in paths))
        except EngineError:
            self._tally(Event.UNREACHABLE)  # the leases end by themselves

    async def _cached(self, paths: list[str]) -> dict[str, Repository]:
        if not paths:
            return {}
        if self._access.rests():
            self._tally(Event.SKIPPED, len(paths))
            return {}
        try:
            cached = await self._access.run(self._cache.get_many(paths))
        except EngineError:
            self._tally(Event.UNREACHABLE, len(paths))
            return {}
        self._tally(Event.HIT, len(cached))
        self._tally(Event.MISS, len(paths) - len(cached))
        return cached

    async def _begin_all(self, paths: list[str], token: str) -> list[str]:
        """The paths that are this token's to fill."""
        if self._access.rests():
            return []
        begin = [self._cache.begin_fill(path, token, self._patience.hold) for path in paths]
        try:
            begun = await self._access.run(gather_list(begin))
        except EngineError:
            self._tally(Event.UNREACHABLE)
            return []
        return [path for path, ours in zip(paths, begun, strict=True) if ours]

    async def _fill_all(self, found: dict[str, Repository | None], token: str) -> None:
        if not found:
            return
        fills = [self._cache.fill(path, repository, token) for path, repository in found.items()]
        try:
            filled = await self._access.run(gather_list(fills))
        except EngineError:
            self._tally(Event.UNREACHABLE)
            return
        self._tally(Event.FILLED, sum(filled))
        self._tally(Event.FILL_REFUSED, len(filled) - sum(filled))
