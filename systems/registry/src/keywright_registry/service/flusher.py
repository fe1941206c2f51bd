"""Moves counts to the database on schedule; one process of several does, the others stand by."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from datetime import timedelta

from keywright import AsyncDatabase, new_token
from keywright.errors import KeywrightError
from keywright_registry.counters import CountFlusher
from keywright_registry.metadata import Metadata
from keywright_registry.schema import FlushLease
from keywright_registry.service.metrics import Monitor

__all__ = ["FLUSH_EVERY", "ScheduledFlusher"]

log = logging.getLogger("keywright.registry")

FLUSH_EVERY = timedelta(seconds=10)


class ScheduledFlusher:
    """Flushes every so often while it is this process's turn, and once more when it is stopped.

    The turn is a lease that saves work, not what keeps counts right: two that flush at once repeat each
    other, and the database adds a batch once. A flush that fails is tried again at the next time.
    """

    def __init__(
        self,
        redis: AsyncDatabase,
        metadata: Metadata,
        monitor: Monitor,
        *,
        every: timedelta = FLUSH_EVERY,
    ) -> None:
        self._redis = redis
        self._counts = CountFlusher(redis, metadata)
        self._monitor = monitor
        self._every = every
        self._turn = FlushLease()
        self._token = new_token()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """A flush under way is finished, then the last one follows, and `run` returns."""
        self._stopping.set()

    async def run(self) -> None:
        while not self._stopping.is_set():
            if await self._is_ours():
                await self._flush()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), self._every.total_seconds())
        await self._flush()
        await self._hand_over()

    async def _is_ours(self) -> bool:
        # Three times as long as the pause, so that one slow flush does not hand it to another.
        try:
            ours = await self._redis.run(self._turn.acquire(self._token, 3 * self._every))
        except KeywrightError as error:
            log.warning("cannot tell whose turn it is to flush: %s", error)
            ours = False
        self._monitor.took_turn(ours=ours)
        return ours

    async def _flush(self) -> None:
        try:
            moved = await self._counts.flush()
        except KeywrightError as error:
            self._monitor.flush_failed()
            log.warning("counts stay in Redis until the next flush: %s", error)
        else:
            self._monitor.flushed(moved)
            if moved.batches:
                log.info("moved %d pulls and %d pushes to the database", moved.pulls, moved.pushes)

    async def _hand_over(self) -> None:
        try:
            await self._redis.run(self._turn.release(self._token))
        except KeywrightError as error:
            log.warning("the turn to flush runs out by itself: %s", error)
