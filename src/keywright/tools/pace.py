"""Walks over keys: gentle or at full speed, concurrent, with progress reported a few times a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable
from typing import Any, NamedTuple, TypeVar

import msgspec

from keywright.engine.nodes import NodeReader, info
from keywright.errors import KeywrightError, ServerRefusedError
from keywright.tools.readable import ReadableDatabase

__all__ = [
    "FULL_SPEED",
    "GENTLE",
    "Clock",
    "Pace",
    "Pacemaker",
    "WalkProgress",
    "place_of",
    "side_by_side",
]

T = TypeVar("T")

REPORT_SECONDS = 0.1
CATCH_UP_SECONDS = 0.25
GENTLE_PAGE = 250
"""The names of one page at a gentle pace. Reading their keys holds the server for less than a millisecond."""
SMALLEST_PAGE = 10
PAGES_A_SECOND = 50
"""At a low rate a page is smaller, so that there are so many a second."""
GENTLE_SHARE = 0.03
"""The share of the time that a gentle walk works; it rests for the others."""
LONGEST_REST_SECONDS = 0.25
"""A batch that takes long to compute holds the server no longer than another one."""
BEFORE_RESTS_SECONDS = 0.05
"""So long a walk works before its first rest: a small database is walked at once."""


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


class Pace(NamedTuple):
    """How fast a walk over keys may go. The default is gentle: other clients hardly notice the walk.

    A gentle walk reads small pages, one at a time, and rests after each for several times as long as it
    worked. `full_speed` turns that off. `max_rate` is in keys a second, and holds at either pace.
    """

    max_rate: int | None = None
    full_speed: bool = False

    def on(self, db: ReadableDatabase) -> Pace:
        """Return the pace for a database: a file is read at full speed, since no client waits for it."""
        return self._replace(full_speed=True) if db.is_still else self

    def page(self, most: int) -> int:
        """Return how many names to ask for at once."""
        size = most if self.full_speed else min(most, GENTLE_PAGE)
        rate = self.max_rate
        return size if rate is None else max(SMALLEST_PAGE, min(size, rate // PAGES_A_SECOND))

    def together(self, most: int) -> int:
        """Return how many pages to read at once."""
        return most if self.full_speed else 1


GENTLE, FULL_SPEED = Pace(), Pace(full_speed=True)


class Clock:
    """The time, and the time that this thread has worked."""

    def now(self) -> float:
        return time.monotonic()

    def worked(self) -> float:
        """Return the processor time of this thread. Waiting for a distant server is not work."""
        return time.thread_time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Pacemaker:
    """Keeps the pace of one walk, and says when a report is due."""

    def __init__(self, pace: Pace, clock: Clock | None = None) -> None:
        self.pace = pace
        self._clock = clock or Clock()
        self._reported = -REPORT_SECONDS
        self.begin()

    def begin(self) -> None:
        """Start the clock."""
        self._started = self._due = self._rested = self._clock.now()
        self._worked = self._clock.worked()
        self._unrested = BEFORE_RESTS_SECONDS

    @property
    def seconds(self) -> float:
        return self._clock.now() - self._started

    async def wait(self, count: int) -> None:
        """Rest after `count` keys, and wait until the rate allows more."""
        now = self._clock.now()
        until = max(self._rest(now), self._allowed(now, count))
        if until > now:
            await self._clock.sleep(until - now)
            self._worked = self._clock.worked()  # what others did here meanwhile is not its work

    def _rest(self, now: float) -> float:
        """Return when the walk has rested for its work since the last rest. To wait for replies is rest."""
        before, self._worked = self._worked, self._clock.worked()
        worked = self._worked - before
        if self.pace.full_speed:
            return now
        if self._unrested > 0:
            self._unrested -= worked
            self._rested = now
        else:
            due = max(now, self._rested + worked / GENTLE_SHARE)
            self._rested = min(due, now + LONGEST_REST_SECONDS)
        return self._rested

    def _allowed(self, now: float, count: int) -> float:
        """Return when the rate allows `count` more. After a delay, at most a short burst catches up."""
        rate = self.pace.max_rate
        if rate is None:
            return now
        self._due = max(self._due, now - CATCH_UP_SECONDS) + count / rate
        return self._due

    def due(self) -> bool:
        """Return whether a report is due, and if so start the interval until the next one."""
        if self.seconds - self._reported < REPORT_SECONDS:
            return False
        self._reported = self.seconds
        return True


async def place_of(db: ReadableDatabase, node: NodeReader) -> str:
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
