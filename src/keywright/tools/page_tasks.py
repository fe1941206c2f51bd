"""The pages of a walk that are at work, a bounded number at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

__all__ = ["PageTasks"]


class PageTasks:
    """Runs the work on pages, `most` at a time, in `async with`. An error ends it, and cancels the others."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._tasks: set[asyncio.Task[Any]] = set()

    async def add(self, work: Coroutine[Any, Any, Any]) -> None:
        """Begin the work on a page. Return when there is room for the next one."""
        self._tasks.add(asyncio.create_task(work))
        while len(self._tasks) >= self._most:
            await self._one()

    async def all_done(self) -> None:
        """Wait until nothing is at work."""
        while self._tasks:
            await self._one()

    async def _one(self) -> None:
        done, self._tasks = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.gather(*done)  # raises the first error, and notes the others

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
