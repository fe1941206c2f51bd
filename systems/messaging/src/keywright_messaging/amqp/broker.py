"""The broker contract on RabbitMQ."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Any, Self

from keywright_messaging.amqp import dead_letters
from keywright_messaging.amqp.calls import Replies
from keywright_messaging.amqp.connection import AmqpConnection, BrokerAddress
from keywright_messaging.amqp.consumer import AmqpConsumer
from keywright_messaging.amqp.frames import PERSISTENT, Properties, identified
from keywright_messaging.amqp.publisher import AmqpPublisher, OutgoingMessage
from keywright_messaging.amqp.reconnector import Reconnector
from keywright_messaging.amqp.rerouter import Rerouter
from keywright_messaging.amqp.topology import AmqpQueue, AmqpTopology, check_name
from keywright_messaging.contract import (
    Broker,
    BrokerSettings,
    DeadLetter,
    check_consume,
    closed_error,
    encode_body,
    letter_steps,
)
from keywright_messaging.encodings import CONTENT_TYPES
from keywright_messaging.errors import CallTimeoutError

__all__ = ["AmqpBroker"]


class AmqpBroker(Broker):
    """A group on RabbitMQ: a durable direct exchange, and a durable queue for each event and subgroup."""

    def __init__(self, address: BrokerAddress, settings: BrokerSettings) -> None:
        check_name("a group", settings.group)
        self.settings = settings
        seconds = settings.connect_timeout.total_seconds()
        self._content_type = CONTENT_TYPES[settings.encoding]
        self._label = Properties(content_type=self._content_type).pack(PERSISTENT)
        self._seconds = seconds
        # Unique among all processes; without a Python function for each message.
        self._ids = map(f"{secrets.token_hex(8)}-{{}}".format, count(1))
        self._reconnector = Reconnector(
            address, settings.client or f"{socket.gethostname()}-{os.getpid()}", seconds
        )
        self._publisher = AmqpPublisher(self._reconnector, seconds)
        self._topology = AmqpTopology(self._reconnector, settings)
        self._replies = Replies()
        self._rerouter = Rerouter(self._publisher, self._topology, settings, self._ids)
        self._consumers: list[AmqpConsumer] = []
        self._closed = False

    @classmethod
    async def open(cls, url: str, settings: BrokerSettings) -> Self:
        """Connect once and declare the exchange. Raise BrokerUnreachableError, QueueMismatchError."""
        broker = cls(BrokerAddress(url), settings)
        # They are restored in this order after an outage: published messages need the queues.
        for attachment in (broker._topology, broker._replies, broker._publisher):
            broker._reconnector.add(attachment)
        await broker._reconnector.open()
        return broker

    def __repr__(self) -> str:
        return f"<AmqpBroker of {self.group!r} at {self._reconnector.address}>"

    async def declare(self, *events: str, subgroup: str | None = None) -> None:
        self._check_open()
        await self._topology.declare(self._queues(events, subgroup))

    async def publish(self, event: str, data: object) -> str:
        self._check_open()
        message = self._outgoing(event, data)
        await self._publisher.publish(message)
        return message.identity

    async def publish_many(self, event: str, items: Iterable[object]) -> list[str]:
        self._check_open()
        identities: list[str] = []

        def messages() -> Iterator[OutgoingMessage]:
            for item in items:
                message = self._outgoing(event, item)
                identities.append(message.identity)
                yield message

        await self._publisher.publish_all(messages())
        return identities

    async def call(
        self, event: str, data: object, *, reply: Any = Any, within: timedelta | None = None
    ) -> Any:
        self._check_open()
        question = self._outgoing(event, data)
        seconds = (self.settings.call_timeout if within is None else within).total_seconds()
        try:
            async with asyncio.timeout(seconds):
                return await self._replies.ask(self._publisher, question, self._content_type, reply)
        except TimeoutError as exc:
            raise CallTimeoutError(event, seconds) from exc

    def consume(self, *events: str, subgroup: str | None = None, prefetch: int = 100) -> AmqpConsumer:
        self._check_open()
        check_consume(events, prefetch)
        consumer = AmqpConsumer(
            self._reconnector,
            self._topology,
            self._rerouter,
            self._queues(events, subgroup),
            prefetch,
            shared_limit=not self.settings.quorum,
        )
        self._consumers = [known for known in self._consumers if not known.closed] + [consumer]
        return consumer

    async def dead_letters(
        self, event: str, *, subgroup: str | None = None, limit: int = 100
    ) -> list[DeadLetter]:
        self._check_open()
        (queue,) = self._queues((event,), subgroup)
        return await self._reconnector.run(lambda connection: dead_letters.peek(connection, queue, limit))

    async def count_dead_letters(self, event: str, *, subgroup: str | None = None) -> int:
        self._check_open()
        (queue,) = self._queues((event,), subgroup)
        return await self._reconnector.run(lambda connection: dead_letters.count(connection, queue))

    async def replay_dead_letters(
        self, event: str, *, subgroup: str | None = None, limit: int | None = None
    ) -> int:
        there = await self.count_dead_letters(event, subgroup=subgroup)
        (queue,) = self._queues((event,), subgroup)
        if there:
            await self._topology.declare([queue])
        return await self._in_steps(
            there,
            limit,
            lambda number, connection: dead_letters.replay(connection, queue, number, self._publisher),
        )

    async def drop_dead_letters(
        self, event: str, *, subgroup: str | None = None, limit: int | None = None
    ) -> int:
        there = await self.count_dead_letters(event, subgroup=subgroup)
        (queue,) = self._queues((event,), subgroup)
        return await self._in_steps(
            there, limit, lambda number, connection: dead_letters.drop(connection, queue, number)
        )

    async def _in_steps(
        self, there: int, limit: int | None, step: Callable[[int, AmqpConnection], Coroutine[Any, Any, int]]
    ) -> int:
        total = 0
        for number in letter_steps(there, limit):
            total += await self._reconnector.run(partial(step, number))
        return total

    async def ping(self) -> None:
        self._check_open()
        await self._reconnector.ping(self.group)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            for consumer in self._consumers:
                await consumer.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._seconds):
                    await self._publisher.drain()
        finally:
            self._publisher.close()
            await self._reconnector.close()

    def _check_open(self) -> None:
        if self._closed:
            raise closed_error()

    def _queues(self, events: Iterable[str], subgroup: str | None) -> list[AmqpQueue]:
        return [AmqpQueue(self.group, event, subgroup) for event in dict.fromkeys(events)]

    def _outgoing(self, event: str, data: object) -> OutgoingMessage:
        check_name("an event", event)
        identity = next(self._ids)
        body = encode_body(data, self.settings)
        return OutgoingMessage(self.settings.group, event, identity, identified(self._label, identity), body)
