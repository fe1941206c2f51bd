"""Jobs: what is done again and again until the service is told to stop, through outages."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import msgspec

from keywright.errors import EngineError, StoredDataError
from keywright_openmod.service.connection import RateLimitedError
from keywright_service.errors import PlatformRefusedError, PlatformTroubleError

__all__ = ["Job", "JobHealth"]

log = logging.getLogger("keywright.openmod")

LONGEST_PAUSE = timedelta(minutes=1)
LONGEST_REFUSED = timedelta(minutes=10)


class JobHealth(msgspec.Struct, frozen=True):
    ok: bool
    last: datetime | None
    """When a step last succeeded."""
    trouble: str | None = None


class Job:
    """Runs a step, pauses as it says, and starts over; None from the step ends it.

    Trouble is waited out with growing pauses, or for as long as a rate limit says; its beginning and its
    end are logged. A stored value that cannot be read is trouble of this job alone. Any other error ends
    the job, and with it the service.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], Awaitable[timedelta | None]],
        *,
        retry: timedelta,
        ends_when_refused: bool = False,
    ) -> None:
        self.name = name
        self._step = step
        self._retry = retry
        self._ends_when_refused = ends_when_refused
        self._failures = 0
        self._last: datetime | None = None
        self._trouble: str | None = None

    @property
    def health(self) -> JobHealth:
        """Healthy until a step fails; from then on once one succeeds."""
        return JobHealth(self._trouble is None, self._last, self._trouble)

    async def run(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            pause = await self._tried()
            if pause is None:
                return
            if pause > timedelta():
                await _pause(stopping, pause)

    async def _tried(self) -> timedelta | None:
        try:
            pause = await self._step()
        except (PlatformTroubleError, PlatformRefusedError, StoredDataError, EngineError) as error:
            if self._ends_when_refused and isinstance(error, PlatformRefusedError):
                raise
            return self._failed(error)
        if self._failures:
            log.info("%s: works again, after %d failures", self.name, self._failures)
        self._failures, self._trouble, self._last = 0, None, datetime.now(UTC)
        return pause

    def _failed(self, error: Exception) -> timedelta:
        if self._trouble is None or isinstance(error, PlatformRefusedError):
            log.warning("%s: %s", self.name, error)
        self._failures += 1
        self._trouble = str(error)
        if isinstance(error, RateLimitedError):
            return timedelta(seconds=error.seconds) + self._retry * random.random()
        longest = LONGEST_REFUSED if isinstance(error, PlatformRefusedError) else LONGEST_PAUSE
        grown = self._retry * 2.0 ** min(self._failures - 1, 12)
        return min(longest, grown) * (0.5 + random.random() / 2)


async def _pause(stopping: asyncio.Event, pause: timedelta) -> None:
    try:
        async with asyncio.timeout(pause.total_seconds()):
            await stopping.wait()
    except TimeoutError:
        return
