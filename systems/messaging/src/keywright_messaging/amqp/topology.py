"""The names and declarations of exchanges and queues.

Queues of events are named as the Spectacles document prescribes, `<group>:[<subgroup>:]<event>`, and are
durable without arguments, as the published clients declare them. The queues behind such a queue are named
`<queue>::…`: groups, subgroups and events are not empty and have no colon, so no queue of an event can have
such a name.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from aiormq.abc import AbstractChannel
from aiormq.exceptions import AMQPChannelError, ChannelLockedResource, ChannelPreconditionFailed

from keywright.errors import UsageError
from keywright_messaging.amqp.connection import AmqpConnection
from keywright_messaging.amqp.reconnector import Reconnector
from keywright_messaging.contract import LONGEST_DELAY, BrokerSettings, name_refusal, queue_name
from keywright_messaging.errors import BrokerError, QueueMismatchError

__all__ = ["AmqpQueue", "AmqpTopology", "check_name", "refusal"]

_NAME = re.compile(r"[a-zA-Z0-9\-_.@#,/+ ]+")  # the characters that pamqp accepts, without the colon
_LONGEST_NAME = 255
_QUORUM = {"x-queue-type": "quorum"}

_log = logging.getLogger(__name__)


def check_name(kind: str, name: str) -> str:
    """Return the name of a group, subgroup or event. Raise UsageError if a queue's name cannot hold it."""
    if not _NAME.fullmatch(name):
        expected = "ASCII letters, digits, spaces and any of -_.@#,/+, to which AMQP 0-9-1 limits names"
        raise name_refusal(kind, name, expected)
    return name


@dataclass(frozen=True)
class AmqpQueue:
    """The queue of an event, and the queues behind it."""

    group: str
    event: str
    subgroup: str | None = None

    def __post_init__(self) -> None:
        check_name("a group", self.group)
        check_name("an event", self.event)
        if self.subgroup is not None:
            check_name("a subgroup", self.subgroup)
        longest = self.retries(LONGEST_DELAY)
        if len(longest) > _LONGEST_NAME:
            room = _LONGEST_NAME - len(longest) + len(self.name)
            raise UsageError(
                f"the queue name {self.name!r} is too long: there is room for {room} bytes. "
                f"Shorten the names."
            )

    @property
    def name(self) -> str:
        return queue_name(self.group, self.event, self.subgroup)

    @property
    def dead(self) -> str:
        """The queue of the dead letters."""
        return f"{self.name}::dead"

    @property
    def suspects(self) -> str:
        """The queue of messages that were unsettled at two losses of a consumer: each is delivered alone."""
        return f"{self.name}::suspects"

    def retries(self, delay: timedelta) -> str:
        """Return the queue where messages wait for a retry. One for each delay: a queue expires in order."""
        return f"{self.name}::retry:{_milliseconds(delay)}"


class AmqpTopology:
    """Declares exchanges and queues, again on every new connection."""

    def __init__(self, reconnector: Reconnector, settings: BrokerSettings) -> None:
        self._reconnector = reconnector
        self._group = settings.group
        self._arguments: Mapping[str, object] = _QUORUM if settings.quorum else {}
        self._wanted: dict[AmqpQueue, None] = {}
        self._ensured: set[str] = set()
        self._guard = asyncio.Lock()

    async def attach(self, connection: AmqpConnection) -> None:
        async with _declaring(connection, "exchange", self._group) as channel:
            await channel.exchange_declare(self._group, exchange_type="direct", durable=True)
        for queue in tuple(self._wanted):
            try:
                await self.declare_on(connection, queue)
            except QueueMismatchError as exc:
                # Another client declared it differently during the outage. Its consumers fail, others go on.
                _log.warning("%s", exc)
                del self._wanted[queue]

    def detach(self) -> None:
        self.forget_ensured()

    def fail(self, error: BrokerError) -> None:
        pass

    async def declare(self, queues: Iterable[AmqpQueue]) -> None:
        """Declare these queues, now and after each reconnect.

        Raise QueueMismatchError; the queues before it stay declared.
        """
        for queue in queues:
            await self._reconnector.run(partial(self.declare_on, queue=queue))
            self._wanted[queue] = None

    async def declare_on(self, connection: AmqpConnection, queue: AmqpQueue) -> None:
        """Declare the queue of an event and bind it to its group."""
        await self._declare(connection, queue.name, self._arguments)
        async with _declaring(connection, "queue", queue.name) as channel:
            await channel.queue_bind(queue.name, queue.group, queue.event)

    async def declare_suspects_on(self, connection: AmqpConnection, queue: AmqpQueue) -> None:
        await self._declare(connection, queue.suspects, self._arguments)

    async def ensure_dead(self, queue: AmqpQueue) -> str:
        """Return the dead letter queue. Always a classic one: there, peeking is not counted as delivery."""
        await self._ensure(queue.dead, {})
        return queue.dead

    async def ensure_retries(self, queue: AmqpQueue, delay: timedelta) -> str:
        """Return the queue from which the server returns messages to `queue` after the delay."""
        name = queue.retries(delay)
        arguments = {
            "x-message-ttl": _milliseconds(delay),
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": queue.name,
        }
        await self._ensure(name, arguments)
        return name

    def forget_ensured(self) -> None:
        """Declare ensured queues again at their next use: another client may have deleted them."""
        self._ensured.clear()

    async def _ensure(self, name: str, arguments: Mapping[str, object]) -> None:
        if name in self._ensured:
            return
        async with self._guard:
            await self._reconnector.run(lambda connection: self._declare(connection, name, arguments))
            self._ensured.add(name)

    async def _declare(self, connection: AmqpConnection, name: str, arguments: Mapping[str, object]) -> None:
        async with _declaring(connection, "queue", name) as channel:
            await channel.queue_declare(name, durable=True, arguments=dict(arguments))  # type: ignore[arg-type]


@asynccontextmanager
async def _declaring(connection: AmqpConnection, kind: str, name: str) -> AsyncIterator[AbstractChannel]:
    """Lend a channel for declarations. Raise QueueMismatchError or BrokerError if the server closes it."""
    try:
        async with connection.scratch() as channel:
            yield channel
    except AMQPChannelError as exc:
        raise refusal(kind, name, exc) from exc


def refusal(kind: str, name: str, error: AMQPChannelError) -> BrokerError:
    """Return the error for a channel that the server closed over a queue or an exchange."""
    if isinstance(error, (ChannelPreconditionFailed, ChannelLockedResource)):
        return QueueMismatchError(kind, name, str(error))
    return BrokerError(
        f"the broker refused the {kind} {name!r}: {error}. Grant this user the permission that it names."
    )


def _milliseconds(delay: timedelta) -> int:
    return max(1, round(delay / timedelta(milliseconds=1)))
