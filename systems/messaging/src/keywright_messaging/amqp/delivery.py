"""A message as RabbitMQ delivers it, and the channel that received it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from keywright_messaging.amqp.acknowledgements import Ledger
from keywright_messaging.amqp.connection import AmqpConnection
from keywright_messaging.amqp.credit import Polls, Shares
from keywright_messaging.amqp.frames import Properties, get_method, read_properties
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
    message again. `queues` are the names to receive from, by the queue whose messages they hold. `limit` is
    the number of deliveries that may be unsettled: of all queues together if it is `divided`, else of each.
    """

    def __init__(
        self,
        queues: Mapping[AmqpQueue, str],
        limit: int,
        router: Router,
        on_delivery: Callable[[AmqpDelivery], None],
        on_room: Callable[[], None],
        *,
        divided: bool = True,
    ) -> None:
        self.router = router
        self.handed_out = 0
        self._on_room = on_room
        self._queues = {str(number).encode(): queue for number, queue in enumerate(queues)}
        self._names = dict(zip(self._queues, queues.values(), strict=True))
        self._on_delivery = on_delivery
        self._connection: AmqpConnection | None = None
        self._ledger = Ledger(0)
        self._settled: list[int] = []
        self._number = 0
        tags = tuple(self._queues)
        self._limit = limit
        self.shares = Shares(tags, limit) if divided and 1 < len(tags) <= limit else None
        """The limits of the consumers, if a limit is divided among them."""
        self.is_polled = divided and len(tags) > limit
        self._polls = Polls(tags, limit)
        self._asking = False

    @property
    def consumer_limit(self) -> int:
        """Return the limit of unsettled deliveries for the consumer of each queue."""
        return self._limit if self.shares is None else self.shares.share

    @property
    def consumer_tags(self) -> list[str]:
        extra = () if self.shares is None or self.shares.extra is None else (self.shares.extra,)
        return [] if self.is_polled else [tag.decode() for tag in (*self._names, *extra)]

    @property
    def names(self) -> Mapping[bytes, str]:
        """Return the names of the queues, by the tags of their consumers."""
        return self._names

    @property
    def alive(self) -> bool:
        return self._connection is not None and not self._connection.lost.done()

    def connect(self, connection: AmqpConnection, channel: int) -> None:
        self._connection = connection
        self._ledger = Ledger(channel)
        self._number = channel
        self._asking = self.is_polled

    def disconnect(self) -> None:
        self._connection = None
        self._asking = False

    def poll(self) -> None:
        """Ask every queue for a message if they are polled."""
        if self.is_polled:
            self._polls.begin()
            self._ask()

    def stop_polling(self) -> None:
        self._asking = False

    def add_consumer(self, consumer: bytes, like: bytes) -> None:
        """Record a second consumer of a queue."""
        self._queues[consumer] = self._queues[like]

    def remove_consumer(self, consumer: bytes) -> None:
        del self._queues[consumer]

    def delivered(self, consumer: bytes, tag: int, redelivered: bool, header: bytes, body: bytes) -> None:
        self._ledger.arrived(tag)
        if self.is_polled:
            consumer = self._polls.arrived()
            self._ask()
        elif self.shares is not None:
            self.shares.arrived(consumer, tag)
        queue = self._queues[consumer]
        self._on_delivery(AmqpDelivery(self, queue, tag, redelivered, read_properties(header), body))

    def nothing(self) -> None:
        self._polls.nothing()
        self._ask()

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
        if not settled or self._connection is None:
            return
        self._connection.write(self._ledger.acknowledge(settled))
        # After the acknowledgements: the server must not have more unsettled deliveries than the limit.
        if self.is_polled:
            self._polls.settled(len(settled))
            self._ask()
        elif self.shares is not None:
            self.shares.settled(settled)

    def _ask(self) -> None:
        if self._asking and self._connection is not None and (asked := self._polls.requests()):
            self._connection.write(b"".join(get_method(self._number, self._names[tag]) for tag in asked))


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
