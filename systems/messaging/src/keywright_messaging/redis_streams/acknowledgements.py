"""Settles deliveries: acknowledges, postpones, buries and replies.

A rejected message with a retry stays pending, and its idle time is set so that it reaches `claim_after` when
the retry is due; the claimer of any consumer finds it then. Redis has no negative idle time: a delay beyond
`claim_after` lasts only as long as this consumer is alive to repeat it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from keywright import gather_list
from keywright_messaging.contract import (
    LONGEST_REASON,
    BrokerSettings,
    encode_body,
    mark_settled,
    retry_delay,
)
from keywright_messaging.redis_streams import commands
from keywright_messaging.redis_streams.delivery import StreamDelivery
from keywright_messaging.redis_streams.delivery_buffer import DeliveryBuffer, StreamQueue
from keywright_messaging.redis_streams.outages import RetryingDatabase
from keywright_messaging.redis_streams.schema import EventStream, GivenUp, Replies

__all__ = ["NOW", "Settlement"]

NOW = timedelta(0)


class Settlement:
    """Settles the deliveries of one consumer."""

    def __init__(
        self,
        database: RetryingDatabase,
        settings: BrokerSettings,
        group: str,
        consumer: Callable[[], str],
        buffer: DeliveryBuffer,
    ) -> None:
        self.database = database
        self.settings = settings
        self.group = group
        self.consumer = consumer
        self._buffer = buffer
        self.on_postponed: Callable[[float], None] | None = None
        """Called with the seconds until a postponed message is due."""

    async def acknowledge(self, deliveries: Sequence[StreamDelivery]) -> None:
        """Acknowledge the deliveries that are still ours: one XACK for each stream, all in one write."""
        mark_settled(deliveries)
        done: dict[StreamQueue, list[str]] = {}
        release = self._buffer.release
        for delivery in deliveries:
            queue = delivery.queue
            if release(delivery, queue):
                done.setdefault(queue, []).append(delivery.id)
        calls = [commands.acknowledge(queue.stream, self.group, ids) for queue, ids in done.items()]
        if calls:
            await self.database.run(calls[0] if len(calls) == 1 else gather_list(calls).map(sum))

    async def skip_others(
        self, queue: StreamQueue, entries: list[commands.RawEntry]
    ) -> list[commands.RawEntry]:
        """Acknowledge entries that are for another group only. Return the rest."""
        skipped = commands.others(entries, self.group)
        if not skipped:
            return entries
        await self.database.run(commands.acknowledge(queue.stream, self.group, skipped))
        return [each for each in entries if each[0].decode() not in skipped]

    async def reject(self, delivery: StreamDelivery, reason: str, *, retry: bool) -> None:
        mark_settled((delivery,))
        if not self._buffer.release(delivery, delivery.queue):
            return
        if retry and delivery.attempt < self.settings.max_attempts:
            await self._postpone(delivery)
        else:
            await self.bury(delivery.queue.stream, delivery.id, delivery.body, reason, delivery.attempt)

    async def reply(self, delivery: StreamDelivery, data: object) -> None:
        body = encode_body(data, self.settings)
        await self.database.run(Replies(delivery.event, delivery.id).publish(body))

    async def bury(self, stream: EventStream, identity: str, body: bytes, reason: str, attempts: int) -> None:
        letter = GivenUp(
            data=body,
            reason=reason[:LONGEST_REASON],
            attempts=attempts,
            id=identity,
            at=datetime.now(UTC),
        )
        await self.database.run(commands.bury(stream, self.group, letter))

    async def _postpone(self, delivery: StreamDelivery) -> None:
        queue, delay = delivery.queue, retry_delay(self.settings, delivery.attempt)
        seconds = delay.total_seconds()
        queue.postponed[delivery.id] = asyncio.get_running_loop().time() + seconds
        idle = max(NOW, self.settings.claim_after - delay)
        await self.database.run(
            commands.restamp(queue.stream, self.group, self.consumer(), [delivery.id], idle=idle)
        )
        if self.on_postponed is not None:
            self.on_postponed(seconds)
