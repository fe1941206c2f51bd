"""The dead letters of a queue: read, returned to the queue, dropped; a bounded number at a time.

Letters are got from their queue and stay there, unacknowledged, until it is certain what becomes of them: one
that returns to its queue is acknowledged after the server has confirmed it there.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aiormq.abc import AbstractChannel, DeliveredMessage
from aiormq.exceptions import AMQPError, ChannelNotFoundEntity
from pamqp.commands import Basic

from keywright_messaging.amqp.connection import AmqpConnection
from keywright_messaging.amqp.frames import PERSISTENT, Properties
from keywright_messaging.amqp.publisher import DEFAULT_EXCHANGE, AmqpPublisher, OutgoingMessage
from keywright_messaging.amqp.rerouter import NOTES, dead_letter
from keywright_messaging.amqp.topology import AmqpQueue
from keywright_messaging.contract import DeadLetter

__all__ = ["count", "drop", "peek", "replay"]

_log = logging.getLogger(__name__)


async def peek(connection: AmqpConnection, queue: AmqpQueue, limit: int) -> list[DeadLetter]:
    """Return up to `limit` letters; all of them return to their places."""
    async with _got(connection, queue, limit) as (_, messages):
        return [
            dead_letter(queue.event, each.header.properties.headers or {}, each.body) for each in messages
        ]


async def count(connection: AmqpConnection, queue: AmqpQueue) -> int:
    """Return the number of letters."""
    with suppress(ChannelNotFoundEntity):
        async with connection.scratch() as channel:
            return (await channel.queue_declare(queue.dead, passive=True)).message_count or 0
    return 0


async def replay(connection: AmqpConnection, queue: AmqpQueue, limit: int, publisher: AmqpPublisher) -> int:
    """Publish up to `limit` letters to their queue, then remove them. Return how many."""
    async with _got(connection, queue, limit) as (channel, messages):
        # All are sent before the first confirm is awaited.
        receipts = [publisher.publish(_again(queue, each, publisher)) for each in messages]
        for receipt in receipts:
            await receipt
        await _remove(channel, messages)
        return len(messages)


async def drop(connection: AmqpConnection, queue: AmqpQueue, limit: int) -> int:
    """Remove up to `limit` letters. Return how many."""
    async with _got(connection, queue, limit) as (channel, messages):
        await _remove(channel, messages)
        return len(messages)


@asynccontextmanager
async def _got(
    connection: AmqpConnection, queue: AmqpQueue, limit: int
) -> AsyncIterator[tuple[AbstractChannel, list[DeliveredMessage]]]:
    """Get letters on a channel of their own: what the block does not remove returns when it is closed."""
    messages: list[DeliveredMessage] = []
    channel = await connection.open_channel()
    try:
        with suppress(ChannelNotFoundEntity):
            while len(messages) < limit:
                message = await channel.basic_get(queue.dead)
                if not isinstance(message.delivery, Basic.GetOk):
                    break
                messages.append(message)
        yield channel, messages
    finally:
        with suppress(AMQPError, RuntimeError):
            await channel.close()


async def _remove(channel: AbstractChannel, messages: list[DeliveredMessage]) -> None:
    """Acknowledge all that were got. A round trip later the server has done so."""
    if messages:
        await channel.basic_ack(messages[-1].delivery_tag or 0, multiple=True)
        await channel.basic_qos(prefetch_count=0)


def _again(queue: AmqpQueue, found: DeliveredMessage, publisher: AmqpPublisher) -> OutgoingMessage:
    """Return the message as it was published first: without attempts and reason."""
    asked = found.header.properties
    identity = asked.message_id or ""
    properties = Properties(
        content_type=asked.content_type,
        headers={name: value for name, value in (asked.headers or {}).items() if name not in NOTES},
        message_id=asked.message_id,
    )
    packed = properties.pack(PERSISTENT)
    if len(packed[1]) > publisher.largest_properties:
        _log.warning("the headers of message %s fill a frame; it is replayed without them", identity)
        properties.headers = None
        packed = properties.pack(PERSISTENT)
    return OutgoingMessage(DEFAULT_EXCHANGE, queue.name, identity, packed, found.body)
