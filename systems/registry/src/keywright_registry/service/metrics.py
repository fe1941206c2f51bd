"""What the service counts of itself, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from keywright_registry.cache_metrics import PrometheusCacheMetrics
from keywright_registry.counters import Flushed
from keywright_registry.service.notifications import Verdict

__all__ = ["Monitor"]


class Monitor:
    """Counts of one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._events = self._counter("events", "Events of notifications.", ["action", "outcome"])
        self._refused = self._counter("notifications_refused", "Notifications refused.", ["status"])
        self._flushed = self._counter("counts_flushed", "Counts moved to the database.", ["kind"])
        self._failures = self._counter("flush_failures", "Flushes that failed; what is left is moved later.")
        self._flushing = Gauge(
            "keywright_registry_flushing",
            "1 in the process whose turn it is to move counts.",
            registry=self._registry,
        )
        self.cache = PrometheusCacheMetrics(self._registry)

    def counted(self, verdicts: Iterable[Verdict]) -> None:
        for action, outcome in verdicts:
            self._events.labels(action, outcome.value).inc()

    def refused(self, status: int) -> None:
        self._refused.labels(str(status)).inc()

    def flushed(self, moved: Flushed) -> None:
        self._flushed.labels("pulls").inc(moved.pulls)
        self._flushed.labels("pushes").inc(moved.pushes)

    def flush_failed(self) -> None:
        self._failures.inc()

    def took_turn(self, *, ours: bool) -> None:
        self._flushing.set(ours)

    def exposition(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self._registry)

    def _counter(self, name: str, text: str, labels: Iterable[str] = ()) -> Counter:
        return Counter(f"keywright_registry_{name}", text, labels, registry=self._registry)
