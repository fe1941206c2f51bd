"""A metadata database in memory that counts its queries and lets a test hold them half-way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from keywright import AsyncDatabase, aconnect
from keywright_registry.metadata.contract import MetadataTransaction
from keywright_registry.repository import Counts, Repository


class CountingMetadata:
    """Finds given repositories. With `gate` closed a query has read, but does not return yet."""

    def __init__(self, repositories: Iterable[Repository] = ()) -> None:
        self.rows = {each.path: each for each in repositories}
        self.queries = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = asyncio.Event()
        self.failing: Exception | None = None
        self.batches: dict[str, list[Counts]] = {}

    async def find(self, path: str) -> Repository | None:
        found = self.rows.get(path)
        await self._answer()
        return found

    async def find_many(self, paths: Sequence[str]) -> dict[str, Repository]:
        found = {path: self.rows[path] for path in paths if path in self.rows}
        await self._answer()
        return found

    async def page(self, after: str, limit: int) -> list[Repository]:
        raise NotImplementedError("use SQLite")

    async def add_counts(self, batch: str, counts: Sequence[Counts]) -> bool:
        await asyncio.sleep(0)
        if batch in self.batches:
            return False
        self.batches[batch] = list(counts)
        return True

    async def counts(self, path: str) -> Counts:
        added = [each for counts in self.batches.values() for each in counts if each.path == path]
        return Counts(path, sum(each.pulls for each in added), sum(each.pushes for each in added))

    async def counts_with(self, path: str, batch: str) -> tuple[Counts, bool]:
        return await self.counts(path), batch in self.batches

    def transaction(self) -> AbstractAsyncContextManager[MetadataTransaction]:
        raise NotImplementedError("use SQLite")

    async def migrate(self) -> list[str]:
        return []

    async def close(self) -> None:
        pass

    async def _answer(self) -> None:
        self.queries += 1
        self.asked.set()
        await self.gate.wait()
        if self.failing is not None:
            raise self.failing


async def until(probe: Callable[[], Awaitable[bool]], *, seconds: float = 30) -> None:
    """Poll until the condition holds."""
    async with asyncio.timeout(seconds):
        while not await probe():  # noqa: ASYNC110  # the awaited state has no event
            await asyncio.sleep(0.002)


@asynccontextmanager
async def two(url: str) -> AsyncIterator[tuple[AsyncDatabase, AsyncDatabase]]:
    """Two connections to one server, as two processes have them."""
    async with aconnect(url) as one, aconnect(url) as other:
        yield one, other
