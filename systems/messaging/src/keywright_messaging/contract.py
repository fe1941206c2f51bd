"""What every broker promises: publish, call, consume; acknowledge, reject, reply.

A *group* is a service (AMQP: an exchange); an *event* names what happened (AMQP: a routing key); a *subgroup*
reads every event of the group once more, for itself. Each event of a group or subgroup is one queue.

Delivery is at least once: what was published and confirmed reaches some consumer of every declared queue, and
again if that consumer dies before it acknowledged. Within one queue the order is that of publishing, until
a redelivery. A message that failed `max_attempts` times waits in the queue's dead letters with the reason.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import msgspec

from keywright.errors import UsageError
from keywright_messaging.encodings import Encoding, decode, encode

__all__ = [
    "Broker",
    "BrokerSettings",
    "Consumer",
    "DeadLetter",
    "Delivery",
    "encode_body",
    "is_name",
    "name_refusal",
    "queue_name",
]

T = TypeVar("T")


class BrokerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a process takes part in a group. The URL says which broker; this says the rest."""

    group: str = "gateway"
    """The service whose events these are."""
    encoding: Encoding = Encoding.JSON
    """How bodies are written. Reading recognises every encoding."""
    client: str | None = None
    """This process's name among the consumers, the same after a restart. None: host name and process slot."""
    max_attempts: int = 5
    """How often a message is delivered before it goes to the dead letters."""
    retry_after: timedelta = timedelta(seconds=1)
    """How long a message rejected for a retry waits; it doubles with each attempt, up to a minute."""
    claim_after: timedelta = timedelta(minutes=2)
    """Redis: how long a delivery may stay unsettled before another consumer takes it over."""
    retention: timedelta | None = timedelta(hours=1)
    """Redis: how long a stream keeps what everybody had time to read. None keeps everything."""
    call_timeout: timedelta = timedelta(seconds=5)
    """How long a call waits for its reply unless it says otherwise."""
    connect_timeout: timedelta = timedelta(seconds=30)
    """How long the first connection, and an operation during a reconnect, may take."""
    prefix: str = ""
    """Redis: put before every stream, so that two bots can share one server. Spectacles has none."""
    quorum: bool = False
    """AMQP: declare quorum queues. They replicate, and differ from the published clients' queues."""
    max_body_bytes: int = 16 * 1024 * 1024
    """A larger body is refused before it is sent."""


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was given up."""

    event: str
    body: bytes
    reason: str
    attempts: int
    at: datetime


def queue_name(group: str, event: str, subgroup: str | None = None) -> str:
    """`<group>:[<subgroup>:]<event>`, as the Spectacles document writes it."""
    return f"{group}:{subgroup}:{event}" if subgroup else f"{group}:{event}"


def is_name(text: str) -> bool:
    """Whether a group, subgroup or event may be called so: colons separate them. A broker may allow less."""
    return bool(text) and ":" not in text


def encode_body(data: object, settings: BrokerSettings) -> bytes:
    """The body of a message or an answer. Raises UsageError for what is too large or has no encoding."""
    body = encode(data, settings.encoding)
    if len(body) > settings.max_body_bytes:
        raise UsageError(
            f"a message body of {len(body)} bytes is larger than the limit of {settings.max_body_bytes}. "
            f"Send less, or raise max_body_bytes."
        )
    return body


def name_refusal(kind: str, name: str, expected: str) -> UsageError:
    """What a broker raises that cannot use a name for a group, a subgroup, an event."""
    return UsageError(f"{name!r} cannot name {kind}: give {expected}.")


class Delivery(ABC):
    """One message handed to one consumer, until it is settled: acknowledged or rejected, once."""

    __slots__ = ("attempt", "body", "content_type", "event", "id")

    def __init__(
        self, event: str, body: bytes, identity: str, attempt: int, content_type: str | None
    ) -> None:
        self.event = event
        self.body = body
        self.id = identity
        self.attempt = attempt
        """1 when it is delivered for the first time, as far as the broker can tell."""
        self.content_type = content_type

    @property
    def data(self) -> Any:
        """The body as plain data, whatever encoding it came in. Raises UndecodableError."""
        return decode(self.body, content_type=self.content_type)

    def convert(self, to: type[T]) -> T:
        """The body as any type msgspec knows, such as a struct or a dataclass. Raises UndecodableError."""
        return decode(self.body, to, content_type=self.content_type)

    @property
    @abstractmethod
    def wants_reply(self) -> bool:
        """Whether a caller may be waiting."""

    @abstractmethod
    async def acknowledge(self) -> None:
        """It is done: never deliver it again. Should the connection be lost first, it is delivered again."""

    @abstractmethod
    async def reject(self, reason: str, *, retry: bool = False) -> None:
        """It failed. With `retry` it comes again later while attempts are left; else it is a dead letter.

        The message is written to its next place before it leaves this one: a crash between duplicates it.
        """

    @abstractmethod
    async def reply(self, data: object) -> None:
        """Answer the caller. Does not acknowledge. Without a waiting caller the answer is dropped."""


class Consumer(ABC):
    """The deliveries of some events, as an async iterator. Use it with `async with`.

    At most `prefetch` deliveries are unsettled at a time. Leaving gives the unsettled ones back. A lost
    connection is restored; what was unsettled then is delivered again, and settling the old delivery does
    nothing.
    """

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivery:
        return (await self.batch(1))[0]

    @abstractmethod
    async def batch(self, at_most: int) -> Sequence[Delivery]:
        """Wait for one delivery, and take what is there besides it, up to `at_most`.

        Raises StopAsyncIteration when the consumer was closed.
        """

    @abstractmethod
    async def acknowledge_all(self, deliveries: Sequence[Delivery]) -> None:
        """Acknowledge deliveries of this consumer together: one write to the broker."""

    @abstractmethod
    async def open(self) -> None:
        """Declare the queues and start receiving. `async with` calls it."""

    @abstractmethod
    async def close(self) -> None:
        """Stop receiving; unsettled deliveries go back to their queues. A waiting batch() ends."""

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
        """Make the queues of these events exist, so that what is published from now on waits there."""

    @abstractmethod
    async def publish(self, event: str, data: object) -> str:
        """Publish, and return its id once the broker has it safe. Concurrent publishes share round trips.

        `data` is anything msgspec encodes; `msgspec.Raw` is JSON already encoded. AMQP without a queue
        for the event: UnroutableError. A lost connection: published again after the reconnect, within
        `connect_timeout`, so a message may arrive twice but is not lost; else BrokerUnreachableError.
        """

    @abstractmethod
    async def publish_many(self, event: str, items: Iterable[object]) -> list[str]:
        """Publish in order, pipelined; the ids once the broker has all of them safe."""

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
        """Publish and wait for the one reply, decoded as `reply`. Raises CallTimeoutError."""

    @abstractmethod
    def consume(self, *events: str, subgroup: str | None = None, prefetch: int = 100) -> Consumer:
        """A consumer of these events; nothing happens before it is entered."""

    @abstractmethod
    async def dead_letters(
        self, event: str, *, subgroup: str | None = None, limit: int = 100
    ) -> list[DeadLetter]:
        """The oldest dead letters of an event, left where they are."""

    @abstractmethod
    async def close(self) -> None:
        """Close consumers, wait for running publishes, end the connection. Twice is fine."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
