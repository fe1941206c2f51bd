"""How deliveries end: acknowledged, postponed, given up, answered.

A rejected message that is to come again stays pending, and its idle time is set so that it reaches
`claim_after` when the retry is due; whoever looks for idle entries then finds it. Redis knows no idle time
below zero: a delay beyond `claim_after` lasts only as long as this consumer lives to say so again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from keywright import gather_list
from keywright.errors import UsageError
from keywright_messaging.contract import BrokerSettings, encode_body
from keywright_messaging.redis_streams import commands
from keywright_messaging.redis_streams.delivery import StreamDelivery
from keywright_messaging.redis_streams.intake import Intake, Queue
from keywright_messaging.redis_streams.outages import Reach
from keywright_messaging.redis_streams.schema import REPLIES, EventStream, GivenUp

__all__ = ["Settlement", "retry_delay"]

LONGEST_DELAY = timedelta(minutes=1)
NOW = timedelta(0)


def retry_delay(settings: BrokerSettings, attempt: int) -> timedelta:
    """How long a message waits after this attempt failed."""
    return min(settings.retry_after * (1 << min(attempt - 1, 30)), LONGEST_DELAY)


class Settlement:
    """Settles the deliveries of one consumer."""

    def __init__(
        self,
        reach: Reach,
        settings: BrokerSettings,
        group: str,
        consumer: Callable[[], str],
        intake: Intake,
    ) -> None:
        self.reach = reach
        self.settings = settings
        self.group = group
        self.consumer = consumer
        self._intake = intake
        self.on_postponed: Callable[[float], None] = _nothing
        """Told in how many seconds a message comes again."""

    async def acknowledge(self, deliveries: Iterable[StreamDelivery]) -> None:
        """Acknowledge what is still ours: one XACK a stream, all in one write."""
        done: dict[Queue, list[str]] = {}
        release = self._intake.release
        repeated: StreamDelivery | None = None
        for delivery in deliveries:
            queue = delivery.queue
            if delivery.settled:
                repeated = delivery
            elif release(delivery, queue):
                done.setdefault(queue, []).append(delivery.id)
            delivery.settled = True
        calls = [commands.acknowledge(queue.stream, self.group, ids) for queue, ids in done.items()]
        if calls:
            await self.reach.run(calls[0] if len(calls) == 1 else gather_list(calls).map(sum))
        if repeated is not None:
            raise _settled_before(repeated)

    async def reject(self, delivery: StreamDelivery, reason: str, *, retry: bool) -> None:
        if delivery.settled:
            raise _settled_before(delivery)
        delivery.settled = True
        if not self._intake.release(delivery, delivery.queue):
            return
        if retry and delivery.attempt < self.settings.max_attempts:
            await self._postpone(delivery)
        else:
            await self.bury(delivery.queue.stream, delivery.id, delivery.body, reason, delivery.attempt)

    async def reply(self, delivery: StreamDelivery, data: object) -> None:
        body = encode_body(data, self.settings)
        await self.reach.run(REPLIES.publish(body, delivery.event, delivery.id))

    async def bury(self, stream: EventStream, identity: str, body: bytes, reason: str, attempts: int) -> None:
        letter = GivenUp(data=body, reason=reason, attempts=attempts, id=identity, at=datetime.now(UTC))
        await self.reach.run(commands.bury(stream, self.group, letter))

    async def _postpone(self, delivery: StreamDelivery) -> None:
        queue, delay = delivery.queue, retry_delay(self.settings, delivery.attempt)
        seconds = delay.total_seconds()
        queue.postponed[delivery.id] = asyncio.get_running_loop().time() + seconds
        idle = max(NOW, self.settings.claim_after - delay)
        await self.reach.run(
            commands.restamp(queue.stream, self.group, self.consumer(), [delivery.id], idle=idle)
        )
        self.on_postponed(seconds)


def _settled_before(delivery: StreamDelivery) -> UsageError:
    return UsageError(f"the delivery {delivery.id} is settled already. Acknowledge or reject it once.")


def _nothing(seconds: float) -> None:
    """Nobody wants to know."""
