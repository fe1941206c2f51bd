"""The Spectacles protocol on Redis streams.

`publish` is `XADD <event> * data <body>`; a group is a consumer group, `<group>` or `<group>:<subgroup>`;
a reply is `PUBLISH <event>:<id> <body>`. Groups read from the first entry of a stream
(docs/resolutions.md#start).
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any, Self

from keywright import AsyncDatabase, Call, Entry, Settings, aconnect, gather_list
from keywright.errors import EngineError, KeywrightError
from keywright_messaging.contract import (
    Broker,
    BrokerSettings,
    Consumer,
    DeadLetter,
    check_consume,
    closed_error,
    encode_body,
    letter_steps,
)
from keywright_messaging.encodings import decode
from keywright_messaging.errors import BrokerUnreachableError
from keywright_messaging.redis_streams import commands
from keywright_messaging.redis_streams.calls import Caller
from keywright_messaging.redis_streams.consumer import StreamConsumer
from keywright_messaging.redis_streams.consumer_names import ProcessName
from keywright_messaging.redis_streams.outages import RetryingDatabase, retried
from keywright_messaging.redis_streams.schema import (
    DeadLetters,
    EventStream,
    GivenUp,
    checked_name,
    group_name,
    streams,
)
from keywright_messaging.redis_streams.trimmer import Trimmer

__all__ = ["RedisStreamsBroker"]

# The limits of one batch of publish_many, so that neither side buffers without bound.
BATCH_ENTRIES = 5_000
BATCH_BYTES = 4 * 1024 * 1024
# Each reader waits on a connection of its own; a cluster needs one for each slot that is read.
ENGINE = Settings(most_connections=4096)


class RedisStreamsBroker(Broker):
    """The events of a group as Redis streams. Make one with `open_broker`."""

    def __init__(self, database: RetryingDatabase, settings: BrokerSettings) -> None:
        self.settings = settings
        self._database = database
        self._names = ProcessName(database, settings)
        self._caller = Caller(database)
        self._trimmer = Trimmer(database, settings.retention, settings.max_length)
        self._streams: dict[str, EventStream] = {}
        self._consumers: weakref.WeakSet[StreamConsumer] = weakref.WeakSet()
        self._publishing = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._closing = False

    @classmethod
    async def open(cls, url: str, settings: BrokerSettings) -> Self:
        """Connect. Raise BrokerUnreachableError after the settings' `connect_timeout`."""
        checked_name("a group", settings.group)
        if settings.client is not None:
            checked_name("a client", settings.client)
        binding = streams.bind(prefix=settings.prefix or None)

        async def connected() -> AsyncDatabase:
            return await aconnect(url, binding, settings=ENGINE)

        without_credentials = url.rpartition("@")[2].partition("?")[0].rpartition("://")[2]
        engine = await retried(connected, without_credentials, settings.connect_timeout)
        return cls(RetryingDatabase(engine, settings.connect_timeout), settings)

    async def declare(self, *events: str, subgroup: str | None = None) -> None:
        declared = [self._stream(event) for event in events]
        await self._database.run(commands.create_groups(declared, group_name(self.group, subgroup)))

    async def publish(self, event: str, data: object) -> str:
        stream, body = self._stream(event), encode_body(data, self.settings)
        self._begin()
        try:
            return await self._database.run(commands.publish(stream, body))
        finally:
            self._end()

    async def publish_many(self, event: str, items: Iterable[object]) -> list[str]:
        stream = self._stream(event)
        ids: list[str] = []
        self._begin()
        try:
            for bodies in _batches(encode_body(item, self.settings) for item in items):
                ids += await self._append(stream, bodies)
        finally:
            self._end()
        return ids

    async def call(
        self, event: str, data: object, *, reply: Any = Any, within: timedelta | None = None
    ) -> Any:
        self._stream(event)
        answer = await self._caller.call(
            event, lambda: self.publish(event, data), self.settings.call_timeout if within is None else within
        )
        return decode(answer, reply)

    def consume(self, *events: str, subgroup: str | None = None, prefetch: int = 100) -> Consumer:
        check_consume(events, prefetch)
        wanted = [self._stream(event) for event in dict.fromkeys(events)]
        group = group_name(self.group, subgroup)
        consumer = StreamConsumer(self._database, self.settings, group, wanted, prefetch, self._names)
        self._consumers.add(consumer)
        return consumer

    async def dead_letters(
        self, event: str, *, subgroup: str | None = None, limit: int = 100
    ) -> list[DeadLetter]:
        if limit < 1:
            return []
        dead = DeadLetters(self._stream(event).event, group_name(self.group, subgroup))
        return [
            DeadLetter(
                event=event,
                body=letter.value.data,
                reason=letter.value.reason,
                attempts=letter.value.attempts,
                at=letter.value.at,
            )
            for letter in await self._database.run(dead.range(count=limit))
        ]

    async def count_dead_letters(self, event: str, *, subgroup: str | None = None) -> int:
        dead = DeadLetters(self._stream(event).event, group_name(self.group, subgroup))
        return await self._database.run(dead.length())

    async def replay_dead_letters(
        self, event: str, *, subgroup: str | None = None, limit: int | None = None
    ) -> int:
        stream, group = self._stream(event), group_name(self.group, subgroup)
        await self.declare(event, subgroup=subgroup)
        return await self._in_steps(
            DeadLetters(event, group),
            limit,
            lambda letters: [commands.replay(stream, group, letter) for letter in letters],
        )

    async def drop_dead_letters(
        self, event: str, *, subgroup: str | None = None, limit: int | None = None
    ) -> int:
        dead = DeadLetters(self._stream(event).event, group_name(self.group, subgroup))
        return await self._in_steps(
            dead, limit, lambda letters: [dead.remove(*(letter.id for letter in letters))]
        )

    async def _in_steps(
        self,
        dead: DeadLetters,
        limit: int | None,
        calls: Callable[[list[Entry[GivenUp]]], list[Call[int]]],
    ) -> int:
        there = await self._database.run(dead.length())
        total = 0
        for number in letter_steps(there, limit):
            letters = await self._database.run(dead.range(count=number))
            if letters:
                total += sum(await self._database.run(gather_list(calls(letters))))
        return total

    async def ping(self) -> None:
        try:
            await self._database.engine.run(EventStream(self.group).length())
        except EngineError as error:
            raise BrokerUnreachableError(self._database.address, str(error).rstrip(".")) from error

    async def close(self) -> None:
        if self._database.closed:
            return
        self._closing = True
        await self._quiet.wait()
        await asyncio.gather(*(consumer.close() for consumer in self._consumers))
        self._database.closed = True
        await self._caller.close()
        await self._trimmer.close()
        await self._names.close()
        await self._database.engine.close()

    def _stream(self, event: str) -> EventStream:
        stream = self._streams.get(event)
        if stream is None:
            stream = self._streams[event] = EventStream(checked_name("an event", event))
            self._trimmer.watch([stream])
        return stream

    async def _append(self, stream: EventStream, bodies: list[bytes]) -> list[str]:
        """Append one batch; append bodies that an outage left without an id again, in order."""
        ids: list[str | None] = [None] * len(bodies)

        async def attempt() -> list[str]:
            missing = [place for place, identity in enumerate(ids) if identity is None]
            replies = await self._database.engine.run(
                commands.Append(stream, [bodies[place] for place in missing])
            )
            failures: list[KeywrightError] = []
            for place, reply in zip(missing, replies, strict=True):
                if isinstance(reply, KeywrightError):
                    failures.append(reply)
                else:
                    ids[place] = str(reply, "ascii")
            if failures:
                # A transient error is retried, so one that a retry does not help takes precedence.
                raise next(filter(_is_permanent, failures), failures[0])
            return [identity for identity in ids if identity is not None]

        return await self._database.retried(attempt)

    def _begin(self) -> None:
        """Count a publish in progress; close() waits for it."""
        if self._closing:
            raise closed_error()
        self._publishing += 1
        self._quiet.clear()

    def _end(self) -> None:
        self._publishing -= 1
        if not self._publishing:
            self._quiet.set()


def _batches(bodies: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for body in bodies:
        batch.append(body)
        size += len(body)
        if len(batch) == BATCH_ENTRIES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _is_permanent(error: KeywrightError) -> bool:
    return not isinstance(error, EngineError) or not error.is_transient
