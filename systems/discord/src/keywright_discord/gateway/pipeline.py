"""The pipeline of a shard's events, in order: cache, then broker, then the sequence is stored.

Three stages overlap: while one batch of events is published, the next is written to the cache, and the stored
sequence is that of the last batch which both have. So no event waits for a round trip of its own, the cache
is never behind what workers receive, and a process that dies repeats events instead of losing them: to
workers, not to the cache, which stores its progress with every write. An outage of Redis or the broker stops
its stage until it is over; then `full` stops the reading.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec

from keywright import AsyncDatabase
from keywright.errors import EngineError, UsageError
from keywright_discord.event_cache import EventCache, next_window
from keywright_discord.gateway.actions import Dispatch, Session
from keywright_discord.gateway.cache_watch import CacheWatch
from keywright_discord.gateway.event_filter import EventFilter
from keywright_discord.gateway.metrics import Monitor
from keywright_discord.gateway.sessions import Tenancy
from keywright_discord.interpreter import EVENTS
from keywright_messaging import Broker
from keywright_messaging.errors import BrokerError, UnroutableError
from keywright_service.backoff import retry

__all__ = ["Pipeline", "Progress"]

log = logging.getLogger("keywright.gateway")

MOST_EVENTS = 4000
MOST_BYTES = 64 * 1024 * 1024
WINDOWS_AHEAD = 4


class Progress(msgspec.Struct, frozen=True):
    """The last event of a session that is in the cache and with the broker."""

    session: Session
    sequence: int


class Pipeline:
    """The stages of one shard: `run` them, `add` events in sequence, `close` to finish."""

    def __init__(
        self,
        tenancy: Tenancy,
        cache: EventCache[Any] | None,
        db: AsyncDatabase,
        broker: Broker,
        wanted: EventFilter,
        save: Callable[[Progress], Awaitable[None]],
        monitor: Monitor,
        watch: CacheWatch,
        session: Session | None = None,
    ) -> None:
        self._tenancy = tenancy
        self._shard = tenancy.shard
        self._cache = cache
        self._db = db
        self._broker = broker
        self._wanted = wanted
        self._save = save
        self._monitor = monitor
        self._watch = watch
        self.filling = None if session is None else session.id
        """The session that the cache is marked with; None: before that of a new one."""
        self._session = self._applying = session
        self._applied: int | None = None
        """The last event in the cache, when it was last read; None: read it before the next write."""
        self._waiting: deque[Dispatch] = deque()
        self._events = self._bytes = 0
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._cached: asyncio.Queue[list[Dispatch] | None] = asyncio.Queue(WINDOWS_AHEAD)
        self._safe: Progress | None = None
        self._saving = asyncio.Event()
        self._closed = self._published = False

    @property
    def full(self) -> bool:
        return not self._room.is_set()

    @property
    def backlog(self) -> int:
        """The number of events that are not with the broker yet."""
        return self._events

    async def room(self) -> None:
        """Wait until there is room for more."""
        await self._room.wait()

    def add(self, dispatch: Dispatch) -> None:
        """Append an event. A full pipeline takes it too: wait for `room` first."""
        self._waiting.append(dispatch)
        self._events += 1
        self._bytes += _size(dispatch)
        if self._events >= MOST_EVENTS or self._bytes >= MOST_BYTES:
            self._room.clear()
        self._arrived.set()

    def close(self) -> None:
        """Take no more events: `run` returns when all are safe."""
        self._closed = True
        self._arrived.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as stages:
            stages.create_task(self._write_cache())
            stages.create_task(self._publish())
            stages.create_task(self._store_sequence())

    async def _write_cache(self) -> None:
        while True:
            await self._arrived.wait()
            window = next_window(self._of_one_session(), _size)
            if not window:
                if self._closed:
                    await self._cached.put(None)
                    return
                self._arrived.clear()
                continue
            await self._apply(window)
            await self._cached.put(window)

    def _of_one_session(self) -> Iterator[Dispatch]:
        """Take the waiting events up to the next session."""
        session = True
        while self._waiting and (session or not self._waiting[0].session):
            session = False
            yield (dispatch := self._waiting.popleft())
            if dispatch.session:
                return  # a crash cannot resume a session before it is stored, so READY is a batch of its own

    async def _apply(self, window: list[Dispatch]) -> None:
        if window[0].session is not None:
            await self._begin(window[0].session)
        kept = [each for each in window if each.event in EVENTS]
        cache, session = self._cache, self._applying.id if self._applying else ""
        if cache is None or not kept:
            return
        await retry(
            lambda: self._write(cache, session, kept),
            f"write the cache for shard {self._shard}",
            on=EngineError,
        )

    async def _begin(self, session: Session) -> None:
        """Mark the cache before the session's first event is in it: if both are lost, it shows."""
        self._applying, self._applied = session, 0

        async def mark() -> None:
            await self._tenancy.assured()
            await self._db.run(self._watch.begun(session.id))

        await retry(mark, f"mark the cache for shard {self._shard}", on=EngineError)
        self.filling = session.id

    async def _write(self, cache: EventCache[Any], session: str, dispatches: list[Dispatch]) -> None:
        """Write the dispatches that the cache does not have; log and count those that it refuses."""
        await self._tenancy.assured()
        if self._applied is None:
            self._applied = await self._tenancy.applied(session)
        last = self._applied
        news = [each for each in dispatches if each.sequence > last]
        if not news:
            return
        events = [(each.event, bytes(each.data)) for each in news]
        try:
            refused = await self._db.run(
                cache.apply(events, lambda place: self._tenancy.mark(session, news[place].sequence))
            )
        except EngineError:
            self._applied = None  # some of them may have been applied
            self._tenancy.doubt()
            raise
        for each in refused:
            self._monitor.refused(self._shard)
            sequence, reason = news[each.place].sequence, f"{each.event}: {each.reason}"
            log.error("shard %d, event %d is not in the cache: %s", self._shard, sequence, reason)

    async def _publish(self) -> None:
        while (window := await self._cached.get()) is not None:
            queues: dict[str, list[msgspec.Raw]] = {}
            for dispatch in window:
                if dispatch.event in self._wanted:
                    queues.setdefault(dispatch.event, []).append(dispatch.data)
            await asyncio.gather(*(self._send(event, bodies) for event, bodies in queues.items()))
            self._leave(window)
        self._published = True
        self._saving.set()

    async def _send(self, event: str, bodies: list[msgspec.Raw]) -> None:
        """Publish the events of one name, in order."""

        async def attempt() -> None:
            try:
                await self._broker.publish_many(event, bodies)
            except UnroutableError:
                await self._wanted.declare(self._broker, event)
                await self._broker.publish_many(event, bodies)

        try:
            await retry(attempt, f"publish {event}", on=(BrokerError, EngineError))
        except UsageError as error:
            if len(bodies) == 1:
                self._monitor.unpublished(self._shard, event)
                log.error("shard %d: a %s cannot be published: %s", self._shard, event, error)
                return
            for body in bodies:  # one by one, so that only the refused one is lost
                await self._send(event, [body])
        else:
            self._monitor.published(self._shard, event, len(bodies))

    def _leave(self, window: list[Dispatch]) -> None:
        self._events -= len(window)
        self._bytes -= sum(map(_size, window))
        if self._events < MOST_EVENTS and self._bytes < MOST_BYTES:
            self._room.set()
        self._session = window[0].session or self._session
        if self._session is not None:
            self._safe = Progress(self._session, window[-1].sequence)
            self._saving.set()

    async def _store_sequence(self) -> None:
        stored = None
        while True:
            await self._saving.wait()
            self._saving.clear()
            progress, last = self._safe, self._published
            if progress is not None and progress != stored:
                await self._save(progress)
                stored = progress
            if last:
                return


def _size(dispatch: Dispatch) -> int:
    return len(memoryview(dispatch.data))
