"""What happened in the cache, counted: hits and misses, and every time that Redis did not help."""

from __future__ import annotations

import enum
from collections import Counter
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["Event", "PrometheusTally", "Tally", "TallyCounts"]


class Event(enum.Enum):
    """Why a lookup ended as it did, or what became of a write."""

    HIT = "hit"
    MISS = "miss"
    KNOWN_ABSENT = "known_absent"
    MISMATCH = "mismatch"
    """A repository of another path was found: a collision of hashes. It counts as a miss."""
    UNDECODABLE = "undecodable"
    UNREACHABLE = "unreachable"
    """Redis failed or was too slow, so the database was asked."""
    SKIPPED = "skipped"
    """Redis was not asked, since it failed a moment ago, or owes this path an invalidation."""
    QUERIED = "queried"
    """The database was asked."""
    FILLED = "filled"
    FILL_REFUSED = "fill_refused"
    """What was read was not cached, since somebody wrote or asked again meanwhile."""
    REFRESHED = "refreshed"
    """A hot repository was near its expiry, so it is read anew while the old one still answers."""
    WRITE_FAILED = "write_failed"
    """A committed change did not reach the cache; it is tried again."""


class Tally(Protocol):
    """Told of every event; must not raise or block."""

    def __call__(self, event: Event, times: int = 1) -> None: ...


class TallyCounts(Counter[Event]):
    """A tally to look at: `counts[Event.HIT]`."""

    def __call__(self, event: Event, times: int = 1) -> None:
        self[event] += times


class PrometheusTally:
    """A tally for Prometheus: `registry_cache_events_total{event="hit"}`. Needs prometheus-client."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        import prometheus_client  # optional: only those who ask for it need it

        metric = prometheus_client.Counter(
            "registry_cache_events",
            "What happened in the repository cache.",
            ["event"],
            registry=registry or prometheus_client.REGISTRY,
        )
        self._of = {event: metric.labels(event.value) for event in Event}

    def __call__(self, event: Event, times: int = 1) -> None:
        self._of[event].inc(times)
