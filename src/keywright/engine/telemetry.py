"""Telemetry of round trips for observers: operations by template, duration, bytes, errors."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from keywright.errors import KeywrightError
from keywright.keyspace.wires import Reply, Wire


class RoundTrip(NamedTuple):
    """One round trip. `operations` counts (template, operation); values and key names are never in it."""

    operations: Counter[tuple[str, str]]
    seconds: float
    bytes_sent: int
    bytes_received: int
    errors: int


class Observer(Protocol):
    """A function called after every round trip, in its thread or task. It must not raise or block."""

    def __call__(self, trip: RoundTrip, /) -> None: ...


def observe(
    observers: Sequence[Observer], wires: Sequence[Wire], deliver: Callable[[], list[Reply]]
) -> list[Reply]:
    start = time.perf_counter()
    replies = deliver()
    report(observers, wires, replies, time.perf_counter() - start)
    return replies


def report(
    observers: Sequence[Observer], wires: Sequence[Wire], replies: Sequence[Reply], seconds: float
) -> None:
    trip = RoundTrip(
        Counter((_template(wire), wire.operation.name) for wire in wires),
        seconds,
        sum(_size(wire.arguments) for wire in wires),
        _size(replies),
        sum(isinstance(reply, KeywrightError) for reply in replies),
    )
    for observer in observers:
        observer(trip)


def _template(wire: Wire) -> str:
    return wire.source.declaration.template.source if wire.source is not None else ""


def _size(parts: Sequence[object]) -> int:
    """Return the bytes of some arguments or replies, about: a number or an error counts as 8."""
    return sum(
        len(part) if isinstance(part, bytes | str) else _size(part) if isinstance(part, tuple | list) else 8
        for part in parts
    )
