"""Publishing: many messages in flight, each confirmed, all of them again after a lost connection."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

from aiormq.exceptions import AMQPChannelError, ChannelAccessRefused, ChannelPreconditionFailed

from keywright_messaging.amqp.connection import Connection
from keywright_messaging.amqp.frames import content, publish_method, read_properties
from keywright_messaging.amqp.link import Link
from keywright_messaging.errors import BrokerError, UnroutableError

__all__ = ["DEFAULT_EXCHANGE", "Identities", "Outgoing", "Publisher", "Receipt"]

DEFAULT_EXCHANGE = ""
"""It delivers to the queue that the routing key names."""

_WINDOW = 2048  # unconfirmed messages; more of them gain nothing and are all sent again after an outage
_WINDOW_BYTES = 4 * 1024 * 1024
_KNOWN_METHODS = 1024


class Identities:
    """Message ids that no other process makes."""

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(8)
        self._numbers = count(1)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return f"{self._prefix}-{next(self._numbers)}"


class Receipt:
    """Waits for the confirms of one or more messages."""

    __slots__ = ("_error", "_missing", "_whole")

    def __init__(self) -> None:
        self._missing = 0
        self._error: BaseException | None = None
        self._whole: asyncio.Future[None] | None = None

    @property
    def failed(self) -> bool:
        return self._error is not None

    def expect(self) -> None:
        self._missing += 1

    def settle(self, error: BaseException | None) -> None:
        """One message was confirmed, or refused."""
        self._missing -= 1
        self._error = self._error or error
        if not self._missing and self._whole is not None and not self._whole.done():
            self._whole.set_result(None)

    async def wait(self) -> None:
        """Return when all are confirmed. Raises the first error, once none is outstanding."""
        if self._missing:
            self._whole = asyncio.get_running_loop().create_future()
            await self._whole
        if self._error is not None:
            raise self._error


class Outgoing:
    """A message on its way out. `renew` packs its properties anew for a new link."""

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


class Publisher:
    """Sends what it is given in order, and keeps it until the broker has it safe.

    Messages submitted in one turn of the event loop are one write. At most a window of them is unconfirmed.
    """

    def __init__(self, connection: Connection, outage_seconds: float) -> None:
        self._connection = connection
        self._outage_seconds = outage_seconds
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Outgoing] = deque()
        self._unconfirmed: dict[int, Outgoing] = {}
        self._lowest = self._tag = 0
        self._link: Link | None = None
        self._channel = 0
        self._methods: dict[tuple[str, str, bool], bytes] = {}
        self._flushing = False
        self._series = 0
        self._overdue: asyncio.TimerHandle | None = None
        self._room: list[asyncio.Future[None]] = []
        self._refusal: AMQPChannelError | None = None
        self._one_by_one = 0
        self._failure: BrokerError | None = None

    async def publish(self, message: Outgoing) -> None:
        """Return when the broker has it safe. Raises UnroutableError, BrokerUnreachableError."""
        self.submit(message)
        await message.receipt.wait()

    async def publish_all(self, messages: Iterable[Outgoing]) -> None:
        """Return when the broker has all of them safe; they are taken from the iterable as there is room."""
        receipt = Receipt()
        self._series += 1
        try:
            for message in messages:
                message.receipt = receipt
                self.submit(message)
                while len(self._waiting) >= _WINDOW and not receipt.failed:
                    await self._wait_for_room()
                if receipt.failed:
                    break
            await receipt.wait()
        finally:
            self._series -= 1
            self._make_room()

    def submit(self, message: Outgoing) -> None:
        """Send it soon; its receipt tells the outcome."""
        if self._failure is not None:
            raise self._failure
        message.receipt.expect()
        self._waiting.append(message)
        if self._link is None:
            self._set_deadline(message)
        elif not self._flushing:
            self._plan_flush()

    async def attach(self, link: Link) -> None:
        if self._link is link:
            return
        channel = await link.open_tapped(self, confirms=True)
        channel.closing.add_done_callback(self._note_refusal)
        link.watch(channel)
        self._link, self._channel = link, channel.number or 0
        self._lowest = self._tag = 0
        self._methods.clear()
        for message in self._waiting:
            if message.renew is not None:
                message.packed = message.renew()
        self._plan_flush()

    def detach(self) -> None:
        if self._link is None:  # an outage that goes on gives nobody more time
            return
        self._link = None
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
        """Fail what is still on its way."""
        self.detach()
        if self._overdue is not None:
            self._overdue.cancel()
        self.fail(BrokerError("the broker was closed before it confirmed a message. Publish it again."))

    async def drain(self) -> None:
        """Wait until nothing is on its way; what is overdue has failed by then."""
        while self._waiting or self._unconfirmed or self._series:
            await self._wait_for_room()

    def delivered(self, consumer: bytes, tag: int, redelivered: bool, header: bytes, body: bytes) -> None:
        raise AssertionError("nothing is consumed on the publishing channel")

    def returned(self, header: bytes) -> None:
        """The broker sends a message back before it confirms it."""
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
                message.receipt.settle(_outcome(message, accepted))
        if multiple:
            self._lowest = tag
        if self._waiting and not self._flushing:
            self._plan_flush()
        self._make_room()

    def _note_refusal(self, closing: asyncio.Future[Any]) -> None:
        error = None if closing.cancelled() else closing.exception()
        if isinstance(error, ChannelAccessRefused | ChannelPreconditionFailed) and self._link is not None:
            self._refusal = error

    def _find_refused(self) -> None:
        """A message that the server refuses costs the channel, and it does not say which one that was.

        So what was on its way is sent again one by one, until the refused message is alone.
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
        link, waiting, unconfirmed = self._link, self._waiting, self._unconfirmed
        if link is None or (unconfirmed and link.writes_waiting > _WINDOW_BYTES):
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
                content(self._channel, *message.packed, message.body, link.frame_body),
            )
            size += len(message.body)
        if frames:
            link.write(b"".join(frames))
        self._make_room()

    def _method(self, message: Outgoing) -> bytes:
        target = (message.exchange, message.routing_key, message.mandatory)
        packed = self._methods.get(target)
        if packed is None:
            if len(self._methods) >= _KNOWN_METHODS:  # reply queues come and go
                self._methods.clear()
            packed = publish_method(self._channel, target[0], target[1], mandatory=target[2])
            self._methods[target] = packed
        return packed

    def _set_deadline(self, message: Outgoing) -> None:
        message.deadline = self._loop.time() + self._outage_seconds
        if self._overdue is None:
            self._overdue = self._loop.call_later(self._outage_seconds, self._drop_overdue)

    def _drop_overdue(self) -> None:
        self._overdue = None
        if self._link is not None:
            return
        now = self._loop.time()
        while self._waiting and self._waiting[0].deadline <= now:
            self._waiting.popleft().receipt.settle(self._connection.unreachable())
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


def _refused(message: Outgoing, refusal: AMQPChannelError) -> BrokerError:
    return BrokerError(
        f"the broker refused a message of {len(message.body)} bytes for {message.routing_key!r}: {refusal}. "
        f"Grant this user what the reply names, or send less."
    )


def _outcome(message: Outgoing, accepted: bool) -> BrokerError | None:
    if message.returned:
        return UnroutableError(message.exchange, message.routing_key)
    if not accepted:
        return BrokerError(
            f"the broker did not keep a message for {message.routing_key!r}. "
            f"Look at the limits of its queue, and at the broker's log; then publish it again."
        )
    return None
