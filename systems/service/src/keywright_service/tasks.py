"""Periodic tasks: work on a schedule, in one process at a time where that matters, through outages.

A task runs its work when it is due, survives the failures it is declared to survive, and ends when the
service stops. Any other error ends the task, and with it the service.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime, time, timedelta
from time import monotonic
from typing import NamedTuple, Protocol, TypeAlias

import msgspec

from keywright.errors import KeywrightError
from keywright_service.backoff import Backoff
from keywright_service.errors import PlatformRefusedError, PlatformTroubleError
from keywright_service.process_lock import ProcessLock
from keywright_service.waits import pause

__all__ = [
    "PeriodicTask",
    "Recovery",
    "Runnable",
    "Schedule",
    "TaskHealth",
    "Work",
    "daily",
    "next_hour",
    "running",
]

log = logging.getLogger("keywright.service")

# So often a wait looks at the clock again, which may have been set meanwhile.
_LONGEST_WAIT_SECONDS = 3600.0

Schedule: TypeAlias = timedelta | Callable[[datetime], datetime]
"""A period, counted from the end of a run; or a function of the time now, such as `daily(time(18, 30))`."""
Work: TypeAlias = Callable[[], Awaitable[datetime | timedelta | None]]
"""What a task does. It may return when, or how soon, it is due again. None leaves that to the schedule."""


def daily(at: time) -> Callable[[datetime], datetime]:
    """A schedule: the next time the clock shows this, in UTC."""

    def following(now: datetime) -> datetime:
        today = datetime.combine(now.astimezone(UTC).date(), at, UTC)
        return today if today > now else today + timedelta(days=1)

    return following


def next_hour(now: datetime) -> datetime:
    """A schedule: every full hour."""
    return now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)


def utc_now() -> datetime:
    return datetime.now(UTC)


class Recovery(NamedTuple):
    """What a task survives, and how long it waits before it tries again."""

    backoff: Backoff = Backoff(1.0, 60.0)
    refused: Backoff | None = None
    """After PlatformRefusedError, which only an operator can end. None: as after any failure."""
    survives: tuple[type[Exception], ...] = (KeywrightError, TimeoutError)
    log_every: bool = False
    """Whether each failure is logged, not only the first of several and every refusal."""


DEFAULT = Recovery()


class TaskHealth(msgspec.Struct, frozen=True):
    name: str
    due: datetime
    last: datetime | None = None
    """When it last succeeded."""
    trouble: str | None = None
    """Why the last run failed."""
    ok: bool = True
    """False from a failure until the next success."""


class PeriodicTask:
    """Work that is due at times. Without a schedule only the work says when; None from it ends the task.

    With a lock it runs in one process at a time; the others ask again later. With a limit, work that takes
    longer is cancelled, which is a failure. Hold the lock for longer than the limit.
    """

    def __init__(
        self,
        name: str,
        work: Work,
        schedule: Schedule | None,
        *,
        lock: ProcessLock | None = None,
        limit: timedelta | None = None,
        recovery: Recovery = DEFAULT,
        first: datetime | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.name = name
        self.due = first or clock()
        self._latest = math.inf
        self._work = work
        self._schedule = schedule
        self._lock = lock
        self._limit = limit
        self._recovery = recovery
        self._clock = clock
        self.succeeded = self.failed = 0
        """The numbers of runs."""
        self._failures = 0
        self._last: datetime | None = None
        self._trouble: str | None = None
        self._done = False

    @property
    def health(self) -> TaskHealth:
        return TaskHealth(self.name, self.due, self._last, self._trouble, self._trouble is None)

    async def run(self, stopping: asyncio.Event) -> None:
        """Run until the event is set; work that is under way then is finished, or ends with its limit."""
        while not (stopping.is_set() or self._done):
            await self._until_due(stopping)
            if not stopping.is_set():
                await self.attempt()

    async def attempt(self) -> bool:
        """Do the work now, unless another process is doing it; return whether it succeeded."""
        limit = None if self._limit is None else self._limit.total_seconds()
        try:
            async with self._lock.held() if self._lock else nullcontext(True) as ours:
                if not ours and self._lock:
                    self._plan(self._lock.retry)
                    return False
                async with asyncio.timeout(limit):
                    following = await self._work()
        except self._recovery.survives as error:
            self._note_failure(error)
            return False
        self._note_success(following)
        return True

    async def _until_due(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            wait = min((self.due - self._clock()).total_seconds(), self._latest - monotonic())
            if wait <= 0:
                return
            await pause(stopping, min(wait, _LONGEST_WAIT_SECONDS))

    def _plan(self, when: datetime | timedelta) -> None:
        if isinstance(when, datetime):
            self.due, self._latest = when, math.inf
        else:
            # Also by the monotonic clock: a wall clock that is set back does not make a pause longer.
            self.due, self._latest = self._clock() + when, monotonic() + when.total_seconds()

    def _note_success(self, following: datetime | timedelta | None) -> None:
        if self._failures:
            log.info("%s: works again, after %d failures", self.name, self._failures)
        now = self._clock()
        when = self._schedule if following is None else following
        if when is None:
            self._done = True
        else:
            self._plan(when(now) if callable(when) else when)
        self._failures, self._trouble, self._last = 0, None, now
        self.succeeded += 1

    def _note_failure(self, error: Exception) -> None:
        recovery, refused = self._recovery, isinstance(error, PlatformRefusedError)
        trouble = str(error) or f"it took longer than {self._limit}"
        if not self._failures or refused or recovery.log_every:
            log.warning("%s: %s", self.name, trouble)
        self._failures += 1
        self.failed += 1
        if isinstance(error, PlatformTroubleError) and error.retry_after is not None:
            seconds = error.retry_after + recovery.backoff.first_seconds * random.random()
        else:
            backoff = (recovery.refused if refused else None) or recovery.backoff
            seconds = backoff.pause(self._failures)
        self._plan(timedelta(seconds=seconds))
        self._trouble = trouble


class Runnable(Protocol):
    """A periodic task, or anything else that runs until its service stops."""

    @property
    def name(self) -> str: ...

    async def run(self, stopping: asyncio.Event) -> None:
        """Return soon after the event is set, with everything in order."""
        ...


@asynccontextmanager
async def running(
    tasks: Iterable[Runnable], *, on_failure: Callable[[], None], grace: float | None = 20.0
) -> AsyncIterator[None]:
    """Run tasks until the end of the block, then stop them: what takes longer than `grace` is cancelled.

    `on_failure` is called when a task fails, so that the block can end; its error is raised at the end.
    """
    stopping = asyncio.Event()
    started = [asyncio.create_task(each.run(stopping), name=each.name) for each in tasks]

    def note_end(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            on_failure()

    for task in started:
        task.add_done_callback(note_end)
    try:
        yield
    finally:
        stopping.set()
        late = (await asyncio.wait(started, timeout=grace))[1] if started else set()
        for task in late:
            log.warning("%s did not finish in time", task.get_name())
            task.cancel()
        ended = await asyncio.gather(*started, return_exceptions=True)
    for error in ended:
        if isinstance(error, Exception):
            raise error
