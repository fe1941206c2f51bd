"""The metrics of the service, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Counter, Gauge

from keywright_registry.cache_metrics import PrometheusCacheMetrics
from keywright_registry.counters import Flushed
from keywright_registry.service.notifications import EventResult
from keywright_service.metrics import Metrics
from keywright_service.process_lock import ProcessLock

__all__ = ["RegistryMetrics"]


class RegistryMetrics(Metrics):
    """The metrics of one process."""

    def __init__(self) -> None:
        super().__init__()
        self.lock: ProcessLock | None = None
        """Held by the process that moves counts."""
        self._events = self._counter("events", "Events of notifications.", ["action", "outcome"])
        self._refused = self._counter("notifications_refused", "Notifications refused.", ["status"])
        self._flushed = self._counter("counts_flushed", "Counts moved to the database.", ["kind"])
        self._failures = self._counter("flush_failures", "Flushes that failed; the counts are moved later.")
        Gauge(
            "keywright_registry_flushing",
            "1 in the process that holds the lease to move counts.",
            registry=self.registry,
        ).set_function(lambda: self.lock is not None and self.lock.ours)
        self.cache = PrometheusCacheMetrics(self.registry)

    def counted(self, results: Iterable[EventResult]) -> None:
        for action, outcome in results:
            self._events.labels(action, outcome.value).inc()

    def refused(self, status: int) -> None:
        self._refused.labels(str(status)).inc()

    def flushed(self, moved: Flushed) -> None:
        self._flushed.labels("pulls").inc(moved.pulls)
        self._flushed.labels("pushes").inc(moved.pushes)

    def flush_failed(self) -> None:
        self._failures.inc()

    def _counter(self, name: str, text: str, labels: Iterable[str] = ()) -> Counter:
        return Counter(f"keywright_registry_{name}", text, labels, registry=self.registry)
