"""A message as RabbitMQ delivers it, and the channel that received it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from keywright_messaging.amqp.acknowledgements import Ledger
from keywright_messaging.amqp.connection import AmqpConnection
from keywright_messaging.amqp.frames import Properties, read_properties
from keywright_messaging.amqp.topology import AmqpQueue
from keywright_messaging.contract import Delivery, mark_settled

__all__ = ["ATTEMPTS", "AmqpDelivery", "ConsumerChannel", "Router", "attempts_before"]

ATTEMPTS = "x-keywright-attempts"
"""The header that counts the deliveries of a message before it was published again."""


class Router(Protocol):
    """Publishes on behalf of a delivery: its channel can only acknowledge."""

    identities: Iterator[str]

    async def reject(self, delivery: AmqpDelivery, reason: str, *, retry: bool) -> None:
        """Publish the message to the queue of its retry, or to the dead letters."""

    async def reply(self, delivery: AmqpDelivery, data: object) -> None:
        """Publish a reply to the caller."""


class ConsumerChannel:
    """A channel that receives: its consumers, its unsettled deliveries and their acknowledgements.

    It belongs to one connection. When that is lost, every unsettled delivery is void: the server delivers the
    message again.
    """

    def __init__(
        self,
        queues: Sequence[AmqpQueue],
        router: Router,
        on_delivery: Callable[[AmqpDelivery], None],
        on_room: Callable[[], None],
    ) -> None:
        self.router = router
        self.handed_out = 0
        self._on_room = on_room
        self._queues = {str(number).encode(): queue for number, queue in enumerate(queues)}
        self._on_delivery = on_delivery
        self._connection: AmqpConnection | None = None
        self._ledger = Ledger(0)
        self._settled: list[int] = []

    @property
    def consumer_tags(self) -> list[str]:
        return [tag.decode() for tag in self._queues]

    @property
    def alive(self) -> bool:
        return self._connection is not None and not self._connection.lost.done()

    def connect(self, connection: AmqpConnection, channel: int) -> None:
        self._connection = connection
        self._ledger = Ledger(channel)

    def disconnect(self) -> None:
        self._connection = None

    def delivered(self, consumer: bytes, tag: int, redelivered: bool, header: bytes, body: bytes) -> None:
        self._ledger.arrived(tag)
        queue = self._queues[consumer]
        self._on_delivery(AmqpDelivery(self, queue, tag, redelivered, read_properties(header), body))

    def release(self, tags: Sequence[int]) -> None:
        """Acknowledge deliveries that were handed out."""
        if self.alive:
            self.handed_out -= len(tags)
            self.settle(tags)
            self._on_room()

    def settle(self, tags: Sequence[int]) -> None:
        """Acknowledge soon: everything settled in one turn of the event loop is one write."""
        if not self._settled:
            asyncio.get_running_loop().call_soon(self.flush)
        self._settled += tags

    def flush(self) -> None:
        """Write the acknowledgements that wait."""
        settled, self._settled = self._settled, []
        if settled and self._connection is not None:
            self._connection.write(self._ledger.acknowledge(settled))


class AmqpDelivery(Delivery):
    __slots__ = ("channel", "properties", "queue", "redelivered", "tag")

    def __init__(
        self,
        channel: ConsumerChannel,
        queue: AmqpQueue,
        tag: int,
        redelivered: bool,
        properties: Properties,
        body: bytes,
    ) -> None:
        attempts = attempts_before(properties.headers) if properties.headers else 0
        super().__init__(
            queue.event,
            body,
            properties.message_id or next(channel.router.identities),
            1 + redelivered + attempts,
            properties.content_type,
        )
        self.channel = channel
        self.queue = queue
        self.tag = tag
        self.redelivered = redelivered
        self.properties = properties

    def __repr__(self) -> str:
        return f"<delivery {self.id} of {self.queue.name!r}, attempt {self.attempt}, {len(self.body)} bytes>"

    @property
    def wants_reply(self) -> bool:
        return self.properties.reply_to is not None

    async def acknowledge(self) -> None:
        mark_settled((self,))
        self.channel.release((self.tag,))

    async def reject(self, reason: str, *, retry: bool = False) -> None:
        mark_settled((self,))
        if not self.channel.alive:
            return
        try:
            await self.channel.router.reject(self, reason, retry=retry)
        except BaseException:
            self.settled = False
            raise
        self.channel.release((self.tag,))

    async def reply(self, data: object) -> None:
        await self.channel.router.reply(self, data)


def attempts_before(headers: Mapping[str, Any]) -> int:
    """Return how often a message was delivered before it was last published."""
    found = headers.get(ATTEMPTS, 0)
    return found if isinstance(found, int) and found > 0 else 0
