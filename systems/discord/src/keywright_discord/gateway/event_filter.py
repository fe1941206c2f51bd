"""The events that are published to workers, and the queues that keep them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from keywright_discord.gateway_events import GATEWAY_EVENTS
from keywright_messaging import Broker

__all__ = ["ALL", "EventFilter"]

ALL = "*"


class EventFilter:
    """The events to publish: those named, or every one when `*` is among them.

    Their queues are those of `subgroups`; None is the queue of the group itself. A queue that nobody reads
    grows without bound, so no other one is declared.
    """

    def __init__(self, events: Iterable[str], subgroups: Sequence[str | None] = (None,)) -> None:
        names = frozenset(events)
        self._all = ALL in names
        self._names = names - {ALL}
        self._subgroups = subgroups

    def __contains__(self, event: str) -> bool:
        return self._all or event in self._names

    def __iter__(self) -> Iterator[str]:
        """Iterate over the known events, in order. With `*`, Discord may add more of them."""
        every = (each.name for each in GATEWAY_EVENTS.values() if each.dispatched)
        return iter(sorted(every if self._all else self._names))

    def __bool__(self) -> bool:
        return self._all or bool(self._names)

    async def declare(self, broker: Broker, *events: str) -> None:
        """Declare the queues of these events, so that nothing is dropped before the first consumer comes."""
        for subgroup in self._subgroups:
            await broker.declare(*events, subgroup=subgroup)
