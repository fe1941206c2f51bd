"""Publishing: many messages in flight, each confirmed, all of them sent again after a lost connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Any

from aiormq.exceptions import AMQPChannelError, ChannelAccessRefused, ChannelPreconditionFailed

from keywright_messaging.amqp.connection import AmqpConnection
from keywright_messaging.amqp.frames import (
    CONTENT_OVERHEAD,
    HEADER_OVERHEAD,
    SMALLEST_FRAME,
    content,
    publish_method,
    read_properties,
)
from keywright_messaging.amqp.reconnector import Reconnector
from keywright_messaging.errors import BrokerError, UnroutableError

__all__ = ["DEFAULT_EXCHANGE", "AmqpPublisher", "OutgoingMessage", "Receipt"]

DEFAULT_EXCHANGE = ""
"""Delivers to the queue that the routing key names."""

_WINDOW = 2048  # unconfirmed messages; more of them gain nothing and are all sent again after an outage
_WINDOW_BYTES = 4 * 1024 * 1024
_KNOWN_METHODS = 1024


class Receipt:
    """The confirms of one or more messages. Await it to return when all are confirmed.

    Awaiting raises the first error, once no confirm is outstanding.
    """

    __slots__ = ("_complete", "error", "missing")

    def __init__(self) -> None:
        self.missing = 0
        self.error: BrokerError | None = None
        self._complete: asyncio.Future[None] | None = None

    def settle(self, error: BrokerError | None) -> None:
        """Count one message as confirmed, or as failed with an error."""
        self.missing -= 1
        self.error = self.error or error
        if not self.missing and self._complete is not None and not self._complete.done():
            self._complete.set_result(None)

    def __await__(self) -> Generator[Any, None, None]:
        if self.missing:
            self._complete = asyncio.get_running_loop().create_future()
            yield from self._complete
        if self.error is not None:
            raise self.error


class OutgoingMessage:
    """A message on its way out. `renew` packs its properties again for a new connection."""

    __slots__ = (
        "body",
        "deadline",
        "exchange",
        "identity",
        "mandatory",
        "packed",
        "receipt",
        "renew",
        "returned",
        "routing_key",
    )

    def __init__(
        self, exchange: str, routing_key: str, identity: str, packed: tuple[int, bytes], body: bytes
    ) -> None:
        self.exchange = exchange
        self.routing_key = routing_key
        self.identity = identity
        self.packed = packed
        self.body = body
        self.mandatory = True
        self.receipt = Receipt()
        self.renew: Callable[[], tuple[int, bytes]] | None = None
        self.returned = False
        self.deadline = 0.0


class AmqpPublisher:
    """Sends messages in order, and keeps each until the broker has confirmed it.

    Messages published in one turn of the event loop are one write. At most a window of them is unconfirmed.
    """

    def __init__(self, reconnector: Reconnector, outage_seconds: float) -> None:
        self._reconnector = reconnector
        self._outage_seconds = outage_seconds
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[OutgoingMessage] = deque()
        self._unconfirmed: dict[int, OutgoingMessage] = {}
        self._lowest = self._tag = 0
        self._connection: AmqpConnection | None = None
        self._channel = 0
        self._methods: dict[tuple[str, str, bool], bytes] = {}
        self._flushing = False
        self._series = 0
        self._overdue: asyncio.TimerHandle | None = None
        self._room: list[asyncio.Future[None]] = []
        self._refusal: AMQPChannelError | None = None
        self._one_by_one = 0
        self._failure: BrokerError | None = None
        self.largest_properties = SMALLEST_FRAME - HEADER_OVERHEAD
        """The most bytes of packed properties: a header, unlike a body, must fit into one frame."""

    def publish(self, message: OutgoingMessage) -> Receipt:
        """Send the message soon and return its receipt; await that for the confirm.

        The receipt raises UnroutableError, BrokerUnreachableError after an outage, or BrokerError.
        """
        if self._failure is not None:
            raise self._failure
        message.receipt.missing += 1
        self._waiting.append(message)
        if self._connection is None:
            self._set_deadline(message)
        elif not self._flushing:
            self._plan_flush()
        return message.receipt

    async def publish_all(self, messages: Iterable[OutgoingMessage]) -> None:
        """Publish all and wait for their confirms; take them from the iterable as there is room."""
        receipt = Receipt()
        self._series += 1
        try:
            for message in messages:
                message.receipt = receipt
                self.publish(message)
                while len(self._waiting) >= _WINDOW and receipt.error is None:
                    await self._wait_for_room()
                if receipt.error is not None:
                    break
            await receipt
        finally:
            self._series -= 1
            self._make_room()

    async def attach(self, connection: AmqpConnection) -> None:
        if self._connection is connection:
            return
        channel = await connection.open_publisher_channel(self)
        channel.closing.add_done_callback(self._note_refusal)
        connection.watch(channel)
        self._connection, self._channel = connection, channel.number
        self.largest_properties = connection.frame_body + CONTENT_OVERHEAD - HEADER_OVERHEAD
        self._lowest = self._tag = 0
        self._methods.clear()
        for message in self._waiting:
            if message.renew is not None:
                message.packed = message.renew()
        self._plan_flush()

    def detach(self) -> None:
        if self._connection is None:  # the deadlines of an outage that continues stay
            return
        self._connection = None
        self._find_refused()
        self._waiting.extendleft(reversed(self._unconfirmed.values()))
        self._unconfirmed.clear()
        for message in self._waiting:
            message.returned = False
            self._set_deadline(message)

    def fail(self, error: BrokerError) -> None:
        self._failure = error
        while self._waiting:
            self._waiting.popleft().receipt.settle(error)
        self._make_room()

    def close(self) -> None:
        """Fail all messages that are not confirmed."""
        self.detach()
        if self._overdue is not None:
            self._overdue.cancel()
        self.fail(BrokerError("the broker was closed before it confirmed a message. Publish it again."))

    async def drain(self) -> None:
        """Wait until every message is confirmed or has failed."""
        while self._waiting or self._unconfirmed or self._series:
            await self._wait_for_room()

    def returned(self, header: bytes) -> None:
        """Mark a message as unroutable. The broker returns it before it confirms it."""
        identity = read_properties(header).message_id
        for message in self._unconfirmed.values():
            if not message.returned and message.identity == identity:
                message.returned = True
                return

    def confirmed(self, tag: int, multiple: bool, accepted: bool) -> None:
        first = self._lowest + 1 if multiple else tag
        for number in range(first, tag + 1):
            message = self._unconfirmed.pop(number, None)
            if message is not None:
                self._one_by_one -= self._one_by_one > 0
                kept = accepted and not message.returned
                message.receipt.settle(None if kept else _not_kept(message))
        if multiple:
            self._lowest = tag
        if self._waiting and not self._flushing:
            self._plan_flush()
        self._make_room()

    def _note_refusal(self, closing: asyncio.Future[Any]) -> None:
        error = None if closing.cancelled() else closing.exception()
        if self._connection is None:
            return
        if isinstance(error, ChannelAccessRefused | ChannelPreconditionFailed):
            self._refusal = error

    def _find_refused(self) -> None:
        """Search the message that the server refused.

        A refusal closes the channel and does not name the message. So all unconfirmed messages are sent again
        one by one, until the refused message is the only one in flight.
        """
        refusal, self._refusal = self._refusal, None
        if refusal is None:
            return
        self._one_by_one = len(self._unconfirmed)
        if self._one_by_one == 1:
            _, message = self._unconfirmed.popitem()
            message.receipt.settle(_refused(message, refusal))
            self._one_by_one = 0

    def _plan_flush(self) -> None:
        self._flushing = True
        self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        connection, waiting, unconfirmed = self._connection, self._waiting, self._unconfirmed
        if connection is None or (unconfirmed and connection.writes_waiting > _WINDOW_BYTES):
            return
        frames: list[bytes] = []
        size = 0
        window = 1 if self._one_by_one else _WINDOW
        while waiting and len(unconfirmed) < window and size < _WINDOW_BYTES:
            message = waiting.popleft()
            self._tag += 1
            unconfirmed[self._tag] = message
            frames += (
                self._method(message),
                content(self._channel, *message.packed, message.body, connection.frame_body),
            )
            size += len(message.body)
        if frames:
            connection.write(b"".join(frames))
        self._make_room()

    def _method(self, message: OutgoingMessage) -> bytes:
        target = (message.exchange, message.routing_key, message.mandatory)
        packed = self._methods.get(target)
        if packed is None:
            if len(self._methods) >= _KNOWN_METHODS:  # reply queues come and go
                self._methods.clear()
            packed = publish_method(self._channel, target[0], target[1], mandatory=target[2])
            self._methods[target] = packed
        return packed

    def _set_deadline(self, message: OutgoingMessage) -> None:
        message.deadline = self._loop.time() + self._outage_seconds
        if self._overdue is None:
            self._overdue = self._loop.call_later(self._outage_seconds, self._drop_overdue)

    def _drop_overdue(self) -> None:
        self._overdue = None
        if self._connection is not None:
            return
        now = self._loop.time()
        while self._waiting and self._waiting[0].deadline <= now:
            self._waiting.popleft().receipt.settle(self._reconnector.unreachable())
        if self._waiting:
            self._overdue = self._loop.call_at(self._waiting[0].deadline, self._drop_overdue)
        self._make_room()

    async def _wait_for_room(self) -> None:
        room = self._loop.create_future()
        self._room.append(room)
        await room

    def _make_room(self) -> None:
        if self._room and len(self._waiting) < _WINDOW // 2:
            waiters, self._room = self._room, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)


def _refused(message: OutgoingMessage, refusal: AMQPChannelError) -> BrokerError:
    return BrokerError(
        f"the broker refused a message of {len(message.body)} bytes for {message.routing_key!r}: {refusal}. "
        f"Grant this user the permission that the reply names, or send a smaller message."
    )


def _not_kept(message: OutgoingMessage) -> BrokerError:
    if message.returned:
        return UnroutableError(message.exchange, message.routing_key)
    return BrokerError(
        f"the broker did not keep a message for {message.routing_key!r}. "
        f"Check the limits of its queue and the broker's log, then publish it again."
    )
