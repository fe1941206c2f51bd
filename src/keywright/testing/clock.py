"""A clock that stands still until a test moves it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from keywright.errors import UsageError

__all__ = ["ManualClock"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ManualClock:
    """A clock whose wall time and monotonic time move only through advance(). Call it for the time."""

    def __init__(self, start: datetime = datetime(2024, 1, 1, tzinfo=UTC)) -> None:
        if start.tzinfo is None:
            raise UsageError(
                f"a clock cannot start at {start}, which names no time zone. Pass an aware datetime."
            )
        self._start = start.astimezone(UTC)
        self._elapsed = timedelta()
        self._guard = threading.Lock()

    def __call__(self) -> datetime:
        return self.now()

    def now(self) -> datetime:
        """Return the time that the clock shows."""
        return self._start + self._elapsed

    def now_ms(self) -> int:
        """Return the milliseconds since 1970, as Redis counts them."""
        return (self.now() - _EPOCH) // timedelta(milliseconds=1)

    def monotonic(self) -> float:
        """Return the seconds since the clock was made."""
        return self._elapsed.total_seconds()

    def advance(
        self,
        by: timedelta = timedelta(),
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
    ) -> datetime:
        """Move the clock forward by the sum of the arguments. Return the new time."""
        named = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds)
        if by + named < timedelta():
            raise UsageError(
                f"a clock cannot advance by {by + named}. Make a second clock that starts earlier."
            )
        with self._guard:
            self._elapsed += by + named
            return self.now()
