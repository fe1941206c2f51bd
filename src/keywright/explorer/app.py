"""The explorer as an ASGI application: routes, background tasks and error pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from keywright.engine import AsyncDatabase
from keywright.errors import (
    ConnectionLostError,
    DeadlineError,
    KeywrightError,
    ServerRefusedError,
    UsageError,
)
from keywright.explorer.access import HEADERS, Guard
from keywright.explorer.explorer import Explorer, page
from keywright.explorer.pages.audit import audit, audit_live, audit_start, finding, repair
from keywright.explorer.pages.changes import changes, changes_live
from keywright.explorer.pages.key import key, key_raw, key_ttl
from keywright.explorer.pages.login import login, sign_in, sign_out
from keywright.explorer.pages.overview import overview, overview_live, survey_now
from keywright.explorer.pages.search import search
from keywright.explorer.pages.template import template
from keywright.explorer.settings import ExplorerSettings
from keywright.keyspace import Keyspace

__all__ = ["create_app"]

STATIC = Path(__file__).parent / "static"


def create_app(
    db: AsyncDatabase, spaces: Sequence[Keyspace], settings: ExplorerSettings | None = None
) -> Starlette:
    """Return an explorer of an open database, for these keyspaces as the database binds them.

    It surveys in the background during its lifespan; the caller closes the database. It only reads, unless
    `settings.write` allows repairs. Without a token it answers requests of this machine only. Raise
    UsageError if the settings would give access to anybody.
    """
    explorer = Explorer(db, spaces, settings or ExplorerSettings())

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with explorer.background():
            yield

    app = Starlette(
        routes=ROUTES,
        middleware=[Middleware(Guard, access=explorer.access)],
        exception_handlers={HTTPException: _refused, KeywrightError: _failed, Exception: _broken},
        lifespan=lifespan,
    )
    app.state.explorer = explorer
    return app


ROUTES = [
    Route("/", overview),
    Route("/live", overview_live),
    Route("/survey", survey_now, methods=["POST"]),
    Route("/template/{space}/{name}", template),
    Route("/key", key),
    Route("/key/raw", key_raw),
    Route("/key/ttl", key_ttl),
    Route("/search", search),
    Route("/audit", audit),
    Route("/audit/live", audit_live),
    Route("/audit", audit_start, methods=["POST"]),
    Route("/audit/{finding}", finding),
    Route("/audit/{finding}/repair", repair, methods=["POST"]),
    Route("/changes", changes),
    Route("/changes/live", changes_live),
    Route("/login", login),
    Route("/login", sign_in, methods=["POST"]),
    Route("/logout", sign_out, methods=["POST"]),
    Mount("/static", StaticFiles(directory=STATIC)),
]


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    titles = {
        400: "Invalid request",
        403: "Not allowed",
        404: "Not found",
        405: "Not allowed",
        413: "Request too large",
        429: "Too many attempts",
    }
    reasons = {404: "There is no such page.", 405: "This page does not support that method."}
    starlettes_own = error.detail == HTTPStatus(error.status_code).phrase
    return page(
        request,
        "error.html",
        status=error.status_code,
        title=titles.get(error.status_code, "Something is wrong"),
        reason=reasons.get(error.status_code, error.detail) if starlettes_own else error.detail,
        again=False,
    )


async def _failed(request: Request, error: Exception) -> Response:
    """Return the page of a KeywrightError, with its message, which ends with the remedy."""
    status, title = 500, "Something is wrong"
    if isinstance(error, ConnectionLostError | DeadlineError):
        status, title = 503, "The server does not answer"
    elif isinstance(error, ServerRefusedError):
        status, title = 403, "The server refused"
    elif isinstance(error, UsageError):
        status, title = 400, "Invalid request"
    return page(request, "error.html", status=status, title=title, reason=str(error), again=status == 503)


async def _broken(request: Request, error: Exception) -> Response:
    """Return the page of an unexpected error. It bypasses the guard; Starlette raises the error again."""
    reason = "Unexpected error. The log of the explorer has the details; please report it."
    answer = page(request, "error.html", status=500, title="Something is wrong", reason=reason, again=False)
    answer.headers.update(HEADERS)
    return answer
