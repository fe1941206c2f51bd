"""The consumer: readers and a claimer around one buffer of deliveries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

from keywright.errors import UsageError
from keywright.operations import slot_of
from keywright_messaging.contract import BrokerSettings, Consumer, Delivery, check_batch
from keywright_messaging.redis_streams import commands
from keywright_messaging.redis_streams.acknowledgements import Settlement
from keywright_messaging.redis_streams.claimer import Claimer
from keywright_messaging.redis_streams.consumer_names import ProcessName
from keywright_messaging.redis_streams.delivery import StreamDelivery
from keywright_messaging.redis_streams.delivery_buffer import DeliveryBuffer, StreamQueue
from keywright_messaging.redis_streams.outages import RetryingDatabase
from keywright_messaging.redis_streams.reader import Reader
from keywright_messaging.redis_streams.schema import EventStream

__all__ = ["StreamConsumer"]


class StreamConsumer(Consumer):
    """Deliveries of some streams for one consumer group."""

    def __init__(
        self,
        database: RetryingDatabase,
        settings: BrokerSettings,
        group: str,
        streams: Sequence[EventStream],
        prefetch: int,
        names: ProcessName,
    ) -> None:
        self._database = database
        self._group = group
        self._streams = streams
        self._names = names
        self._number: int | None = None
        self._context = database.engine.context
        queues = [StreamQueue(stream, self._context.name(stream)) for stream in streams]
        self._buffer = DeliveryBuffer(queues, prefetch, settings.max_attempts)
        self._settlement = Settlement(database, settings, group, self._name, self._buffer)
        self._claimer = Claimer(self._settlement, self._buffer)
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False

    async def open(self) -> None:
        if self._closed or self._tasks:
            raise _entered_once()
        number = await self._names.join()
        try:
            await self._database.run(commands.create_groups(self._streams, self._group))
            if self._closed:
                raise _entered_once()
        except BaseException:
            self._names.leave(number)
            raise
        self._number = number
        shares = self._by_slot()
        jobs: list[Reader | Claimer] = [self._claimer]
        jobs += [Reader(queues, self._settlement, self._buffer, len(shares)) for queues in shares]
        self._tasks = [asyncio.create_task(job.run()) for job in jobs]

    async def batch(self, at_most: int) -> Sequence[Delivery]:
        check_batch(at_most)
        return await self._buffer.take(at_most)

    async def acknowledge_all(self, deliveries: Sequence[Delivery]) -> None:
        await self._settlement.acknowledge(cast("Sequence[StreamDelivery]", deliveries))

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._buffer.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._number is None:
            return
        try:
            await self._claimer.give_back()
        finally:
            self._buffer.forget(self._buffer.queues)
            self._names.leave(self._number)

    def _name(self) -> str:
        assert self._number is not None
        return self._names.of(self._number)

    def _by_slot(self) -> list[list[StreamQueue]]:
        """Group the queues by what one command can read: all of them, or on a cluster those of one slot."""
        shares: dict[int, list[StreamQueue]] = {}
        for queue in self._buffer.queues:
            slot = slot_of(queue.name) if self._context.sharded else 0
            shares.setdefault(slot, []).append(queue)
        return list(shares.values())


def _entered_once() -> UsageError:
    return UsageError("a consumer can be entered once. Make another with broker.consume().")
