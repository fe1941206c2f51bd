"""The metrics of the service, for Prometheus."""

from __future__ import annotations

from prometheus_client import Counter

from keywright_openmod.recorder import HandledEvent
from keywright_service.metrics import Metrics

__all__ = ["OpenModMetrics"]


class OpenModMetrics(Metrics):
    """The metrics of one process."""

    def __init__(self) -> None:
        super().__init__()
        self._events = Counter(
            "openmod_events", "Handled events by outcome.", ["outcome"], registry=self.registry
        )
        self._published = Counter("openmod_extracts_published", "Published extracts.", registry=self.registry)
        self._erased = Counter(
            "openmod_accounts_erased", "Deleted accounts that were erased.", registry=self.registry
        )

    def handled(self, event: HandledEvent) -> None:
        self._events.labels(event.outcome.value).inc()
        if event.post is not None:
            self._published.inc()

    def erased(self, accounts: int) -> None:
        self._erased.inc(accounts)
