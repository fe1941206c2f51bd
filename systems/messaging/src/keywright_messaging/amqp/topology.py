"""Exchanges and queues: what they are called, and declaring them.

Queues of events are named as the Spectacles document says, `<group>:[<subgroup>:]<event>`, and are durable
without arguments, as the published clients declare them. What belongs to such a queue is named `<queue>::…`:
neither group nor subgroup nor event is empty or holds a colon, so no event's queue can have such a name.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from aiormq.exceptions import AMQPChannelError, ChannelLockedResource, ChannelPreconditionFailed

from keywright.errors import UsageError
from keywright_messaging.amqp.connection import Connection
from keywright_messaging.amqp.link import Link
from keywright_messaging.contract import BrokerSettings, name_refusal, queue_name
from keywright_messaging.errors import BrokerError, QueueMismatchError

__all__ = ["Queue", "Topology", "check_name", "refusal"]

_NAME = re.compile(r"[a-zA-Z0-9\-_.@#,/+ ]+")  # what pamqp lets through, without the colon
_LONGEST_NAME = 255
_LONGEST_DELAY = timedelta(minutes=1)
_QUORUM = {"x-queue-type": "quorum"}

_log = logging.getLogger(__name__)


def check_name(kind: str, name: str) -> str:
    """The name of a group, subgroup or event, if it can be part of a queue's name. Raises UsageError."""
    if not _NAME.fullmatch(name):
        expected = "letters, digits, spaces and any of -_.@#,/+, which AMQP takes; colons separate the names"
        raise name_refusal(kind, name, expected)
    return name


@dataclass(frozen=True)
class Queue:
    """The queue of an event, and the queues behind it."""

    group: str
    event: str
    subgroup: str | None = None

    def __post_init__(self) -> None:
        check_name("a group", self.group)
        check_name("an event", self.event)
        if self.subgroup is not None:
            check_name("a subgroup", self.subgroup)
        longest = self.retries(_LONGEST_DELAY)
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
        """Where messages wait that were given up."""
        return f"{self.name}::dead"

    @property
    def suspects(self) -> str:
        """Where messages go that were twice unsettled when a consumer was lost: each is delivered alone."""
        return f"{self.name}::suspects"

    def retries(self, delay: timedelta) -> str:
        """Where messages rest for so long before they return. One queue a delay: each expires in order."""
        return f"{self.name}::retry:{_milliseconds(delay)}"


class Topology:
    """Declares what a broker needs, and again on every new link."""

    def __init__(self, connection: Connection, settings: BrokerSettings) -> None:
        self._connection = connection
        self._group = settings.group
        self._arguments: Mapping[str, object] = _QUORUM if settings.quorum else {}
        self._wanted: dict[Queue, None] = {}
        self._behind: set[str] = set()
        self._guard = asyncio.Lock()

    async def attach(self, link: Link) -> None:
        await self._declare_exchange(link)
        for queue in tuple(self._wanted):
            try:
                await self.declare_on(link, queue)
            except QueueMismatchError as exc:
                # Somebody declared it anew during the outage. Whoever consumes it is told; the others go on.
                _log.warning("%s", exc)
                del self._wanted[queue]

    def detach(self) -> None:
        self.ensure_anew()

    def fail(self, error: BrokerError) -> None:
        pass

    async def declare(self, queues: Iterable[Queue]) -> None:
        """Make these queues exist and keep them so. Raises QueueMismatchError; the others stay declared."""
        for queue in queues:
            await self._connection.run(partial(self.declare_on, queue=queue))
            self._wanted[queue] = None

    async def declare_on(self, link: Link, queue: Queue) -> None:
        """The queue of an event, bound to its group."""
        await self._declare(link, queue.name, self._arguments)
        await self._bind(link, queue)

    async def declare_suspects_on(self, link: Link, queue: Queue) -> None:
        await self._declare(link, queue.suspects, self._arguments)

    async def ensure_dead(self, queue: Queue) -> str:
        """The dead letters' queue. Always a classic one: reading and giving back is not counted there."""
        await self._ensure(queue.dead, {})
        return queue.dead

    async def ensure_retries(self, queue: Queue, delay: timedelta) -> str:
        """The queue from which messages return to `queue` after the delay, whoever is alive then."""
        name = queue.retries(delay)
        arguments = {
            "x-message-ttl": _milliseconds(delay),
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": queue.name,
        }
        await self._ensure(name, arguments)
        return name

    def ensure_anew(self) -> None:
        """Somebody deleted what was ensured: believe nothing."""
        self._behind.clear()

    async def _ensure(self, name: str, arguments: Mapping[str, object]) -> None:
        if name in self._behind:
            return
        async with self._guard:
            await self._connection.run(lambda link: self._declare(link, name, arguments))
            self._behind.add(name)

    async def _declare(self, link: Link, name: str, arguments: Mapping[str, object]) -> None:
        try:
            async with link.scratch() as channel:
                await channel.queue_declare(name, durable=True, arguments=dict(arguments))  # type: ignore[arg-type]
        except AMQPChannelError as exc:
            raise refusal("queue", name, exc) from exc

    async def _bind(self, link: Link, queue: Queue) -> None:
        try:
            async with link.scratch() as channel:
                await channel.queue_bind(queue.name, queue.group, queue.event)
        except AMQPChannelError as exc:
            raise refusal("queue", queue.name, exc) from exc

    async def _declare_exchange(self, link: Link) -> None:
        try:
            async with link.scratch() as channel:
                await channel.exchange_declare(self._group, exchange_type="direct", durable=True)
        except AMQPChannelError as exc:
            raise refusal("exchange", self._group, exc) from exc


def refusal(kind: str, name: str, error: AMQPChannelError) -> BrokerError:
    """What it means that the server closed a channel over a queue or an exchange."""
    if isinstance(error, (ChannelPreconditionFailed, ChannelLockedResource)):
        return QueueMismatchError(kind, name, str(error))
    return BrokerError(
        f"the broker refused the {kind} {name!r}: {error}. Grant this user what the reply names."
    )


def _milliseconds(delay: timedelta) -> int:
    return max(1, round(delay / timedelta(milliseconds=1)))
