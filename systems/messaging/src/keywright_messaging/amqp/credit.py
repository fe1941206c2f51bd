"""Limits on the unsettled deliveries of several queues together. No I/O.

RabbitMQ limits one consumer, thus one queue. Its limit for a whole channel (`global`) is deprecated, and
denied since 4.3.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence

__all__ = ["Polls", "Shares"]

_MOST_AT_ONCE = 64


class Shares:
    """A limit that is at least as large as the number of queues.

    The consumer of each queue has a `share` of one half. The other half is given to a second consumer of the
    queue that has used up its share; it moves when another queue needs it more. Deliveries of one channel
    stay in the order of their queue, whichever consumer they are for.
    """

    def __init__(self, queues: Sequence[bytes], limit: int) -> None:
        count = len(queues)
        self.share = max(1, limit // (2 * count))
        self.holder: bytes | None = None
        """The queue that has the second consumer."""
        self.extra: bytes | None = None
        """The tag of the second consumer."""
        self._queues = tuple(queues)
        self._rest = limit - count * self.share
        self._extra_limit = 0
        self._former = 0
        self._consumers: dict[int, bytes] = {}
        self._unsettled: Counter[bytes] = Counter()

    def arrived(self, consumer: bytes, tag: int) -> None:
        self._consumers[tag] = consumer
        self._unsettled[consumer] += 1

    def settled(self, tags: Iterable[int]) -> None:
        for tag in tags:
            consumer = self._consumers.pop(tag)
            if consumer in self._queues or consumer == self.extra:
                self._unsettled[consumer] -= 1
            else:
                self._former -= 1

    def needy(self) -> bytes | None:
        """Return the queue that the second consumer should move to; None if it should stay."""
        if not self._rest or self._room() < 1:
            return None
        full = [queue for queue in self._queues if self._unsettled[queue] >= self.share]
        if self.holder in full:
            return self.holder if self._room() > self._extra_limit else None
        return full[0] if full else None

    def cancelled(self) -> None:
        """Record that the second consumer gets no more deliveries; it still has its unsettled ones."""
        if self.extra is not None:
            self._former += self._unsettled.pop(self.extra, 0)
        self.holder = self.extra = None
        self._extra_limit = 0

    def moved(self, queue: bytes, consumer: bytes) -> int:
        """Record the second consumer at a queue. Return its limit."""
        self.holder, self.extra, self._extra_limit = queue, consumer, self._room()
        return self._extra_limit

    def _room(self) -> int:
        """Return the limit of the second consumer if it moved now."""
        used = 0 if self.extra is None else self._unsettled[self.extra]
        return self._rest - self._former - used


class Polls:
    """A limit that is smaller than the number of queues: they are asked in turn (basic.get), not consumed.

    A queue that had a message is asked for twice as many the next time, as far as the limit permits.
    """

    def __init__(self, queues: Sequence[bytes], limit: int) -> None:
        self._queues = tuple(queues)
        self._free = limit
        self._asked: deque[bytes] = deque()
        self._steps: dict[bytes, int] = {}

    def begin(self) -> None:
        """Ask every queue, whether or not it had messages."""
        for queue in self._queues:
            self._steps.setdefault(queue, 1)

    def arrived(self) -> bytes:
        """Record the message that answers the oldest request. Return its queue."""
        queue = self._asked.popleft()
        self._steps[queue] = min(2 * self._steps.get(queue, 1), _MOST_AT_ONCE)
        return queue

    def nothing(self) -> None:
        """Record that the queue of the oldest request is empty."""
        self._steps.pop(self._asked.popleft(), None)
        self._free += 1

    def settled(self, count: int) -> None:
        self._free += count

    def requests(self) -> list[bytes]:
        """Return the queues to ask now, once for each message; they go to the end of the line."""
        wanted: list[bytes] = []
        for queue, step in tuple(self._steps.items()):
            count = min(step - self._asked.count(queue), self._free - len(wanted))
            if count > 0:
                wanted += [queue] * count
                self._steps[queue] = self._steps.pop(queue)
        self._asked += wanted
        self._free -= len(wanted)
        return wanted
