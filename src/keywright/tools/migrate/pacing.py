"""No faster than allowed, and told a few times a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from keywright.tools.migrate.progress import Progress

__all__ = ["Pace"]

REPORT_SECONDS = 0.1


class Pace:
    """The clock of one migration: waits for its rate, and reports on it."""

    def __init__(self, max_rate: int | None, on_progress: Callable[[Progress], None] | None) -> None:
        self._max_rate = max_rate
        self._on_progress = on_progress
        self._started = time.monotonic()
        self._reported = 0.0
        self._count = 0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    async def wait(self, count: int) -> None:
        """Wait until so many more are due."""
        self._count += count
        if self._max_rate is not None:
            await asyncio.sleep(max(0.0, self._count / self._max_rate - self.seconds))

    def report(self, seen: int, total: int, done: int, left: int, *, final: bool = False) -> None:
        if self._on_progress is None or (not final and self.seconds - self._reported < REPORT_SECONDS):
            return
        self._reported = self.seconds
        self._on_progress(Progress(seen, max(seen, total), done, left, self.seconds))
