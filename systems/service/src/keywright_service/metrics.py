"""Prometheus metrics of one process, and the endpoint that shows them."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

__all__ = ["Metrics", "metrics_route"]


class Metrics:
    """The metrics of a service. A subclass makes them with `registry=self.registry`.

    The registry is its own, not the process-wide one of prometheus_client: two services in one process do
    not collide.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

    def exposition(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self.registry)


def metrics_route(metrics: Metrics, path: str = "/metrics") -> Route:
    """Answer with the exposition."""

    async def show(request: Request) -> Response:
        return Response(metrics.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return Route(path, show)
