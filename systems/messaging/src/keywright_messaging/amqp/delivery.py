"""A message as RabbitMQ delivers it, and the channel it came by."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from keywright.errors import UsageError
from keywright_messaging.amqp.acknowledgements import Ledger
from keywright_messaging.amqp.frames import Properties, read_properties
from keywright_messaging.amqp.link import Link
from keywright_messaging.amqp.publisher import Identities
from keywright_messaging.amqp.topology import Queue
from keywright_messaging.contract import Delivery

__all__ = ["ATTEMPTS", "AmqpDelivery", "Inlet", "Router", "attempts_before"]

ATTEMPTS = "x-keywright-attempts"
"""The header that counts how often a message was delivered before it was published anew."""


class Router(Protocol):
    """What a delivery asks for that takes more than its own channel."""

    identities: Identities

    async def reject(self, delivery: AmqpDelivery, reason: str, *, retry: bool) -> None:
        """Publish it to where it waits for a retry, or to the dead letters."""

    async def reply(self, delivery: AmqpDelivery, data: object) -> None:
        """Publish an answer to the caller."""


class Inlet:
    """A channel that receives: its consumers, what arrived and is unsettled, and acknowledging that.

    It belongs to one link. When that is lost, everything unsettled is void: the server delivers it again.
    """

    def __init__(
        self,
        queues: Sequence[Queue],
        router: Router,
        arrive: Callable[[AmqpDelivery], None],
        made_room: Callable[[], None],
    ) -> None:
        self.router = router
        self.handed_out = 0
        self._made_room = made_room
        self._queues = {str(number).encode(): queue for number, queue in enumerate(queues)}
        self._arrive = arrive
        self._link: Link | None = None
        self._ledger = Ledger(0)
        self._settled: list[int] = []

    @property
    def consumer_tags(self) -> list[str]:
        return [tag.decode() for tag in self._queues]

    @property
    def alive(self) -> bool:
        return self._link is not None and not self._link.lost.done()

    def connect(self, link: Link, channel: int) -> None:
        self._link = link
        self._ledger = Ledger(channel)

    def disconnect(self) -> None:
        self._link = None

    def delivered(self, consumer: bytes, tag: int, redelivered: bool, header: bytes, body: bytes) -> None:
        self._ledger.arrived(tag)
        self._arrive(
            AmqpDelivery(self, self._queues[consumer], tag, redelivered, read_properties(header), body)
        )

    def returned(self, header: bytes) -> None:
        raise AssertionError("nothing is published on a consuming channel")

    def confirmed(self, tag: int, multiple: bool, accepted: bool) -> None:
        raise AssertionError("nothing is published on a consuming channel")

    def release(self, tags: Sequence[int]) -> None:
        """Acknowledge what was handed out."""
        if self.alive:
            self.handed_out -= len(tags)
            self.settle(tags)
            self._made_room()

    def settle(self, tags: Sequence[int]) -> None:
        """Acknowledge soon: what is settled in one turn of the event loop is one write."""
        if not self._settled:
            asyncio.get_running_loop().call_soon(self.flush)
        self._settled += tags

    def flush(self) -> None:
        """Write the acknowledgements that wait."""
        settled, self._settled = self._settled, []
        if settled and self._link is not None:
            self._link.write(self._ledger.acknowledge(settled))


class AmqpDelivery(Delivery):
    __slots__ = ("_settled", "inlet", "properties", "queue", "redelivered", "tag")

    def __init__(
        self, inlet: Inlet, queue: Queue, tag: int, redelivered: bool, properties: Properties, body: bytes
    ) -> None:
        super().__init__(
            queue.event,
            body,
            properties.message_id or next(inlet.router.identities),
            1 + redelivered + attempts_before(properties.headers),
            properties.content_type,
        )
        self.inlet = inlet
        self.queue = queue
        self.tag = tag
        self.redelivered = redelivered
        self.properties = properties
        self._settled = False

    def __repr__(self) -> str:
        return f"<delivery {self.id} of {self.queue.name!r}, attempt {self.attempt}, {len(self.body)} bytes>"

    @property
    def wants_reply(self) -> bool:
        return self.properties.reply_to is not None

    async def acknowledge(self) -> None:
        self.mark_settled()
        self.inlet.release((self.tag,))

    async def reject(self, reason: str, *, retry: bool = False) -> None:
        self.mark_settled()
        if not self.inlet.alive:
            return
        try:
            await self.inlet.router.reject(self, reason, retry=retry)
        except BaseException:
            self._settled = False
            raise
        self.inlet.release((self.tag,))

    async def reply(self, data: object) -> None:
        await self.inlet.router.reply(self, data)

    def check_unsettled(self) -> None:
        """Refuse to be settled twice."""
        if self._settled:
            raise UsageError(f"the delivery {self.id} was settled before. Acknowledge or reject it once.")

    def mark_settled(self) -> None:
        self.check_unsettled()
        self._settled = True


def attempts_before(headers: Mapping[str, Any] | None) -> int:
    """How often a message was delivered before it was last published."""
    found = headers.get(ATTEMPTS, 0) if headers else 0
    return found if isinstance(found, int) and found > 0 else 0
