"""The broker in memory: for unit tests, and for programs without a server.

It fulfils the contract except for durability: messages exist while a broker of their name is open. Bodies are
encoded and decoded as by the other brokers. One event loop at a time may use a name.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from operator import attrgetter
from typing import Any, Self, cast
from urllib.parse import urlsplit

from keywright_messaging.contract import (
    NEVER_SETTLED,
    Broker,
    BrokerSettings,
    Consumer,
    DeadLetter,
    Delivery,
    check_batch,
    check_consume,
    closed_error,
    encode_body,
    is_name,
    mark_settled,
    name_refusal,
    queue_name,
    retry_delay,
)
from keywright_messaging.encodings import decode
from keywright_messaging.errors import CallTimeoutError, UnroutableError

__all__ = ["MemoryBroker"]


class _Message:
    """One copy of a message, in one queue."""

    __slots__ = ("attempts", "body", "event", "id", "reply")

    def __init__(self, event: str, body: bytes, identity: str, reply: asyncio.Future[bytes] | None) -> None:
        self.event = event
        self.body = body
        self.id = identity
        self.reply = reply
        self.attempts = 0


class _Queue:
    """Messages that are ready, messages that wait for a retry, and dead letters."""

    def __init__(self) -> None:
        self.dead: list[DeadLetter] = []
        self.consumers: set[MemoryConsumer] = set()
        self._ready: deque[_Message] = deque()
        self._later: list[tuple[float, int, _Message]] = []
        self._numbers = count()

    def put(self, message: _Message) -> None:
        self._ready.append(message)
        self._wake()

    def put_back(self, messages: Iterable[_Message], most_attempts: int) -> None:
        """Return messages to the front in their order; bury those without attempts left."""
        for message in sorted(messages, key=attrgetter("id"), reverse=True):
            if message.attempts < most_attempts:
                self._ready.appendleft(message)
            else:
                self.bury(message, NEVER_SETTLED)
        self._wake()

    def put_later(self, message: _Message, seconds: float) -> None:
        heapq.heappush(self._later, (time.monotonic() + seconds, next(self._numbers), message))
        self._wake()

    def take(self) -> _Message | None:
        while self._later and self._later[0][0] <= time.monotonic():
            self._ready.append(heapq.heappop(self._later)[2])
        return self._ready.popleft() if self._ready else None

    def bury(self, message: _Message, reason: str) -> None:
        self.dead.append(
            DeadLetter(
                event=message.event,
                body=message.body,
                reason=reason,
                attempts=message.attempts,
                at=datetime.now(UTC),
            )
        )

    def take_dead(self, limit: int | None) -> list[DeadLetter]:
        taken, self.dead = self.dead[:limit], [] if limit is None else self.dead[limit:]
        return taken

    def seconds_until_retry(self) -> float | None:
        return max(0.0, self._later[0][0] - time.monotonic()) if self._later else None

    def _wake(self) -> None:
        for consumer in self.consumers:
            consumer.wake()


class _Hub:
    """The queues that brokers of one name share."""

    _named: dict[str, _Hub] = {}  # noqa: RUF012  # brokers share it by name

    def __init__(self, name: str) -> None:
        self.name = name
        self.queues: dict[str, _Queue] = {}
        self.routes: dict[tuple[str, str], dict[str, _Queue]] = {}
        self._numbers = count(1)
        self._users = 0

    @classmethod
    def join(cls, name: str) -> _Hub:
        hub = cls._named.setdefault(name, cls(name)) if name else cls(name)
        hub._users += 1
        return hub

    def leave(self) -> None:
        self._users -= 1
        if not self._users and self.name:
            del self._named[self.name]

    def next_id(self) -> str:
        return f"{next(self._numbers):016d}"

    def declare(self, group: str, event: str, subgroup: str | None) -> _Queue:
        name = queue_name(group, event, subgroup)
        queue = self.queues.setdefault(name, _Queue())
        self.routes.setdefault((group, event), {})[name] = queue
        return queue

    def publish(self, group: str, event: str, body: bytes, reply: asyncio.Future[bytes] | None) -> str:
        queues = self.routes.get((group, event))
        if not queues:
            raise UnroutableError(group, event)
        identity = self.next_id()
        for queue in queues.values():
            queue.put(_Message(event, body, identity, reply))
        return identity


class MemoryDelivery(Delivery):
    """A message taken from a queue of this process."""

    __slots__ = ("_message", "_queue", "consumer")

    def __init__(self, message: _Message, queue: _Queue, consumer: MemoryConsumer) -> None:
        message.attempts += 1
        super().__init__(message.event, message.body, message.id, message.attempts, None)
        self._message = message
        self._queue = queue
        self.consumer = consumer

    @property
    def wants_reply(self) -> bool:
        return self._message.reply is not None

    async def acknowledge(self) -> None:
        self.settle()

    async def reject(self, reason: str, *, retry: bool = False) -> None:
        settings = self.consumer.broker.settings
        if not self.settle():
            return
        if retry and self.attempt < settings.max_attempts:
            self._queue.put_later(self._message, retry_delay(settings, self.attempt).total_seconds())
        else:
            self._queue.bury(self._message, reason)

    async def reply(self, data: object) -> None:
        body = encode_body(data, self.consumer.broker.settings)
        waiting = self._message.reply
        if waiting is not None and not waiting.done():
            waiting.set_result(body)

    def settle(self) -> bool:
        """Settle it and return whether the consumer still had it: a closed one has returned it."""
        mark_settled((self,))
        return self.consumer.forget(self)


class MemoryConsumer(Consumer):
    """Takes messages from the queues of its events in turns."""

    def __init__(
        self, broker: MemoryBroker, events: Iterable[str], subgroup: str | None, prefetch: int
    ) -> None:
        self.broker = broker
        self._events = tuple(dict.fromkeys(events))
        self._subgroup = subgroup
        self._queues: deque[_Queue] = deque()
        self._prefetch = prefetch
        self._unsettled: dict[MemoryDelivery, tuple[_Queue, _Message]] = {}
        self._something = asyncio.Event()
        self._open = False

    async def open(self) -> None:
        self._queues = deque(self.broker.enter(self, self._events, self._subgroup))
        self._open = True
        for queue in self._queues:
            queue.consumers.add(self)

    async def batch(self, at_most: int) -> Sequence[Delivery]:
        check_batch(at_most)
        # Messages that are ready are taken without waiting, so a busy consumer must let other tasks run.
        await asyncio.sleep(0)
        while self._open:
            self._something.clear()
            if taken := self._take(min(at_most, self._prefetch - len(self._unsettled))):
                return taken
            await self._wait()
        raise StopAsyncIteration

    async def acknowledge_all(self, deliveries: Sequence[Delivery]) -> None:
        mark_settled(deliveries)
        for delivery in cast("Sequence[MemoryDelivery]", deliveries):
            delivery.consumer.forget(delivery)

    async def close(self) -> None:
        if not self._open:
            return
        self._open = False
        self.broker.exit(self)
        unsettled, self._unsettled = self._unsettled, {}
        for queue in self._queues:
            queue.consumers.discard(self)
            messages = [message for owner, message in unsettled.values() if owner is queue]
            queue.put_back(messages, self.broker.settings.max_attempts)
        self.wake()

    def wake(self) -> None:
        self._something.set()

    def forget(self, delivery: MemoryDelivery) -> bool:
        if delivery not in self._unsettled:
            return False
        del self._unsettled[delivery]
        self.wake()
        return True

    def _take(self, at_most: int) -> list[MemoryDelivery]:
        taken: list[MemoryDelivery] = []
        empty = 0
        while len(taken) < at_most and empty < len(self._queues):
            queue = self._queues[0]
            self._queues.rotate(-1)
            message = queue.take()
            if message is None:
                empty += 1
                continue
            empty = 0
            delivery = MemoryDelivery(message, queue, self)
            self._unsettled[delivery] = queue, message
            taken.append(delivery)
        return taken

    async def _wait(self) -> None:
        full = len(self._unsettled) >= self._prefetch
        retries = () if full else (queue.seconds_until_retry() for queue in self._queues)
        timeout = min((seconds for seconds in retries if seconds is not None), default=None)
        try:
            async with asyncio.timeout(timeout):
                await self._something.wait()
        except TimeoutError:
            return


class MemoryBroker(Broker):
    """A broker in memory. `memory://` is private, `memory://name` is shared by that name.

    The queues and messages of a name are deleted with the last broker of that name.
    """

    def __init__(self, hub: _Hub, settings: BrokerSettings) -> None:
        self.settings = settings
        self._hub = hub
        self._open = True
        self._consumers: dict[MemoryConsumer, None] = {}
        self._calls: set[asyncio.Future[bytes]] = set()

    @classmethod
    async def open(cls, url: str, settings: BrokerSettings) -> Self:
        _check_name("a group", settings.group)
        return cls(_Hub.join(urlsplit(url).netloc), settings)

    async def declare(self, *events: str, subgroup: str | None = None) -> None:
        self._declared(events, subgroup)

    async def publish(self, event: str, data: object) -> str:
        identity = self._publish(event, encode_body(data, self.settings), None)
        await asyncio.sleep(0)
        return identity

    async def publish_many(self, event: str, items: Iterable[object]) -> list[str]:
        bodies = [encode_body(data, self.settings) for data in items]
        return [self._publish(event, body, None) for body in bodies]

    async def call(
        self, event: str, data: object, *, reply: Any = Any, within: timedelta | None = None
    ) -> Any:
        seconds = (self.settings.call_timeout if within is None else within).total_seconds()
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._publish(event, encode_body(data, self.settings), waiting)
        self._calls.add(waiting)
        try:
            async with asyncio.timeout(seconds):
                return decode(await waiting, reply)
        except TimeoutError:
            raise CallTimeoutError(event, seconds) from None
        finally:
            self._calls.discard(waiting)

    def consume(self, *events: str, subgroup: str | None = None, prefetch: int = 100) -> Consumer:
        check_consume(events, prefetch)
        self._check(events, subgroup)
        return MemoryConsumer(self, events, subgroup, prefetch)

    async def dead_letters(
        self, event: str, *, subgroup: str | None = None, limit: int = 100
    ) -> list[DeadLetter]:
        self._check([event], subgroup)
        queue = self._hub.queues.get(queue_name(self.group, event, subgroup))
        return queue.dead[:limit] if queue else []

    async def count_dead_letters(self, event: str, *, subgroup: str | None = None) -> int:
        self._check([event], subgroup)
        queue = self._hub.queues.get(queue_name(self.group, event, subgroup))
        return len(queue.dead) if queue else 0

    async def replay_dead_letters(
        self, event: str, *, subgroup: str | None = None, limit: int | None = None
    ) -> int:
        [queue] = self._declared([event], subgroup)
        letters = queue.take_dead(limit)
        for letter in letters:
            queue.put(_Message(letter.event, letter.body, self._hub.next_id(), None))
        return len(letters)

    async def drop_dead_letters(
        self, event: str, *, subgroup: str | None = None, limit: int | None = None
    ) -> int:
        [queue] = self._declared([event], subgroup)
        return len(queue.take_dead(limit))

    async def ping(self) -> None:
        self._require_open()

    async def close(self) -> None:
        if not self._open:
            return
        for consumer in tuple(self._consumers):
            await consumer.close()
        for waiting in self._calls:
            if not waiting.done():
                waiting.set_exception(closed_error())
        self._open = False
        self._hub.leave()

    def enter(
        self, consumer: MemoryConsumer, events: Sequence[str], subgroup: str | None
    ) -> Iterable[_Queue]:
        queues = self._declared(events, subgroup)
        self._consumers[consumer] = None
        return queues

    def exit(self, consumer: MemoryConsumer) -> None:
        self._consumers.pop(consumer, None)

    def _declared(self, events: Sequence[str], subgroup: str | None) -> list[_Queue]:
        self._check(events, subgroup)
        return [self._hub.declare(self.group, event, subgroup) for event in events]

    def _publish(self, event: str, body: bytes, reply: asyncio.Future[bytes] | None) -> str:
        self._require_open()
        _check_name("an event", event)
        return self._hub.publish(self.group, event, body, reply)

    def _check(self, events: Sequence[str], subgroup: str | None) -> None:
        self._require_open()
        if subgroup is not None:
            _check_name("a subgroup", subgroup)
        for event in events:
            _check_name("an event", event)

    def _require_open(self) -> None:
        if not self._open:
            raise closed_error()


def _check_name(kind: str, name: str) -> None:
    if not is_name(name):
        raise name_refusal(kind, name, "text without colons")
