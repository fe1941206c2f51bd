"""Health and metrics over HTTP, in the gateway's own event loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keywright.errors import UsageError
from keywright.services.gateway.monitoring import Monitor

__all__ = ["EndpointServer", "endpoints", "listening_address"]

LOOPBACK = "127.0.0.1"


def endpoints(monitor: Monitor, metrics_path: str = "/metrics") -> Starlette:
    """`/health` answers 200 when every shard that this process runs is ready, else 503; both say why."""

    async def health(request: Request) -> Response:
        found = monitor.health()
        return Response(msgspec.json.encode(found), 200 if found.ok else 503, media_type="application/json")

    async def metrics(request: Request) -> Response:
        return Response(monitor.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return Starlette(routes=[Route("/health", health), Route(metrics_path, metrics)])


def listening_address(text: str) -> tuple[str, int]:
    """Host and port; loopback where no host is given."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise UsageError(f"prometheus.address cannot be {text!r}. Write host:port, as in 127.0.0.1:8080.")
    return host.strip("[]") or LOOPBACK, int(port)


class EndpointServer(uvicorn.Server):
    """uvicorn that leaves signals to the gateway. `serve` it as a task; set `should_exit` to end it."""

    def __init__(self, app: Starlette, host: str, port: int) -> None:
        super().__init__(
            uvicorn.Config(app, host, port, log_config=None, access_log=False, lifespan="off", ws="none")
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def run_until_stopped(self) -> None:
        try:
            await self.serve()
        except SystemExit as exc:  # how uvicorn says that it cannot bind
            raise UsageError(
                f"{self.config.host}:{self.config.port} cannot be listened on. Set PROMETHEUS_ADDRESS to "
                f"another address."
            ) from exc
