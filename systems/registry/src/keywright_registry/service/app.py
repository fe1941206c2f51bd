"""The service over HTTP: receives notifications, returns repositories and counts, reports its health."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keywright import AsyncDatabase, Secret
from keywright.errors import KeywrightError
from keywright.tools.http import Gate, SharedToken, body_of
from keywright_registry.repository import Counts, Repository
from keywright_registry.service.access import require_token
from keywright_registry.service.metrics import RegistryMetrics
from keywright_registry.service.notifications import (
    MEDIA_TYPES,
    EventOutcome,
    MalformedError,
    count_all,
    parse,
)
from keywright_service.health import Health, health_route
from keywright_service.http import json_response, refuse
from keywright_service.metrics import metrics_route

__all__ = ["LARGEST_BODY", "registry_app"]

LARGEST_BODY = 1 << 20

Endpoint = Callable[[Request], Awaitable[Response]]


class Accepted(msgspec.Struct, frozen=True):
    """The number of events of a notification by their outcome."""

    counted: int
    repeated: int
    ignored: int


def registry_app(
    redis: AsyncDatabase,
    *,
    find: Callable[[str], Awaitable[Repository | None]],
    totals: Callable[[str], Awaitable[Counts]],
    check: Callable[[], Awaitable[None]],
    metrics: RegistryMetrics,
    token: Secret[str] | None = None,
    hosts: AbstractSet[str] | None = None,
    largest_body: int = LARGEST_BODY,
) -> Starlette:
    """Return the application. `find` looks a repository up, `totals` its counts; `check` raises if unhealthy.

    With a token everything but `/health` and `/metrics` requires it. `hosts` are those that requests may be
    addressed to; None is any. An envelope is answered with 200 once all of its events are counted, else the
    registry sends it again: 400 malformed, 401, 413, 415, 429, 503.
    """
    shared = None if token is None else SharedToken(token)

    async def notified(request: Request) -> Response:
        if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() not in MEDIA_TYPES:
            raise HTTPException(415, f"send {' or '.join(sorted(MEDIA_TYPES))}")
        body = await body_of(request, largest_body)
        try:
            events = parse(body)
        except MalformedError as error:
            raise HTTPException(400, str(error)) from error
        results = await redis.run(count_all(events))
        metrics.counted(results)
        outcomes = [result.outcome for result in results]
        return json_response(Accepted(*(outcomes.count(each) for each in EventOutcome)))

    async def repository(request: Request) -> Response:
        path = request.path_params["path"]
        found = await find(path)
        if found is None:
            raise HTTPException(404, f"the repository {path!r} does not exist")
        return json_response(found)

    async def counts(request: Request) -> Response:
        return json_response(await totals(request.path_params["path"]))

    async def report() -> Health:
        await check()
        return Health(ok=True)

    def guarded(endpoint: Endpoint) -> Endpoint:
        async def allowed(request: Request) -> Response:
            if shared is not None:
                await require_token(shared, request.headers)
            return await endpoint(request)

        return allowed

    async def refused(request: Request, error: Exception) -> Response:
        response = await refuse(request, error)
        if request.url.path == "/notifications":
            metrics.refused(response.status_code)
            # Else the server would read the rest of the body, of any length, to discard it.
            response.headers["Connection"] = "close"
        return response

    return Starlette(
        routes=[
            Route("/notifications", guarded(notified), methods=["POST"]),
            Route("/repositories/{path:path}", guarded(repository)),
            Route("/counts/{path:path}", guarded(counts)),
            health_route(report),
            metrics_route(metrics),
        ],
        middleware=[Middleware(Gate, hosts=hosts)],
        exception_handlers={HTTPException: refused, KeywrightError: refused},
    )
