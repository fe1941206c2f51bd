"""The rate limits of clients. The clock is a parameter, so that tests can advance it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum, auto

from keywright_discord.simulator.settings import SimulatorSettings

__all__ = ["IdentifyLimits", "Verdict", "Window"]


class Window:
    """At most `limit` in any `seconds`."""

    def __init__(self, limit: int, seconds: float, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._seconds = seconds
        self._clock = clock
        self._admitted: deque[float] = deque()

    def admit(self) -> bool:
        """Count one more if it fits. Return whether it did."""
        if self.remaining == 0:
            return False
        self._admitted.append(self._clock())
        return True

    @property
    def remaining(self) -> int:
        horizon = self._clock() - self._seconds
        while self._admitted and self._admitted[0] <= horizon:
            self._admitted.popleft()
        return max(0, self._limit - len(self._admitted))

    @property
    def reset_after(self) -> float:
        """Seconds until the oldest no longer counts; 0 if none counts."""
        if self.remaining == self._limit:
            return 0.0
        return self._admitted[0] + self._seconds - self._clock()


class Verdict(Enum):
    ADMITTED = auto()
    TOO_FAST = auto()
    EXHAUSTED = auto()


class IdentifyLimits:
    """One identify per bucket (`shard_id % max_concurrency`) and window, and a daily limit."""

    def __init__(self, settings: SimulatorSettings) -> None:
        self._settings = settings
        self._day = Window(settings.session_starts, settings.session_start_window_seconds, settings.clock)
        self._buckets = [
            Window(1, settings.identify_window_seconds, settings.clock)
            for _ in range(settings.max_concurrency)
        ]

    def admit(self, shard_id: int) -> Verdict:
        """Count an identify, also one that came too fast. Return whether it is admitted."""
        if not self._day.admit():
            return Verdict.EXHAUSTED
        bucket = self._buckets[shard_id % len(self._buckets)]
        return Verdict.ADMITTED if bucket.admit() else Verdict.TOO_FAST

    def as_data(self) -> dict[str, int]:
        """Return the `session_start_limit` of /gateway/bot."""
        return {
            "total": self._settings.session_starts,
            "remaining": self._day.remaining,
            "reset_after": round(self._day.reset_after * 1000),
            "max_concurrency": self._settings.max_concurrency,
        }
