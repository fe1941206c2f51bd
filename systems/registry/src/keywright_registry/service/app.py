"""The service over HTTP: receives notifications, returns repositories and counts, reports its health."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from keywright import AsyncDatabase, Secret
from keywright.errors import KeywrightError
from keywright_registry.repository import Counts, Repository
from keywright_registry.service.access import CHALLENGE, is_allowed
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
BODY_SECONDS = 30.0

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
    largest_body: int = LARGEST_BODY,
) -> Starlette:
    """Return the application. `find` looks a repository up, `totals` its counts; `check` raises if unhealthy.

    With a token everything but `/health` and `/metrics` requires it. An envelope is answered with 200 once
    all of its events are counted, else the registry sends it again: 400 malformed, 401, 413, 415, 503.
    """

    async def notified(request: Request) -> Response:
        if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() not in MEDIA_TYPES:
            raise HTTPException(415, f"send {' or '.join(sorted(MEDIA_TYPES))}")
        body = await _body(request, largest_body)
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
            if not is_allowed(token, request.headers.get("Authorization", "")):
                headers = {"WWW-Authenticate": CHALLENGE}
                raise HTTPException(401, "give the token, as bearer or as basic password", headers)
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
        exception_handlers={HTTPException: refused, KeywrightError: refused},
    )


async def _body(request: Request, most: int) -> bytes:
    """Return the whole body. Raise HTTPException if it is too large, late or incomplete."""
    declared = request.headers.get("Content-Length", "")
    if declared.isdigit() and int(declared) > most:
        raise HTTPException(413, f"a notification has at most {most} bytes")
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise HTTPException(413, f"a notification has at most {most} bytes")
    except TimeoutError as error:
        raise HTTPException(408, f"the body did not come within {BODY_SECONDS:g} s") from error
    except ClientDisconnect as error:
        raise HTTPException(400, "the body ended early") from error
    return bytes(body)
