"""A walk over a cluster that fails at one node, and the tasks it leaves at the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from keywright import AsyncDatabase, aconnect


class FailedError(Exception):
    """The error of the progress callback."""


def left_of(
    cluster_url: str, walk: Callable[[AsyncDatabase, Callable[[Any], None]], Awaitable[Any]]
) -> list[str]:
    """Return the tasks that still run after a walk failed, except those of the engine: sent batches, and a
    connection that it opens for the next caller.
    """

    def fail(progress: Any) -> None:
        raise FailedError

    async def run() -> list[str]:
        async with aconnect(cluster_url) as db:
            before = asyncio.all_tasks()
            with pytest.raises(FailedError):
                await walk(db, fail)
            left = [repr(task.get_coro()) for task in asyncio.all_tasks() - before]
            return [
                each for each in left if "AsyncDatabase." not in each and "AsyncConnectionPool." not in each
            ]

    return asyncio.run(run())
