"""A circuit breaker around Redis: a deadline for each call, and a pause after a failure."""

from __future__ import annotations

import asyncio
import time
from asyncio import CancelledError, Task, current_task
from typing import Any, TypeVar

from keywright import AsyncDatabase, Call
from keywright.errors import DeadlineError, EngineError

__all__ = ["CircuitBreaker"]

T = TypeVar("T")


class Deadlines:
    """Cancels tasks that take longer than `seconds`, with one timer for all.

    A timer for each task, as in `asyncio.timeout`, costs a fifth of a GET.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._tick = seconds / 10
        self._started: dict[Task[Any], float] = {}
        self._cancelled: set[Task[Any]] = set()
        self._ticking = False

    def begin(self, task: Task[Any]) -> None:
        loop = task.get_loop()
        self._started[task] = loop.time()
        if not self._ticking:
            self._ticking = True
            loop.call_later(self._tick, self._sweep, loop)

    def end(self, task: Task[Any]) -> bool:
        """Return whether the deadline cancelled the task, and take the cancellation back."""
        self._started.pop(task, None)
        if task not in self._cancelled:
            return False
        self._cancelled.discard(task)
        task.uncancel()
        return True

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        latest = loop.time() - self._seconds + self._tick  # a tick early rather than late
        for task, started in list(self._started.items()):
            if started <= latest:
                del self._started[task]
                self._cancelled.add(task)
                task.cancel()
        self._ticking = bool(self._started)
        if self._ticking:
            loop.call_later(self._tick, self._sweep, loop)


class CircuitBreaker:
    """Runs calls within `deadline_seconds` each, and opens the circuit for `reset_seconds` after a failure.

    While the circuit is open, one call in each interval is let through as a trial; the first success closes
    the circuit. So an outage costs one caller its deadline now and then, and not every caller. `run` raises
    only EngineError when Redis does not answer.
    """

    def __init__(
        self, redis: AsyncDatabase, *, deadline_seconds: float = 0.5, reset_seconds: float = 0.25
    ) -> None:
        self.redis = redis
        self.deadline_seconds = deadline_seconds
        self.reset_seconds = reset_seconds
        self._deadlines = Deadlines(deadline_seconds)
        self._failing = False
        self._open_until = 0.0

    def is_open(self) -> bool:
        """Return whether to skip Redis. After `reset_seconds` one caller gets False and makes the trial."""
        if not self._failing:
            return False
        now = time.monotonic()
        if now < self._open_until:
            return True
        self._open_until = now + self.deadline_seconds + self.reset_seconds
        return False

    async def run(self, call: Call[T]) -> T:
        task = current_task()
        assert task is not None
        before = task.cancelling()
        self._deadlines.begin(task)
        try:
            value = await self.redis.run(call)
        except CancelledError as error:
            # The deadline's own cancellation, unless another one came as well.
            if self._deadlines.end(task) and task.cancelling() <= before:
                self._open()
                raise DeadlineError(self.redis.address.shown, self.deadline_seconds) from error
            raise
        except EngineError:
            self._open()
            raise
        finally:
            self._deadlines.end(task)
        self._failing = False
        return value

    def _open(self) -> None:
        self._failing = True
        self._open_until = time.monotonic() + self.reset_seconds
