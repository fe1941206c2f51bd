"""Reads some queues: first the pending entries of this consumer, then new ones.

On a cluster one command reads streams of one slot, so there a consumer has a reader for each slot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from keywright import gather_list
from keywright.errors import EngineError, KeywrightError
from keywright_messaging.redis_streams import commands
from keywright_messaging.redis_streams.acknowledgements import Settlement
from keywright_messaging.redis_streams.delivery import StreamDelivery
from keywright_messaging.redis_streams.delivery_buffer import DeliveryBuffer, StreamQueue
from keywright_messaging.redis_streams.outages import BACKOFF, broker_error

__all__ = ["Reader"]

BLOCK = timedelta(seconds=5)
SHORT_BLOCK = timedelta(milliseconds=100)
PAGE = 1000


class Reader:
    """Fills a buffer from queues whose streams share a slot."""

    def __init__(
        self, queues: Sequence[StreamQueue], settlement: Settlement, buffer: DeliveryBuffer, share: int
    ) -> None:
        self._queues = list(queues)
        self._by_name = {queue.name: queue for queue in queues}
        self._settlement = settlement
        self._engine = settlement.database.engine
        self._group = settlement.group
        self._buffer = buffer
        self._share = share

    async def run(self) -> None:
        """Read until cancelled. The consumer's batch() raises an error that a retry does not help."""
        restarted, failures = True, 0
        while True:
            try:
                await self._engine.run(
                    commands.create_groups([queue.stream for queue in self._queues], self._group)
                )
                for queue in self._queues:
                    await self._resume(queue, restarted=restarted)
                restarted, failures = False, 0
                while True:
                    await self._read()
            except EngineError as error:
                failures += 1
                if error.is_transient:
                    self._buffer.forget(self._queues)
                elif not commands.is_missing_group(error):
                    self._buffer.fail(broker_error(error))
                    return
            except KeywrightError as error:
                self._buffer.fail(error)
                return
            # At once after the first failure: a deleted group only has to be created again.
            await asyncio.sleep(BACKOFF.pause(failures - 1) if failures > 1 else 0)

    async def _resume(self, queue: StreamQueue, *, restarted: bool) -> None:
        """Deliver the entries again that are pending for this consumer and not in its buffer.

        After a restart that counts as another delivery, since an entry may have ended the process; entries
        with at most one attempt left are left to the claimer then. After a reconnect it does not count.
        """
        after: str | None = None
        while True:
            room = min(PAGE, await self._buffer.room(1))
            rows = await self._engine.run(
                commands.pending(
                    queue.stream, self._group, after=after, count=room, consumer=self._settlement.consumer()
                )
            )
            if not rows:
                return
            after = rows[-1].id
            missing = [row for row in rows if row.id not in queue.held and row.id not in queue.postponed]
            last_attempt = self._settlement.settings.max_attempts - 1
            suspects = {row.id for row in missing if restarted and 0 < row.deliveries >= last_attempt}
            if suspects:  # idle for as long as the claimer wants them
                consumer, idle = self._settlement.consumer(), self._settlement.settings.claim_after
                stamp = commands.restamp(queue.stream, self._group, consumer, list(suspects), idle=idle)
                await self._engine.run(stamp)
            await self._fetch(queue, [row for row in missing if row.id not in suspects], counted=restarted)

    async def _fetch(self, queue: StreamQueue, rows: list[commands.PendingEntry], *, counted: bool) -> None:
        by_count: dict[int, list[str]] = {}
        for row in rows:
            by_count.setdefault(max(1, row.deliveries + counted), []).append(row.id)
        consumer = self._settlement.consumer()
        for attempt, ids in by_count.items():
            entries = await self._engine.run(
                commands.claim(queue.stream, self._group, consumer, ids, deliveries=attempt)
            )
            deliveries = [
                StreamDelivery(self._settlement, queue, identity, fields, attempt)
                for identity, fields in await self._settlement.skip_others(queue, entries)
            ]
            self._buffer.put(queue, deliveries)

    async def _read(self) -> None:
        """Fetch once. COUNT applies to each stream, so the flowing ones share the room of the buffer."""
        room = await self._buffer.room(self._share)
        flowing = [queue for queue in self._queues if queue.flowing]
        if not flowing:
            wait = SHORT_BLOCK if self._share > self._buffer.prefetch else BLOCK
            await self._put(await self._engine.run(self._reading(self._queues, room, wait=wait)))
            return
        still = [queue for queue in self._queues if not queue.flowing]
        reads = [self._reading(flowing, room - len(still))]
        if still:
            reads.append(self._reading(still, 0))
        for replies in await self._engine.run(gather_list(reads)):
            await self._put(replies)

    def _reading(
        self, queues: list[StreamQueue], room: int, wait: timedelta | None = None
    ) -> commands.Receive:
        count = max(1, room // len(queues))
        for queue in queues:
            queue.asked, queue.flowing = count, False
        streams = [queue.stream for queue in queues]
        return commands.Receive(streams, self._group, self._settlement.consumer(), count, wait)

    async def _put(self, replies: list[tuple[bytes, list[commands.RawEntry]]]) -> None:
        settlement = self._settlement
        for name, entries in replies:
            queue = self._by_name[name]
            queue.flowing = len(entries) >= queue.asked
            own = await settlement.skip_others(queue, entries)
            self._buffer.put(
                queue, [StreamDelivery(settlement, queue, identity, fields, 1) for identity, fields in own]
            )
