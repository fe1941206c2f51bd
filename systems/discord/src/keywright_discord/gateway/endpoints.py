"""Health and metrics over HTTP, in the gateway's own event loop."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keywright_discord.gateway.metrics import Monitor
from keywright_service.http import json_response

__all__ = ["endpoints"]


def endpoints(monitor: Monitor, metrics_path: str = "/metrics") -> Starlette:
    """`/health` answers 200 when every shard that this process runs is ready, else 503; both say why."""

    async def health(request: Request) -> Response:
        found = monitor.health()
        return json_response(found, 200 if found.ok else 503)

    async def metrics(request: Request) -> Response:
        return Response(monitor.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return Starlette(routes=[Route("/health", health), Route(metrics_path, metrics)])
