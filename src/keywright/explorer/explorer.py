"""The state that all requests of one explorer share: database, declaration and background tasks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from keywright.engine import AsyncDatabase
from keywright.explorer.access import Access
from keywright.explorer.atlas import query_of
from keywright.explorer.audits import Auditing
from keywright.explorer.backlinks import Backlinks
from keywright.explorer.edits import Edits
from keywright.explorer.guided_tour import GuidedTour
from keywright.explorer.json_pages import json_page, prefers_json
from keywright.explorer.load_history import LoadHistory
from keywright.explorer.neighbours import Neighbours
from keywright.explorer.notifications import Watcher
from keywright.explorer.page_templates import environment
from keywright.explorer.precedence import Requests
from keywright.explorer.relation_forms import Roles
from keywright.explorer.repairs import Repairs
from keywright.explorer.schema import SchemaBook
from keywright.explorer.settings import ExplorerSettings
from keywright.explorer.sides import Side
from keywright.keyspace import Keyspace
from keywright.tools.http import body_of
from keywright.tools.model import Model

__all__ = ["Explorer", "Here", "choose_database", "explorer_of", "form_of", "own_form", "page"]

LARGEST_FORM = 16 * 1024
CHOSEN = "keywright-database"
log = logging.getLogger("keywright.explorer")


class Explorer:
    """One explorer of one database. Those of several databases of a server share their access rules."""

    def __init__(
        self,
        db: AsyncDatabase,
        shown: Sequence[Keyspace | Model],
        settings: ExplorerSettings,
        access: Access | None = None,
        *,
        declaration: str | None = None,
        beside: Sequence[AsyncDatabase] = (),
        requests: Requests | None = None,
    ) -> None:
        settings.check()
        requests = requests or Requests()
        self.declaration = declaration
        """The module of an inferred model; None if the model was named."""
        self.db = db
        self.models = tuple(each if isinstance(each, Model) else Model(each.name, (each,)) for each in shown)
        spaces = list(dict.fromkeys(space for model in self.models for space in model.spaces))
        spaces.sort(key=lambda space: space.replaced_by is not None)  # names belong to the present one
        self.settings = settings
        self.access = access or Access(settings)
        self.own_side = Side(db, spaces, settings)
        self.atlas, self.surveyor = self.own_side.atlas, self.own_side.surveyor
        self.neighbours = Neighbours(self.atlas)
        self.backlinks = Backlinks(db, self.atlas)
        self.beside = [Side(other, spaces, settings) for other in beside]
        self.watcher = Watcher(db, self.atlas)
        self.load = LoadHistory(db, self.atlas)
        self.surveyor.on_complete = self.load.record
        self.auditing = Auditing(db, self.atlas.spaces, requests, writable=settings.write, undo=settings.undo)
        self.repairs = Repairs(
            db, self.atlas.spaces, requests, writable=settings.write, undo_file=self.auditing.undo
        )
        self.roles = Roles(self.atlas.spaces)
        self.edits = Edits(
            db,
            self.atlas.spaces,
            self.atlas.matcher.key,
            writable=settings.write,
            undo_file=self.auditing.undo,
        )
        self.schema = SchemaBook(self.atlas, self.auditing)
        tour = settings.tour
        self.tour = GuidedTour(db, tour, self.atlas) if tour is not None and tour.space in spaces else None
        self.templates = environment()

    @asynccontextmanager
    async def background(self) -> AsyncIterator[None]:
        """Run the survey and the notification listener while this context is open."""
        running = [side.surveyor.run() for side in (self.own_side, *self.beside)]
        tasks = [asyncio.create_task(each) for each in (*running, self.watcher.run())]
        for task in tasks:
            task.add_done_callback(_report)
        try:
            yield
        finally:
            await self.auditing.stop()
            await self.repairs.stop()
            if self.tour is not None:
                await self.tour.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _report(task: asyncio.Task[None]) -> None:
    """Log the error that ended a background task: none of them should end."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s failed; the explorer continues without it", task.get_coro(), exc_info=error)


def explorer_of(request: Request) -> Explorer:
    """Return the explorer of the database that the browser chose, else of the first."""
    explorers: dict[str, Explorer] = request.app.state.explorers
    chosen = request.cookies.get(CHOSEN, "")
    return explorers.get(chosen) or next(iter(explorers.values()))


async def choose_database(request: Request) -> Response:
    """Remember the database that the pages of this browser show."""
    number = request.path_params["number"]
    if number not in request.app.state.explorers:
        raise HTTPException(404, "The explorer does not have this database.")
    answer = RedirectResponse("/", 303)
    answer.set_cookie(CHOSEN, number, httponly=True, samesite="strict")
    return answer


class Here(NamedTuple):
    """The template that a page is about, which the list of templates marks."""

    space: str
    name: str


NOWHERE = Here("", "")


def page(
    request: Request,
    template: str,
    document: Mapping[str, Any] | None = None,
    *,
    status: int = 200,
    here: Here = NOWHERE,
    **values: Any,
) -> Response:
    """Render a page, or part of one; for a request that prefers JSON, encode its document."""
    if document is not None and prefers_json(request.headers.get("accept", "")):
        return json_page(document, status)
    explorer = explorer_of(request)
    session = request.scope["state"]["session"]
    html = explorer.templates.get_template(template).render(
        explorer=explorer,
        survey=explorer.surveyor.latest,
        server=explorer.db.address.shown,
        database=str(explorer.db.context.database),
        databases=list(request.app.state.explorers) if len(request.app.state.explorers) > 1 else [],
        path=request.url.path,
        writable=explorer.settings.write,
        form_mark=explorer.access.form_mark(session),
        public=not request.scope["state"]["admitted"],
        may_sign_out=explorer.access.needs_token and session.signed_in,
        here=here,
        **values,
    )
    return HTMLResponse(html, status, headers={"Vary": "Accept"})


async def form_of(request: Request, most: int = LARGEST_FORM) -> dict[str, str]:
    """Return the fields of a form. Respond with 413 if it is larger than `most` bytes."""
    body = await body_of(request, most)
    return {name: value.decode("utf-8", "replace") for name, value in query_of(body).items()}


async def own_form(request: Request, most: int = LARGEST_FORM) -> dict[str, str]:
    """Return the fields of a form. Respond with 403 unless a page of this session sent it."""
    form = await form_of(request, most)
    session, mark = request.scope["state"]["session"], form.get("mark", "")
    if not explorer_of(request).access.form_is_ours(session, mark, request.headers):
        raise HTTPException(403, "The form was not sent by a page of this explorer. Reload the page.")
    return form
