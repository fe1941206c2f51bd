"""Prometheus metrics of one process, and the endpoint that shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keywright import Secret
from keywright.tools.http import SharedToken
from keywright_service.health import checked_token
from keywright_service.tasks import PeriodicTask

__all__ = ["Metrics", "metrics_route"]


class Metrics:
    """The metrics of a service. A subclass makes them with `registry=self.registry`.

    The registry is its own, not the process-wide one of prometheus_client: two services in one process do
    not collide. Memory, processor time and open files of the process are in it.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)

    def watch_tasks(self, tasks: Callable[[], Iterable[PeriodicTask]]) -> None:
        """Show the runs of the tasks that the function returns."""
        self.registry.register(_TaskCollector(tasks))

    def exposition(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self.registry)


class _TaskCollector(Collector):
    def __init__(self, tasks: Callable[[], Iterable[PeriodicTask]]) -> None:
        self._tasks = tasks

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        runs = CounterMetricFamily("service_task_runs", "Runs of a task.", labels=["task", "outcome"])
        ok = GaugeMetricFamily("service_task_ok", "0 from a failure until the next success.", labels=["task"])
        last = GaugeMetricFamily(
            "service_task_last_success_seconds", "When a task last succeeded.", labels=["task"]
        )
        for task in self._tasks():
            runs.add_metric([task.name, "succeeded"], task.succeeded)
            runs.add_metric([task.name, "failed"], task.failed)
            ok.add_metric([task.name], float(task.health.ok))
            if task.health.last is not None:
                last.add_metric([task.name], task.health.last.timestamp())
        return [runs, ok, last]


def metrics_route(metrics: Metrics, path: str = "/metrics", *, token: Secret[str] | None = None) -> Route:
    """Answer with the exposition; with a token only to requests that have it as bearer token."""
    shared = None if token is None else SharedToken(token)

    async def show(request: Request) -> Response:
        if shared is not None:
            await checked_token(shared, request, required=True)
        return Response(metrics.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return Route(path, show)
