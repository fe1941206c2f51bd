"""Asking a Redis that may be gone: a deadline for each operation, and a rest after a failure."""

from __future__ import annotations

import asyncio
import time
from asyncio import CancelledError, Task, current_task
from typing import Any, TypeVar

from keywright import AsyncDatabase, Call
from keywright.errors import DeadlineError, EngineError

__all__ = ["Access"]

T = TypeVar("T")


class Deadlines:
    """Cancels what takes longer than `seconds`, on one timer for all: one each costs a fifth of a GET."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._tick = seconds / 10
        self._begun: dict[Task[Any], float] = {}
        self._cancelled: set[Task[Any]] = set()
        self._ticking = False

    def begin(self, task: Task[Any]) -> None:
        loop = task.get_loop()
        self._begun[task] = loop.time()
        if not self._ticking:
            self._ticking = True
            loop.call_later(self._tick, self._sweep, loop)

    def end(self, task: Task[Any]) -> bool:
        """Take back the cancellation of a task, if its deadline caused one; whether it did."""
        self._begun.pop(task, None)
        if task not in self._cancelled:
            return False
        self._cancelled.discard(task)
        task.uncancel()
        return True

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look at all that is under way; a tick early rather than late."""
        latest = loop.time() - self._seconds + self._tick
        for task, begun in [*self._begun.items()]:
            if begun <= latest:
                del self._begun[task]
                self._cancelled.add(task)
                task.cancel()
        self._ticking = bool(self._begun)
        if self._ticking:
            loop.call_later(self._tick, self._sweep, loop)


class Access:
    """Runs calls within `deadline_seconds` each; after a failure only one call in `rest_seconds` tries again.

    So an outage costs one waiter its deadline now and then, not every one, and the first call that succeeds
    ends it. `run` raises EngineError and nothing else when Redis is not there.
    """

    def __init__(
        self, redis: AsyncDatabase, *, deadline_seconds: float = 0.5, rest_seconds: float = 0.25
    ) -> None:
        self.redis = redis
        self.deadline_seconds = deadline_seconds
        self.rest_seconds = rest_seconds
        self._failing = False
        self._rest_until = 0.0
        self._deadlines = Deadlines(deadline_seconds)

    def rests(self) -> bool:
        """Whether a call would be in vain. When the rest is over, the first to ask is the one who tries."""
        if not self._failing:
            return False
        now = time.monotonic()
        if now < self._rest_until:
            return True
        self._rest_until = now + self.deadline_seconds + self.rest_seconds
        return False

    async def run(self, call: Call[T]) -> T:
        task = current_task()
        assert task is not None
        before = task.cancelling()
        self._deadlines.begin(task)
        try:
            value = await self.redis.run(call)
        except CancelledError as error:
            # Ours, unless somebody else cancelled the task as well.
            if self._deadlines.end(task) and task.cancelling() <= before:
                self._failed()
                raise DeadlineError(self.redis.address.shown, self.deadline_seconds) from error
            raise
        except EngineError:
            self._failed()
            raise
        finally:
            self._deadlines.end(task)
        self._failing = False
        return value

    def _failed(self) -> None:
        self._failing = True
        self._rest_until = time.monotonic() + self.rest_seconds
