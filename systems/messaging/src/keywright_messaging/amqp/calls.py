"""Calls: publish a question with a queue to reply to, and wait for the reply."""

from __future__ import annotations

import asyncio
from typing import Any

from keywright_messaging.amqp.connection import AmqpConnection
from keywright_messaging.amqp.frames import PERSISTENT, Properties, read_properties
from keywright_messaging.amqp.publisher import AmqpPublisher, OutgoingMessage
from keywright_messaging.encodings import decode
from keywright_messaging.errors import BrokerError

__all__ = ["Replies"]


class Replies:
    """One reply queue for each connection, named by the server and deleted with the connection.

    Replies find their calls by id. A call whose question was confirmed before an outage gets no reply: that
    went to the former queue.
    """

    def __init__(self) -> None:
        self._connection: AmqpConnection | None = None
        self._queue = ""
        self._calls: dict[str, asyncio.Future[tuple[Properties, bytes]]] = {}

    async def attach(self, connection: AmqpConnection) -> None:
        if self._connection is connection:
            return
        channel = await connection.open_consumer_channel(self)
        declared = await channel.queue_declare(exclusive=True, auto_delete=True)
        self._queue = declared.queue or ""
        await connection.consume(channel, self._queue, no_ack=True)
        connection.watch(channel)
        self._connection = connection

    def detach(self) -> None:
        self._connection = None

    def fail(self, error: BrokerError) -> None:
        for call in self._calls.values():
            if not call.done():
                call.set_exception(error)

    def delivered(self, consumer: bytes, tag: int, redelivered: bool, header: bytes, body: bytes) -> None:
        properties = read_properties(header)
        call = self._calls.get(properties.correlation_id or "")
        if call is not None and not call.done():
            call.set_result((properties, body))

    def nothing(self) -> None:
        """Do nothing: replies are never asked for."""

    async def ask(
        self, publisher: AmqpPublisher, question: OutgoingMessage, content_type: str, reply: Any
    ) -> Any:
        """Publish the question and return its reply, decoded as `reply`, whenever that comes."""
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
