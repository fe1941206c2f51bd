"""Tasks: what is done on a schedule, by one bot at a time, through outages, until the bot is told to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, time, timedelta

import msgspec

from keywright import AsyncDatabase, Lease
from keywright.errors import KeywrightError
from keywright_meetup.schema import TaskLease, new_id

__all__ = ["GRACE", "Next", "Task", "TaskHealth", "Work", "daily", "every", "holding", "next_hour"]

log = logging.getLogger("keywright.meetup")

# How much longer the lease is held than the work may take: for what ends it.
GRACE = timedelta(seconds=30)
BUSY = timedelta(seconds=30)

Next = Callable[[datetime], datetime]
Work = Callable[[], Awaitable[datetime | None]]


def every(period: timedelta) -> Next:
    return lambda now: now + period


def daily(at: time) -> Next:
    """The next time the clock shows this, in UTC."""

    def following(now: datetime) -> datetime:
        today = datetime.combine(now.astimezone(UTC).date(), at, UTC)
        return today if today > now else today + timedelta(days=1)

    return following


def next_hour(now: datetime) -> datetime:
    return now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)


@asynccontextmanager
async def holding(db: AsyncDatabase, lease: Lease, hold: timedelta) -> AsyncIterator[bool]:
    """Whether the lease is ours within the block; it is freed also where its reply was never heard."""
    holder = new_id()
    try:
        yield await db.run(lease.acquire(holder, hold))
    finally:
        await db.run(lease.release(holder))


class TaskHealth(msgspec.Struct, frozen=True):
    name: str
    due: datetime
    last: datetime | None = None
    """When it last succeeded."""
    trouble: str | None = None


class Task:
    """Work that is due at times. What it returns, or else `following`, is when it is due again.

    Trouble is waited out for `retry`. The work runs under a lease that is held longer than it may take, so of
    several bots one is at it, and one that died is replaced when the hold runs out.
    """

    def __init__(
        self,
        name: str,
        work: Work,
        *,
        db: AsyncDatabase,
        clock: Callable[[], datetime],
        following: Next,
        retry: timedelta,
        limit: timedelta,
        first: datetime | None = None,
    ) -> None:
        self.name = name
        self.due = first or clock()
        self._work = work
        self._db = db
        self._clock = clock
        self._following = following
        self._retry = retry
        self._limit = limit
        self._last: datetime | None = None
        self._trouble: str | None = None

    @property
    def health(self) -> TaskHealth:
        return TaskHealth(self.name, self.due, self._last, self._trouble)

    async def run(self, stopping: asyncio.Event) -> None:
        """Until told to stop; work that is under way is finished, or ends with its limit."""
        while not stopping.is_set():
            wait = (self.due - self._clock()).total_seconds()
            if wait > 0:
                await _in_bounds(stopping.wait(), min(wait, 3600.0))
            elif not stopping.is_set():
                await self.attempt()

    async def attempt(self) -> bool:
        """Do the work now, if no other bot is at it; whether it succeeded."""
        try:
            async with holding(self._db, TaskLease(self.name), self._limit + GRACE) as held:
                if not held:
                    self.due = self._clock() + BUSY
                    return False
                async with asyncio.timeout(self._limit.total_seconds()):
                    following = await self._work()
        except (KeywrightError, TimeoutError) as error:
            return self._failed(error)
        if self._trouble is not None:
            log.info("%s: works again", self.name)
        self._trouble, self._last = None, self._clock()
        self.due = following or self._following(self._clock())
        return True

    def _failed(self, error: Exception) -> bool:
        self._trouble = str(error) or f"it took longer than {self._limit}"
        log.warning("%s: %s", self.name, self._trouble)
        self.due = self._clock() + self._retry
        return False


async def _in_bounds(work: Awaitable[object], seconds: float) -> None:
    """Wait for something, at most so long."""
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return
