"""Calling: a question with a queue to answer to, and waiting for the answer."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from aiormq.abc import DeliveredMessage

from keywright_messaging.amqp.frames import PERSISTENT, Properties, read_properties
from keywright_messaging.amqp.link import Link
from keywright_messaging.amqp.publisher import Outgoing, Publisher
from keywright_messaging.encodings import decode
from keywright_messaging.errors import BrokerError

__all__ = ["Replies"]

T = TypeVar("T")


class Replies:
    """One reply queue a link, named by the server and gone with the link; answers find their calls by id.

    A call whose question was confirmed before an outage does not get its answer: that went to the old queue.
    """

    def __init__(self) -> None:
        self._link: Link | None = None
        self._queue = ""
        self._calls: dict[str, asyncio.Future[tuple[Properties, bytes]]] = {}

    async def attach(self, link: Link) -> None:
        if self._link is link:
            return
        channel = await link.open_tapped(self)
        declared = await channel.queue_declare(exclusive=True, auto_delete=True)
        self._queue = declared.queue or ""
        await channel.basic_consume(self._queue, _never, no_ack=True)
        link.watch(channel)
        self._link = link

    def detach(self) -> None:
        self._link = None

    def fail(self, error: BrokerError) -> None:
        for call in self._calls.values():
            if not call.done():
                call.set_exception(error)

    def delivered(self, consumer: bytes, tag: int, redelivered: bool, header: bytes, body: bytes) -> None:
        properties = read_properties(header)
        call = self._calls.get(properties.correlation_id or "")
        if call is not None and not call.done():
            call.set_result((properties, body))

    def returned(self, header: bytes) -> None:
        raise AssertionError("nothing is published on the replies' channel")

    def confirmed(self, tag: int, multiple: bool, accepted: bool) -> None:
        raise AssertionError("nothing is published on the replies' channel")

    async def ask(self, publisher: Publisher, question: Outgoing, content_type: str, reply: Any) -> Any:
        """Publish the question and return its answer, whenever that comes."""
        identity = question.identity

        def pack() -> tuple[int, bytes]:
            properties = Properties(
                content_type=content_type, correlation_id=identity, reply_to=self._queue, message_id=identity
            )
            return properties.pack(PERSISTENT)

        question.packed, question.renew = pack(), pack
        call = self._calls[identity] = asyncio.get_running_loop().create_future()
        try:
            await publisher.publish(question)
            properties, body = await call
        finally:
            del self._calls[identity]
        return decode(body, reply, content_type=properties.content_type)


async def _never(message: DeliveredMessage) -> None:
    """aiormq wants a callback; the tap takes the deliveries before it sees them."""
    raise AssertionError(f"an answer to {message.routing_key!r} passed the tap")
