"""Health over HTTP, in the service's own event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keywright.errors import EngineError
from keywright_openmod.service.jobs import JobHealth
from keywright_service.addresses import host_and_port, listening
from keywright_service.http import json_response, serving

__all__ = ["Health", "serving_health"]


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
            return json_response({"ok": False, "trouble": str(error)}, 503)
        return json_response(found, 200 if found.ok else 503)

    app = Starlette(routes=[Route("/health", answer)])
    host, port = host_and_port("health.address", address)
    with listening(host, port, remedy="Set OPENMOD_HEALTH_ADDRESS to another address.") as bound:
        async with serving(app, bound):
            yield bound.getsockname()[:2]
