"""The state that all requests of one explorer share: database, declaration and background tasks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from keywright.engine import AsyncDatabase
from keywright.explorer.access import Access
from keywright.explorer.atlas import Atlas, query_of
from keywright.explorer.audits import Auditing
from keywright.explorer.neighbours import Neighbours
from keywright.explorer.notifications import Watcher
from keywright.explorer.page_templates import environment
from keywright.explorer.settings import ExplorerSettings
from keywright.explorer.survey import Surveyor
from keywright.keyspace import Keyspace
from keywright.tools.http import body_of

__all__ = ["Explorer", "explorer_of", "form_of", "own_form", "page"]

LARGEST_FORM = 16 * 1024
log = logging.getLogger("keywright.explorer")


class Explorer:
    """One explorer of one database."""

    def __init__(self, db: AsyncDatabase, spaces: Sequence[Keyspace], settings: ExplorerSettings) -> None:
        settings.check()
        self.db = db
        self.settings = settings
        self.access = Access(settings)
        self.atlas = Atlas(spaces, db.context)
        self.neighbours = Neighbours(self.atlas)
        self.surveyor = Surveyor(db, self.atlas, settings)
        self.watcher = Watcher(db, self.atlas)
        self.auditing = Auditing(db, self.atlas.spaces, writable=settings.write, undo=settings.undo)
        self.templates = environment()

    @asynccontextmanager
    async def background(self) -> AsyncIterator[None]:
        """Run the survey and the notification listener while this context is open."""
        tasks = [asyncio.create_task(self.surveyor.run()), asyncio.create_task(self.watcher.run())]
        for task in tasks:
            task.add_done_callback(_report)
        try:
            yield
        finally:
            await self.auditing.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _report(task: asyncio.Task[None]) -> None:
    """Log the error that ended a background task: none of them should end."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s failed; the explorer continues without it", task.get_coro(), exc_info=error)


def explorer_of(request: Request) -> Explorer:
    found: Explorer = request.app.state.explorer
    return found


def page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """Render a page, or part of one."""
    explorer = explorer_of(request)
    session = request.scope["state"]["session"]
    html = explorer.templates.get_template(template).render(
        explorer=explorer,
        survey=explorer.surveyor.latest,
        server=explorer.db.address.shown,
        path=request.url.path,
        writable=explorer.settings.write,
        form_mark=explorer.access.form_mark(session),
        public=not request.scope["state"]["admitted"],
        may_sign_out=explorer.access.needs_token and session.signed_in,
        **values,
    )
    return HTMLResponse(html, status)


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form. Respond with 413 if it is larger than any form of the explorer."""
    body = await body_of(request, LARGEST_FORM)
    return {name: value.decode("utf-8", "replace") for name, value in query_of(body).items()}


async def own_form(request: Request) -> dict[str, str]:
    """Return the fields of a form. Respond with 403 unless a page of this session sent it."""
    form = await form_of(request)
    session, mark = request.scope["state"]["session"], form.get("mark", "")
    if not explorer_of(request).access.form_is_ours(session, mark, request.headers):
        raise HTTPException(403, "The form was not sent by a page of this explorer. Reload the page.")
    return form
