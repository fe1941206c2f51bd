"""No faster than allowed, and told a few times a second."""

from __future__ import annotations

import asyncio
import time

import msgspec

__all__ = ["Pace", "Progress"]

REPORT_SECONDS = 0.1


class Progress(msgspec.Struct, frozen=True):
    """How far a walk over keys is. `total` is the server's count of all keys, ours or not."""

    seen: int
    total: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.seen / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        return max(0, self.total - self.seen) / self.rate if self.rate else None


class Pace:
    """The clock of one walk: waits for its rate, and says when to report."""

    def __init__(self, max_rate: int | None) -> None:
        self._max_rate = max_rate
        self._reported = -REPORT_SECONDS
        self._count = 0
        self.begin()

    def begin(self) -> None:
        """Time counts from now on."""
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    async def wait(self, count: int) -> None:
        """Wait until so many more are due."""
        self._count += count
        if self._max_rate is not None:
            await asyncio.sleep(max(0.0, self._count / self._max_rate - self.seconds))

    def due(self) -> bool:
        """Whether the last report is old enough; then this is the time of the next."""
        if self.seconds - self._reported < REPORT_SECONDS:
            return False
        self._reported = self.seconds
        return True
