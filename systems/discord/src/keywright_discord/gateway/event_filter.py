"""Which events are published to workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

__all__ = ["ALL", "Wanted"]

ALL = "*"


class Wanted:
    """The events to publish: those named, or every one when `*` is among them."""

    def __init__(self, events: Iterable[str]) -> None:
        names = frozenset(events)
        self._all = ALL in names
        self._names = names - {ALL}

    def __contains__(self, event: str) -> bool:
        return self._all or event in self._names

    def __iter__(self) -> Iterator[str]:
        """The names that are known beforehand, in order."""
        return iter(sorted(self._names))

    def __bool__(self) -> bool:
        return self._all or bool(self._names)
