"""Metrics of the repository cache: hits, misses, and each time that Redis did not help."""

from __future__ import annotations

import enum
from collections import Counter
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["CacheEvent", "CacheEventCounter", "CacheMetrics", "PrometheusCacheMetrics"]


class CacheEvent(enum.Enum):
    """The result of a lookup, or of a write to the cache."""

    HIT = "hit"
    MISS = "miss"
    KNOWN_ABSENT = "known_absent"
    MISMATCH = "mismatch"
    """A repository of another path was found: a hash collision. It counts as a miss."""
    UNDECODABLE = "undecodable"
    UNREACHABLE = "unreachable"
    """Redis failed or was too slow, so the database was queried."""
    SKIPPED = "skipped"
    """Redis was not asked: the circuit is open, or the cached value of the path may be stale."""
    QUERIED = "queried"
    """The database was queried."""
    FILLED = "filled"
    FILL_REFUSED = "fill_refused"
    """The result of a query was not cached, because another writer was faster."""
    REFRESHED = "refreshed"
    """A frequently read repository was close to its expiry, so it is read from the database early."""
    WRITE_FAILED = "write_failed"
    """A committed change did not reach the cache; it is retried."""


class CacheMetrics(Protocol):
    """Receives every event; must not raise or block."""

    def __call__(self, event: CacheEvent, times: int = 1) -> None: ...


class CacheEventCounter(Counter[CacheEvent]):
    """Metrics in memory: `metrics[CacheEvent.HIT]`."""

    def __call__(self, event: CacheEvent, times: int = 1) -> None:
        self[event] += times


class PrometheusCacheMetrics:
    """Metrics for Prometheus: `registry_cache_events_total{event="hit"}`. Needs prometheus-client."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        import prometheus_client  # an optional dependency

        counter = prometheus_client.Counter(
            "registry_cache_events",
            "What happened in the repository cache.",
            ["event"],
            registry=registry or prometheus_client.REGISTRY,
        )
        self._of = {event: counter.labels(event.value) for event in CacheEvent}

    def __call__(self, event: CacheEvent, times: int = 1) -> None:
        self._of[event].inc(times)
