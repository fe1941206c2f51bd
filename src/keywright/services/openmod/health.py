"""Health over HTTP, in the service's own event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keywright.errors import EngineError, UsageError
from keywright.services.openmod.jobs import JobHealth

__all__ = ["Health", "serving_health"]

LOOPBACK = "127.0.0.1"


class Health(msgspec.Struct, frozen=True):
    """How the service is: each of its jobs, and how many events are yet to be handled."""

    ok: bool
    jobs: Mapping[str, JobHealth]
    pending: int

    @classmethod
    def of(cls, jobs: Mapping[str, JobHealth], pending: int) -> Health:
        return cls(all(each.ok for each in jobs.values()), jobs, pending)


@asynccontextmanager
async def serving_health(
    health: Callable[[], Awaitable[Health]], address: str
) -> AsyncIterator[tuple[str, int]]:
    """`/health` answers 200 when every job works, else 503; both say why. Yields where it listens."""

    async def answer(request: Request) -> Response:
        try:
            found = await health()
        except EngineError as error:
            body = msgspec.json.encode({"ok": False, "trouble": str(error)})
            return Response(body, 503, media_type="application/json")
        return Response(msgspec.json.encode(found), 200 if found.ok else 503, media_type="application/json")

    listening = _listening(address)
    server = _Server(Starlette(routes=[Route("/health", answer)]))
    serving = asyncio.create_task(server.serve([listening]))
    try:
        yield listening.getsockname()[:2]
    finally:
        server.should_exit = True
        await serving


def _listening(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise UsageError(f"health.address cannot be {address!r}. Write host:port, as in 127.0.0.1:8080.")
    host = host.strip("[]") or LOOPBACK
    opened = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, int(port)))
    except OSError as error:
        opened.close()
        raise UsageError(
            f"{address} cannot be listened on: {error}. Set OPENMOD_HEALTH_ADDRESS to another address."
        ) from error
    return opened


class _Server(uvicorn.Server):
    """uvicorn that leaves signals to the service."""

    def __init__(self, app: Starlette) -> None:
        super().__init__(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none"))

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
