"""The explorer as an ASGI application: routes, background tasks and error pages."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
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
from keywright.explorer.access import HEADERS, Access, Guard
from keywright.explorer.explorer import Explorer, choose_database, page
from keywright.explorer.pages.audit import audit, audit_cancel, audit_live, audit_start, finding, repair
from keywright.explorer.pages.backlinks import backlinks
from keywright.explorer.pages.changes import changes, changes_live
from keywright.explorer.pages.comparison import comparison, key_comparison
from keywright.explorer.pages.declaration import saved_declaration
from keywright.explorer.pages.edit import (
    edit,
    edit_apply,
    edit_form,
    edit_plan,
    edit_undo,
    new_form,
    new_plan,
)
from keywright.explorer.pages.key import key, key_raw, key_ttl
from keywright.explorer.pages.login import login, sign_in, sign_out
from keywright.explorer.pages.operations import operations
from keywright.explorer.pages.overview import overview, overview_live, survey_now
from keywright.explorer.pages.repair import (
    repair_apply,
    repair_begin,
    repair_cancel,
    repair_job,
    repair_live,
    repair_undo,
)
from keywright.explorer.pages.schema import schema
from keywright.explorer.pages.search import search
from keywright.explorer.pages.start import start
from keywright.explorer.pages.template import template
from keywright.explorer.pages.tour import tour, tour_audit, tour_break, tour_live, tour_refill
from keywright.explorer.precedence import CountedRequests, Requests
from keywright.explorer.settings import ExplorerSettings
from keywright.keyspace import Keyspace
from keywright.tools.model import Model

__all__ = ["create_app", "create_server_app"]

STATIC = Path(__file__).parent / "static"


def create_app(
    db: AsyncDatabase,
    shown: Sequence[Keyspace | Model],
    settings: ExplorerSettings | None = None,
    *,
    declaration: str | None = None,
    beside: Sequence[AsyncDatabase] = (),
) -> Starlette:
    """Return an explorer of an open database, for these keyspaces or models as the database binds them.

    `beside` are open databases to compare with, which bind the same keyspaces.

    It surveys in the background during its lifespan; the caller closes the databases. It only reads, unless
    `settings.write` allows edits and repairs. Without a token it answers requests of this machine only. Raise
    UsageError if the settings would give access to anybody. `declaration` is the module of an inferred model,
    which visitors may download.
    """
    return create_server_app([(db, shown)], settings, declaration=declaration, beside=beside)


def create_server_app(
    databases: Sequence[tuple[AsyncDatabase, Sequence[Keyspace | Model]]],
    settings: ExplorerSettings | None = None,
    *,
    declaration: str | None = None,
    beside: Sequence[AsyncDatabase] = (),
) -> Starlette:
    """Return an explorer of several databases of one server. Pages show one of them."""
    settings = settings or ExplorerSettings()
    settings.check()
    access, requests = Access(settings), Requests()
    explorers = {}
    for db, shown in databases:
        number = str(db.context.database)
        own = settings if len(databases) == 1 else settings.of_database(number)
        explorers[number] = Explorer(
            db, shown, own, access, declaration=declaration, beside=beside, requests=requests
        )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            for explorer in explorers.values():
                await running.enter_async_context(explorer.background())
            yield

    app = Starlette(
        routes=ROUTES,
        middleware=[Middleware(Guard, access=access), Middleware(CountedRequests, requests=requests)],
        exception_handlers={HTTPException: _refused, KeywrightError: _failed, Exception: _broken},
        lifespan=lifespan,
    )
    app.state.explorers = explorers
    app.state.explorer = next(iter(explorers.values()))
    return app


ROUTES = [
    Route("/", start),
    Route("/map", overview),
    Route("/map/live", overview_live),
    Route("/survey", survey_now, methods=["POST"]),
    Route("/declaration.py", saved_declaration),
    Route("/schema", schema),
    Route("/schema/{space:path}", schema),
    Route("/template/{space}/{name}", template),
    Route("/template/{space}/{name}/new", new_form),
    Route("/template/{space}/{name}/new", new_plan, methods=["POST"]),
    Route("/key", key),
    Route("/key/backlinks", backlinks),
    Route("/key/edit", edit_form),
    Route("/key/edit", edit_plan, methods=["POST"]),
    Route("/edit/{number:int}", edit),
    Route("/edit/{number:int}/apply", edit_apply, methods=["POST"]),
    Route("/edit/{number:int}/undo", edit_undo, methods=["POST"]),
    Route("/key/raw", key_raw),
    Route("/key/ttl", key_ttl),
    Route("/search", search),
    Route("/audit", audit),
    Route("/audit/live", audit_live),
    Route("/audit", audit_start, methods=["POST"]),
    Route("/audit/cancel", audit_cancel, methods=["POST"]),
    Route("/audit/{finding}", finding),
    Route("/audit/{finding}/repair", repair, methods=["POST"]),
    Route("/database/{number}", choose_database),
    Route("/repair", repair_begin, methods=["POST"]),
    Route("/repair/{number:int}", repair_job),
    Route("/repair/{number:int}/live", repair_live),
    Route("/repair/{number:int}/apply", repair_apply, methods=["POST"]),
    Route("/repair/{number:int}/cancel", repair_cancel, methods=["POST"]),
    Route("/repair/{number:int}/undo", repair_undo, methods=["POST"]),
    Route("/tour", tour),
    Route("/tour/live", tour_live),
    Route("/tour/break", tour_break, methods=["POST"]),
    Route("/tour/audit", tour_audit, methods=["POST"]),
    Route("/tour/refill", tour_refill, methods=["POST"]),
    Route("/changes", changes),
    Route("/changes/live", changes_live),
    Route("/operations", operations),
    Route("/compare", comparison),
    Route("/compare/key", key_comparison),
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
        409: "Changed meanwhile",
        413: "Request too large",
        429: "Too many attempts",
    }
    reasons = {404: "There is no such page.", 405: "This page does not support that method."}
    starlettes_own = error.detail == HTTPStatus(error.status_code).phrase
    reason = reasons.get(error.status_code, error.detail) if starlettes_own else error.detail
    return _error_page(
        request, error.status_code, titles.get(error.status_code, "Something is wrong"), reason
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
    return _error_page(request, status, title, _without_details(str(error)), again=status == 503)


def _without_details(reason: str) -> str:
    """Return the reason of an outage without what the client repeats: an error number, and the address."""
    brief = re.sub(r"Error -?\d+ connecting to \S+\. ", "", reason)
    return re.sub(r"Connect call failed \([^)]*\)", "Connection refused", brief)


async def _broken(request: Request, error: Exception) -> Response:
    """Return the page of an unexpected error. It bypasses the guard; Starlette raises the error again."""
    reason = "Unexpected error. The log of the explorer has the details; please report it."
    answer = _error_page(request, 500, "Something is wrong", reason)
    answer.headers.update(HEADERS)
    return answer


def _error_page(request: Request, status: int, title: str, reason: str, *, again: bool = False) -> Response:
    document = {"error": {"status": status, "title": title, "reason": reason}}
    return page(request, "error.html", document, status=status, title=title, reason=reason, again=again)
