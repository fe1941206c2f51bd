"""Waiting: for whichever comes first, and until something works."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from keywright.errors import KeywrightError

__all__ = ["ended", "first_of", "persist", "unless"]

T = TypeVar("T")

log = logging.getLogger("keywright.gateway")

LONGEST_PAUSE_SECONDS = 5.0


async def first_of(*waits: Awaitable[object]) -> None:
    """Wait for whichever is over first; the others are cancelled."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def unless(stopped: asyncio.Event, wait: Awaitable[T]) -> T | None:
    """What was waited for; None, and the wait cancelled, when it was stopped first."""
    task = asyncio.ensure_future(wait)
    stop = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        stop.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait([task])


async def ended(task: asyncio.Task[None], *, within: float) -> None:
    """Wait for a task that was told to stop; cancel it after so many seconds."""
    await asyncio.wait([task], timeout=within)
    task.cancel()
    await asyncio.wait([task])


async def persist(
    attempt: Callable[[], Awaitable[T]],
    what: str,
    trouble: type[KeywrightError] | tuple[type[KeywrightError], ...],
) -> T:
    """Try until it works, with growing pauses. The first failure is told, and that it works again."""
    failures = 0
    while True:
        try:
            result = await attempt()
        except trouble as error:
            if not failures:
                log.warning("cannot %s, trying on: %s", what, error)
            failures += 1
            longest = min(LONGEST_PAUSE_SECONDS, 0.1 * 2.0 ** min(failures, 10))
            await asyncio.sleep(longest * (0.5 + random.random() / 2))
        else:
            if failures:
                log.info("could %s again, after %d failures", what, failures)
            return result
