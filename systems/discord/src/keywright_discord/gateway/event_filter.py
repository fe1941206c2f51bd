"""The events that are published to workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

__all__ = ["ALL", "EventFilter"]

ALL = "*"


class EventFilter:
    """The events to publish: those named, or every one when `*` is among them."""

    def __init__(self, events: Iterable[str]) -> None:
        names = frozenset(events)
        self._all = ALL in names
        self._names = names - {ALL}

    def __contains__(self, event: str) -> bool:
        return self._all or event in self._names

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, in order; `*` is not one of them."""
        return iter(sorted(self._names))

    def __bool__(self) -> bool:
        return self._all or bool(self._names)
