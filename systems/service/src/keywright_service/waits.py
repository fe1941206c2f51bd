"""Waits that end early: when the service stops, when something else comes first, when time is up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

__all__ = ["ended", "first_of", "pause", "unless"]

T = TypeVar("T")


async def pause(stopping: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set, at most so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        return


async def first_of(*waits: Awaitable[object]) -> None:
    """Wait until one of them is over, and cancel the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def unless(stopping: asyncio.Event, wait: Awaitable[T]) -> T | None:
    """Return the result of `wait`; cancel it and return None if the event is set first."""
    task = asyncio.ensure_future(wait)
    stop = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        stop.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait([task])


async def ended(task: asyncio.Task[Any], *, within: float) -> None:
    """Wait for a task that was asked to stop; cancel it after so many seconds."""
    await asyncio.wait([task], timeout=within)
    task.cancel()
    await asyncio.wait([task])
