"""Metadata databases for tests: PostgreSQL and SQLite, opened by URL inside an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from keywright.testing import ManualClock
from keywright_registry.metadata import Metadata, open_metadata

T = TypeVar("T")


@asynccontextmanager
async def opened(
    url: str, *, clock: ManualClock | None = None, migrate: bool = True
) -> AsyncIterator[Metadata]:
    metadata = await open_metadata(url, clock=clock)
    try:
        if migrate:
            await metadata.migrate()
        yield metadata
    finally:
        await metadata.close()


def on(url: str, work: Callable[[Metadata], Awaitable[T]], *, clock: ManualClock | None = None) -> T:
    """Run `work` on a migrated database in an event loop of its own."""

    async def run() -> T:
        async with opened(url, clock=clock) as metadata:
            return await work(metadata)

    return asyncio.run(run())


async def create(metadata: Metadata, *paths: str) -> None:
    async with metadata.transaction() as transaction:
        for path in paths:
            await transaction.create_or_find(path)
