"""A walk over a cluster that fails at one node, and what is left of it at the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from keywright import AsyncDatabase, aconnect


class FailedError(Exception):
    """Whoever is told of the progress fails."""


def left_of(
    cluster_url: str, walk: Callable[[AsyncDatabase, Callable[[Any], None]], Awaitable[Any]]
) -> list[str]:
    """What still runs after a walk failed, besides what the engine ends by itself: batches that were sent,
    and a connection that it opens for whoever comes next.
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
