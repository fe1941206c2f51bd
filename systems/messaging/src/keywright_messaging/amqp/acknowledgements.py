"""Acknowledges the deliveries of one channel with as few frames as the protocol allows."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable

from keywright_messaging.amqp.frames import acknowledgement

__all__ = ["Ledger"]


class Ledger:
    """The unsettled deliveries of a channel, in the order of their tags.

    AMQP's `multiple` settles everything up to a tag, so it is used only up to the first delivery that a
    handler still works on.
    """

    def __init__(self, channel: int) -> None:
        self._channel = channel
        self._unsettled: set[int] = set()
        self._order: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._unsettled)

    def arrived(self, tag: int) -> None:
        self._unsettled.add(tag)
        self._order.append(tag)

    def acknowledge(self, tags: Iterable[int]) -> bytes:
        """Return the frames that settle these deliveries, none of which was settled before."""
        chosen = sorted(tags)
        self._unsettled.difference_update(chosen)
        while self._order and self._order[0] not in self._unsettled:
            self._order.popleft()
        covered = bisect_left(chosen, self._order[0]) if self._order else len(chosen)
        frames = []
        if covered:
            # The highest tag must be unsettled on the server too: the last covered one is.
            frames.append(acknowledgement(self._channel, chosen[covered - 1], multiple=covered > 1))
        frames += [acknowledgement(self._channel, tag, multiple=False) for tag in chosen[covered:]]
        return b"".join(frames)
