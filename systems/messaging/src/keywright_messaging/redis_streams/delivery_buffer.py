"""The deliveries that a consumer holds: those that wait to be taken, and those unsettled. No I/O."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from keywright.errors import KeywrightError
from keywright_messaging.redis_streams.schema import EventStream

if TYPE_CHECKING:
    from keywright_messaging.redis_streams.delivery import StreamDelivery

__all__ = ["DeliveryBuffer", "StreamQueue"]


class StreamQueue:
    """One event as one consumer reads it."""

    __slots__ = ("asked", "event", "flowing", "held", "name", "postponed", "stream")

    def __init__(self, stream: EventStream, name: bytes) -> None:
        self.event: str = stream.event
        self.stream = stream
        self.name = name
        self.held: dict[str, StreamDelivery] = {}
        """By id: the unsettled deliveries of this consumer."""
        self.postponed: dict[str, float] = {}
        """By id: the time, on the loop's clock, at which a rejected message is due for its retry."""
        self.asked = 1
        self.flowing = False
        """Whether the last read was full, so that the stream has more."""


class DeliveryBuffer:
    """Hands out deliveries in order, at most `prefetch` unsettled ones at a time."""

    def __init__(self, queues: Iterable[StreamQueue], prefetch: int, last_attempt: int) -> None:
        self.queues = list(queues)
        self.prefetch = prefetch
        self._last_attempt = last_attempt
        self.on_last_chance: Callable[[], None] | None = None
        """Called when a delivery on its last attempt is settled."""
        self._ready: deque[StreamDelivery] = deque()
        self._unsettled = 0
        self._closed = False
        self._failure: KeywrightError | None = None
        self._changed = asyncio.Event()
        self._room = asyncio.Event()

    @property
    def free(self) -> int:
        """The number of entries that may be fetched."""
        return self.prefetch - self._unsettled

    @property
    def idle(self) -> bool:
        """Whether no delivery waits to be taken."""
        return not self._ready

    def untaken(self) -> set[StreamDelivery]:
        """Return the deliveries that wait to be taken."""
        return set(self._ready)

    @property
    def has_last_chance(self) -> bool:
        """Whether an unsettled delivery is on its last attempt, after others."""
        return any(map(self._is_last_chance, (each for queue in self.queues for each in queue.held.values())))

    def put(self, queue: StreamQueue, deliveries: list[StreamDelivery]) -> None:
        """Add deliveries of one queue. One replaces that of the same id: its group was created again."""
        before = len(queue.held)
        queue.held.update([(delivery.id, delivery) for delivery in deliveries])
        self._ready.extend(deliveries)
        self._unsettled += len(queue.held) - before
        if len(queue.held) - before < len(deliveries):
            self._ready = deque(each for each in self._ready if each.queue.held.get(each.id) is each)
        self._changed.set()

    async def take(self, at_most: int) -> list[StreamDelivery]:
        """Wait for one delivery and take all that are ready, within the prefetch.

        Raise StopAsyncIteration when closed.
        """
        while True:
            if self._closed:
                raise StopAsyncIteration
            if self._failure is not None:
                raise self._failure
            ready = self._ready
            count = min(at_most, len(ready), self.prefetch - self._unsettled + len(ready))
            if count > 0:
                taken = [ready.popleft() for _ in range(count)]
                if not ready:
                    self._room.set()
                return taken
            self._changed.clear()
            await self._changed.wait()

    def release(self, delivery: StreamDelivery, queue: StreamQueue) -> bool:
        """Remove a delivery that is being settled. Return False if another consumer has taken it over."""
        if queue.held.get(delivery.id) is not delivery:
            return False
        del queue.held[delivery.id]
        self._unsettled -= 1
        if self._is_last_chance(delivery) and self.on_last_chance is not None:
            self.on_last_chance()
        self._room.set()
        if self._ready:
            self._changed.set()
        return True

    def forget(self, queues: Iterable[StreamQueue]) -> None:
        """Drop the deliveries of these queues, to be fetched again. Settling a dropped one does nothing."""
        dropped = set()
        for queue in queues:
            dropped.add(queue)
            self._unsettled -= len(queue.held)
            queue.held.clear()
        self._ready = deque(each for each in self._ready if each.queue not in dropped)
        self._room.set()

    def drop(self, queue: StreamQueue, ids: Iterable[str]) -> None:
        """Drop deliveries that other consumers have taken over."""
        for identity in ids:
            delivery = queue.held[identity]
            if delivery in self._ready:
                self._ready.remove(delivery)
            self.release(delivery, queue)

    async def room(self, share: int) -> int:
        """Wait until a fetch is worthwhile; return the number of entries for one of `share` readers."""
        while self.free < (1 if self.idle else max(1, self.prefetch // 2)):
            self._room.clear()
            await self._room.wait()
        return max(1, self.free // share)

    def _is_last_chance(self, delivery: StreamDelivery) -> bool:
        return 1 < delivery.attempt >= self._last_attempt

    def close(self) -> None:
        self._closed = True
        self._changed.set()

    def fail(self, error: KeywrightError) -> None:
        self._failure = error
        self._changed.set()
