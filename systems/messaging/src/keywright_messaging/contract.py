"""The contract of every broker: publish, call, consume; acknowledge, reject, reply.

A *group* is a service (AMQP: an exchange); an *event* names the kind of a message (AMQP: a routing key);
a *subgroup* receives its own copy of every message of the group. Each event of a group or subgroup is one
queue.

Delivery is at least once: a confirmed message reaches a consumer of every declared queue, and again if that
consumer dies before it acknowledged. Within one queue the order is that of publishing, until a redelivery.
A message that failed `max_attempts` times is kept in the queue's dead letters with the reason.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import msgspec

from keywright.errors import UsageError
from keywright_messaging.encodings import Encoding, decode, encode

__all__ = [
    "LETTERS_AT_ONCE",
    "LONGEST_DELAY",
    "LONGEST_REASON",
    "NEVER_SETTLED",
    "Broker",
    "BrokerSettings",
    "Consumer",
    "DeadLetter",
    "Delivery",
    "check_batch",
    "check_consume",
    "closed_error",
    "encode_body",
    "is_name",
    "letter_steps",
    "mark_settled",
    "name_refusal",
    "queue_name",
    "retry_delay",
]

T = TypeVar("T")

LONGEST_DELAY = timedelta(minutes=1)
LONGEST_REASON = 4000
"""The characters of a dead letter's reason that are stored: data of the message may be in it."""
LETTERS_AT_ONCE = 100
"""The dead letters that are replayed or dropped in one step."""
NEVER_SETTLED = "every consumer that received it ended without settling it"


class BrokerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a process takes part in a group. The URL chooses the broker."""

    group: str = "gateway"
    """The service that publishes the events."""
    encoding: Encoding = Encoding.JSON
    """The encoding of published bodies. Received bodies may have any encoding."""
    client: str | None = None
    """The name of this process among the consumers, constant across restarts. None: host name and slot."""
    max_attempts: int = 5
    """The number of deliveries after which a message goes to the dead letters."""
    retry_after: timedelta = timedelta(seconds=1)
    """The delay before the first retry of a rejected message; doubles with each attempt, up to a minute."""
    claim_after: timedelta = timedelta(minutes=2)
    """Redis: the time after which another consumer takes over an unsettled delivery."""
    retention: timedelta | None = timedelta(hours=1)
    """Redis: the age at which a stream drops entries that every group has settled. None keeps all."""
    max_length: int | None = None
    """Redis: the entries of a stream beyond which the oldest are dropped, settled or not. None: no limit."""
    call_timeout: timedelta = timedelta(seconds=5)
    """The default timeout of a call."""
    connect_timeout: timedelta = timedelta(seconds=30)
    """The timeout of the first connection, and of an operation during a reconnect."""
    prefix: str = ""
    """Redis: the prefix of every stream name, so that two bots can share one server. Spectacles has none."""
    quorum: bool = False
    """AMQP: declare quorum queues. They replicate, and differ from the published clients' queues."""
    max_body_bytes: int = 16 * 1024 * 1024
    """The largest body that may be published."""


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A message that failed for the last time."""

    event: str
    body: bytes
    reason: str
    attempts: int
    at: datetime


def queue_name(group: str, event: str, subgroup: str | None = None) -> str:
    """Return `<group>:[<subgroup>:]<event>`, the queue name of the Spectacles document."""
    return f"{group}:{subgroup}:{event}" if subgroup else f"{group}:{event}"


def is_name(text: str) -> bool:
    """Return whether text can name a group, subgroup or event: colons separate them. Brokers allow less."""
    return bool(text) and ":" not in text


def encode_body(data: object, settings: BrokerSettings) -> bytes:
    """Return the body of a message or a reply. Raise UsageError if it is too large or cannot be encoded."""
    body = encode(data, settings.encoding)
    if len(body) > settings.max_body_bytes:
        raise UsageError(
            f"a message body of {len(body)} bytes is larger than the limit of {settings.max_body_bytes}. "
            f"Send less, or raise max_body_bytes."
        )
    return body


def retry_delay(settings: BrokerSettings, attempt: int) -> timedelta:
    """Return the delay before the retry of a message whose attempt of this number failed."""
    doubled = min(settings.retry_after, LONGEST_DELAY) * (1 << min(attempt - 1, 30))
    return min(doubled, LONGEST_DELAY)


def name_refusal(kind: str, name: str, expected: str) -> UsageError:
    """Return the error for an invalid name of a group, subgroup or event."""
    colons = " Colons separate group, subgroup and event in the name of a queue." if ":" in name else ""
    return UsageError(f"{name!r} cannot name {kind}: give {expected}.{colons}")


def mark_settled(deliveries: Sequence[Delivery]) -> None:
    """Mark deliveries as settled. Raise UsageError, and mark none, if one was settled before."""
    for number, delivery in enumerate(deliveries):
        if delivery.settled:
            for marked in deliveries[:number]:
                marked.settled = False
            raise UsageError(f"the delivery {delivery.id} is settled already. Acknowledge or reject it once.")
        delivery.settled = True


def letter_steps(there: int, limit: int | None) -> Iterator[int]:
    """Yield how many dead letters to take in each step, of those that there are."""
    left = there if limit is None else min(there, max(0, limit))
    while left > 0:
        yield min(left, LETTERS_AT_ONCE)
        left -= LETTERS_AT_ONCE


def closed_error() -> UsageError:
    return UsageError("the broker is closed. Open another with open_broker().")


def check_consume(events: Sequence[str], prefetch: int) -> None:
    """Raise UsageError unless a consumer can receive these events with this prefetch."""
    if not events:
        raise UsageError("a consumer needs at least one event. Name the events to consume.")
    if prefetch < 1:
        raise UsageError(f"prefetch must be 1 or more, got {prefetch}.")


def check_batch(at_most: int) -> None:
    """Raise UsageError unless a batch can have this size."""
    if at_most < 1:
        raise UsageError(f"the size of a batch must be 1 or more, got {at_most}.")


class Delivery(ABC):
    """One message handed to one consumer. Settle it once: acknowledge or reject it."""

    __slots__ = ("attempt", "body", "content_type", "event", "id", "settled")

    def __init__(
        self, event: str, body: bytes, identity: str, attempt: int, content_type: str | None
    ) -> None:
        self.event = event
        self.body = body
        self.id = identity
        self.attempt = attempt
        """1 for the first delivery, as far as the broker knows."""
        self.content_type = content_type
        self.settled = False
        """Whether it was acknowledged or rejected."""

    @property
    def data(self) -> Any:
        """The body as plain data, from any encoding. Raises UndecodableError."""
        return decode(self.body, content_type=self.content_type)

    def convert(self, to: type[T]) -> T:
        """Return the body as any type msgspec knows, such as a struct or a dataclass.

        Raise UndecodableError.
        """
        return decode(self.body, to, content_type=self.content_type)

    @property
    @abstractmethod
    def wants_reply(self) -> bool:
        """Whether a caller may be waiting for a reply."""

    @abstractmethod
    async def acknowledge(self) -> None:
        """Settle the message as done. If the connection is lost first, it is delivered again."""

    @abstractmethod
    async def reject(self, reason: str, *, retry: bool = False) -> None:
        """Settle the message as failed: deliver it again later with `retry`, while attempts are left.

        Otherwise it becomes a dead letter. The message is written to its next queue before it leaves this
        one: a crash in between duplicates it.
        """

    @abstractmethod
    async def reply(self, data: object) -> None:
        """Reply to the caller, without acknowledging. Drop the reply if no caller is waiting."""


class Consumer(ABC):
    """The deliveries of some events, as an async iterator. Use it with `async with`.

    At most `prefetch` deliveries are unsettled at a time. Leaving returns the unsettled ones to their queues.
    A lost connection is restored; messages that were unsettled are delivered again, and settling their former
    delivery does nothing.
    """

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivery:
        return (await self.batch(1))[0]

    @abstractmethod
    async def batch(self, at_most: int) -> Sequence[Delivery]:
        """Wait for one delivery and return it with all others that have arrived, up to `at_most`.

        Raise StopAsyncIteration when the consumer was closed.
        """

    @abstractmethod
    async def acknowledge_all(self, deliveries: Sequence[Delivery]) -> None:
        """Acknowledge deliveries of this consumer together, with one write to the broker.

        Raise UsageError, and acknowledge none, if one was settled before.
        """

    @abstractmethod
    async def open(self) -> None:
        """Declare the queues and start receiving. `async with` calls it."""

    @abstractmethod
    async def close(self) -> None:
        """Stop receiving; unsettled deliveries return to their queues. A waiting batch() ends."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Broker(ABC):
    """A connection to a broker on behalf of one group. Make one with `open_broker`."""

    settings: BrokerSettings

    @property
    def group(self) -> str:
        return self.settings.group

    @abstractmethod
    async def declare(self, *events: str, subgroup: str | None = None) -> None:
        """Create the queues of these events, so that messages published from now on wait there."""

    @abstractmethod
    async def publish(self, event: str, data: object) -> str:
        """Publish a message and return its id when the broker has confirmed it.

        Concurrent publishes share round trips. `data` is anything msgspec encodes; `msgspec.Raw` is JSON
        already encoded. Raise UnroutableError if an AMQP broker has no queue for the event. If the connection
        is lost, publish again after the reconnect, within `connect_timeout`, so a message may arrive twice
        but is not lost; then raise BrokerUnreachableError.
        """

    @abstractmethod
    async def publish_many(self, event: str, items: Iterable[object]) -> list[str]:
        """Publish in order, pipelined; return the ids when the broker has confirmed all of them."""

    @overload
    async def call(self, event: str, data: object, *, within: timedelta | None = None) -> Any: ...
    @overload
    async def call(
        self, event: str, data: object, *, reply: type[T], within: timedelta | None = None
    ) -> T: ...
    @abstractmethod
    async def call(
        self, event: str, data: object, *, reply: Any = Any, within: timedelta | None = None
    ) -> Any:
        """Publish a message and return the one reply, decoded as `reply`. Raise CallTimeoutError."""

    @abstractmethod
    def consume(self, *events: str, subgroup: str | None = None, prefetch: int = 100) -> Consumer:
        """Return a consumer of these events; it does nothing until it is entered."""

    @abstractmethod
    async def dead_letters(
        self, event: str, *, subgroup: str | None = None, limit: int = 100
    ) -> list[DeadLetter]:
        """Return the oldest dead letters of an event without removing them."""

    @abstractmethod
    async def count_dead_letters(self, event: str, *, subgroup: str | None = None) -> int:
        """Return the number of dead letters of an event."""

    @abstractmethod
    async def replay_dead_letters(
        self, event: str, *, subgroup: str | None = None, limit: int | None = None
    ) -> int:
        """Return the oldest dead letters to the queue that they came from, as if published now.

        Return how many: at most `limit`, and those that there were at the beginning. Each is removed when the
        broker has confirmed it in its queue, so a crash in between duplicates it.
        """

    @abstractmethod
    async def drop_dead_letters(
        self, event: str, *, subgroup: str | None = None, limit: int | None = None
    ) -> int:
        """Remove the oldest dead letters. Return how many: as `replay_dead_letters` does."""

    @abstractmethod
    async def ping(self) -> None:
        """Return when the broker answers. Raise BrokerUnreachableError if the connection is lost.

        A broker that does not answer is waited for: put a timeout around it.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close consumers, wait for running publishes, end the connection. May be called twice."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
