"""The service over HTTP: receives notifications, returns repositories and counts, reports its health."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from collections.abc import Set as AbstractSet
from time import monotonic
from typing import Protocol

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
from keywright_service.http import json_response, refuse

__all__ = ["RepositoryQueries", "registry_app"]

log = logging.getLogger("keywright.registry")

LARGEST_PAGE = 1000
REFUSALS_SECONDS = 10.0

Endpoint = Callable[[Request], Awaitable[Response]]


class Accepted(msgspec.Struct, frozen=True):
    """The number of events of a notification by their outcome."""

    counted: int
    repeated: int
    ignored: int


class Page(msgspec.Struct, frozen=True):
    """Repositories in the order of their paths; `next` is the `after` of the next page."""

    repositories: list[Repository]
    next: str | None


class RepositoryQueries(Protocol):
    """What the service knows of repositories."""

    async def find(self, path: str) -> Repository | None: ...

    async def totals(self, path: str) -> Counts: ...

    async def page(self, after: str, limit: int) -> list[Repository] | None:
        """Return the repositories after a path, in order; None if they cannot be listed."""
        ...


class RefusalLog:
    """Logs the first refusal, and then at most one line in ten seconds, with the number since the last."""

    def __init__(self) -> None:
        self._quiet_until = 0.0
        self._unlogged = 0

    def note(self, request: Request, status: int, reason: str) -> None:
        if monotonic() < self._quiet_until:
            self._unlogged += 1
            return
        sender = request.client.host if request.client else "an unknown address"
        more = f", and {self._unlogged} more before" if self._unlogged else ""
        log.warning("refused a notification of %s with %d: %s%s", sender, status, reason, more)
        self._quiet_until, self._unlogged = monotonic() + REFUSALS_SECONDS, 0


def registry_app(
    redis: AsyncDatabase,
    queries: RepositoryQueries,
    *,
    metrics: RegistryMetrics,
    monitoring: Iterable[Route],
    largest_body: int,
    token: Secret[str] | None = None,
    hosts: AbstractSet[str] | None = None,
) -> Starlette:
    """Return the application.

    With a token everything but the routes of `monitoring` requires it. `hosts` are those that requests may be
    addressed to; None is any. An envelope is answered with 200 once all of its events are counted, else the
    registry sends it again: 400 malformed, 401, 413, 415, 429, 503.
    """
    refusals = RefusalLog()
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
        found = await queries.find(path)
        if found is None:
            raise HTTPException(404, f"the repository {path!r} does not exist")
        return json_response(found)

    async def repositories(request: Request) -> Response:
        limit = request.query_params.get("n", str(LARGEST_PAGE))
        if not limit.isascii() or not limit.isdecimal() or not 0 < int(limit[:9]) <= LARGEST_PAGE:
            raise HTTPException(400, f"n is a number from 1 to {LARGEST_PAGE}")
        found = await queries.page(request.query_params.get("after", ""), int(limit))
        if found is None:
            raise HTTPException(404, "repositories are listed from the database, and none is configured")
        return json_response(Page(found, found[-1].path if len(found) == int(limit) else None))

    async def counts(request: Request) -> Response:
        return json_response(await queries.totals(request.path_params["path"]))

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
            reason = error.detail if isinstance(error, HTTPException) else type(error).__name__
            refusals.note(request, response.status_code, reason)
            # Else the server would read the rest of the body, of any length, to discard it.
            response.headers["Connection"] = "close"
        return response

    return Starlette(
        routes=[
            Route("/notifications", guarded(notified), methods=["POST"]),
            Route("/repositories", guarded(repositories)),
            Route("/repositories/{path:path}", guarded(repository)),
            Route("/counts/{path:path}", guarded(counts)),
            *monitoring,
        ],
        middleware=[Middleware(Gate, hosts=hosts)],
        exception_handlers={HTTPException: refused, KeywrightError: refused},
    )
