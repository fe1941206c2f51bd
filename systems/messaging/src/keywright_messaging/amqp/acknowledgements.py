"""Acknowledging on one channel with as few frames as the protocol allows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from keywright_messaging.amqp.frames import acknowledgement

__all__ = ["Ledger"]


class Ledger:
    """Which deliveries of a channel are unsettled, in the order of their tags.

    AMQP's `multiple` settles everything up to a tag, so it is only used up to the first delivery that
    somebody still works on.
    """

    def __init__(self, channel: int) -> None:
        self._channel = channel
        self._open: set[int] = set()
        self._order: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._open)

    def arrived(self, tag: int) -> None:
        self._open.add(tag)
        self._order.append(tag)

    def acknowledge(self, tags: Iterable[int]) -> bytes:
        """The frames that settle these deliveries, each of them unsettled until now."""
        chosen = sorted(tags)
        self._open.difference_update(chosen)
        while self._order and self._order[0] not in self._open:
            self._order.popleft()
        covered = [tag for tag in chosen if not self._order or tag < self._order[0]]
        frames = [acknowledgement(self._channel, tag, multiple=False) for tag in chosen[len(covered) :]]
        if covered:
            # The highest tag must be one that the server still waits for: the last of these is.
            frames.insert(0, acknowledgement(self._channel, covered[-1], multiple=len(covered) > 1))
        return b"".join(frames)
