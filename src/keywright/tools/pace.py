"""Walks over keys: concurrent, rate-limited, with progress reported a few times a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

import msgspec

from keywright.engine import AsyncDatabase
from keywright.engine.nodes import NodeReader, info
from keywright.errors import KeywrightError, ServerRefusedError

__all__ = ["Pace", "WalkProgress", "place_of", "side_by_side"]

T = TypeVar("T")

REPORT_SECONDS = 0.1
CATCH_UP_SECONDS = 0.25


class WalkProgress(msgspec.Struct, frozen=True):
    """The progress of a walk over keys. `total` is the server's count of all keys, ours or not."""

    seen: int
    total: int
    seconds: float

    @property
    def words(self) -> str:
        """Return the text to show beside the numbers."""
        return "keys"

    @property
    def rate(self) -> float:
        return self.seen / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        return max(0, self.total - self.seen) / self.rate if self.rate else None


class Pace:
    """The rate limiter and reporting clock of one walk."""

    def __init__(self, max_rate: int | None) -> None:
        self._max_rate = max_rate
        self._reported = -REPORT_SECONDS
        self.begin()

    def begin(self) -> None:
        """Start the clock."""
        self._started = self._due = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    async def wait(self, count: int) -> None:
        """Wait until the rate allows `count` more. After a delay, at most a short burst catches up."""
        if self._max_rate is not None:
            now = time.monotonic()
            self._due = max(self._due, now - CATCH_UP_SECONDS) + count / self._max_rate
            await asyncio.sleep(max(0.0, self._due - now))

    def due(self) -> bool:
        """Return whether a report is due, and if so start the interval until the next one."""
        if self.seconds - self._reported < REPORT_SECONDS:
            return False
        self._reported = self.seconds
        return True


async def place_of(db: AsyncDatabase, node: NodeReader) -> str:
    """Return the identity that a SCAN cursor is valid for: database, node and the node's run id."""
    found = await db.run(info(b"server").attempt(), at=node)
    if isinstance(found, KeywrightError) and not isinstance(found, ServerRefusedError):
        raise found
    run = "unknown" if isinstance(found, KeywrightError) else found.get("run_id", "unknown")
    return f"{node.label} database {db.address.settings.get('db', 0)} run {run}"


async def side_by_side(walks: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run walks concurrently and return their results. If one fails, cancel the others before raising."""
    tasks = [asyncio.create_task(walk) for walk in walks]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
