"""Moves counts to the database on schedule, in one process of several at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import TypeAlias

from keywright import AsyncDatabase
from keywright.errors import KeywrightError
from keywright_registry.counters import CountFlusher
from keywright_registry.metadata import Metadata, MetadataTransaction
from keywright_registry.registry import RegistryTransaction
from keywright_registry.repository import Counts
from keywright_registry.schema import FlushLease
from keywright_registry.service.metrics import RegistryMetrics
from keywright_service.backoff import Backoff
from keywright_service.process_lock import ProcessLock
from keywright_service.tasks import PeriodicTask, Recovery

__all__ = ["ScheduledFlusher"]

log = logging.getLogger("keywright.registry")

Transaction: TypeAlias = AbstractAsyncContextManager[MetadataTransaction | RegistryTransaction]


class ScheduledFlusher:
    """Flushes at an interval while this process holds the lease, and once more at the end.

    The lease saves work, it does not protect the counts: two concurrent flushes repeat each other, and the
    database adds a batch once. A failed flush is retried at the next interval. A repository that was pushed
    to is created in the database before its counts are added.
    """

    name = "flush of counts"

    def __init__(
        self,
        redis: AsyncDatabase,
        metadata: Metadata,
        metrics: RegistryMetrics,
        *,
        every: timedelta,
        transaction: Callable[[], Transaction] | None = None,
    ) -> None:
        self._metadata = metadata
        self._transaction = transaction or metadata.transaction
        self._counts = CountFlusher(redis, metadata, before=self._create_pushed)
        self._metrics = metrics
        # Held three times as long as the pause, so that one slow flush does not hand it to another process.
        self._lock = metrics.lock = ProcessLock(redis, FlushLease(), 3 * every, keep=True, retry=every)
        self._task = PeriodicTask(
            self.name,
            self._flush,
            every,
            lock=self._lock,
            recovery=Recovery(Backoff.constant(every.total_seconds()), log_every=True),
        )

    async def run(self, stopping: asyncio.Event) -> None:
        """Run until the event is set: a flush under way is finished, then the last one follows."""
        await self._task.run(stopping)
        await self._flush()
        try:
            await self._lock.release()
        except KeywrightError as error:
            log.warning("the lease to flush counts runs out without a release: %s", error)

    async def _create_pushed(self, counts: Counts) -> None:
        if counts.pushes and await self._metadata.find(counts.path) is None:
            async with self._transaction() as transaction:
                await transaction.create_or_find(counts.path)
            log.info("created the repository %s, which was pushed to", counts.path)

    async def _flush(self) -> None:
        try:
            moved = await self._counts.flush()
        except KeywrightError as error:
            self._metrics.flush_failed()
            log.warning("counts stay in Redis until the next flush: %s", error)
        else:
            self._metrics.flushed(moved)
            if moved.batches:
                log.info("moved %d pulls and %d pushes to the database", moved.pulls, moved.pushes)
