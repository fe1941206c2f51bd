"""The metadata database, whichever it is: operations in, repositories and counts out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from keywright import Clock
from keywright_registry.metadata.dialect import Connections, Run
from keywright_registry.metadata.statements import Statements
from keywright_registry.repository import Counts, Repository

__all__ = ["Tables", "TablesTransaction"]


class TablesTransaction:
    """A `Transaction`, until the block that opened it is left."""

    def __init__(self, statements: Statements, run: Run) -> None:
        self._statements = statements
        self._run = run

    async def find(self, path: str) -> Repository | None:
        return await self._run(self._statements.find(path))

    async def create_or_find(self, path: str) -> Repository:
        return await self._run(self._statements.create_or_find(path))

    async def update(self, repository: Repository) -> Repository:
        return await self._run(self._statements.update(repository))

    async def rename(self, old: str, new: str) -> list[tuple[str, Repository]]:
        return await self._run(self._statements.rename(old, new))

    async def delete(self, path: str) -> bool:
        return await self._run(self._statements.delete(path))


class Tables:
    """A `Metadata` on open connections."""

    def __init__(self, connections: Connections, clock: Clock) -> None:
        self._connections = connections
        self._statements = Statements(connections.dialect, clock)

    async def migrate(self) -> list[str]:
        async with self._connections.transaction() as run:
            return await run(self._statements.migrate())

    async def find(self, path: str) -> Repository | None:
        return await self._connections.read(self._statements.find(path))

    async def find_many(self, paths: Sequence[str]) -> dict[str, Repository]:
        return await self._connections.read(self._statements.find_many(paths))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[TablesTransaction]:
        async with self._connections.transaction() as run:
            yield TablesTransaction(self._statements, run)

    async def add_counts(self, batch: str, counts: Sequence[Counts]) -> bool:
        async with self._connections.transaction() as run:
            return await run(self._statements.add_counts(batch, counts))

    async def counts(self, path: str) -> Counts:
        return await self._connections.read(self._statements.counts(path))

    async def counts_with(self, path: str, batch: str) -> tuple[Counts, bool]:
        return await self._connections.read(self._statements.counts_with(path, batch))

    async def close(self) -> None:
        await self._connections.close()

    def __repr__(self) -> str:
        return f"<Tables {self._connections.shown}>"
