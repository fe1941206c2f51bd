"""The public log over HTTP: pages for people, JSON for programs, an Atom feed for readers of news.

Everything is read from the index when it is asked for, and no answer may be stored, so nothing deleted is
shown again.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from keywright import AsyncDatabase, Call
from keywright.errors import KeywrightError, UsageError, VariableError
from keywright.tools.http import Gate, host_of
from keywright_openmod.public_log import LogPage, read_action, read_log
from keywright_openmod.renderer import without_invisible
from keywright_openmod.service.log_answers import LABELS, LONGEST_TEXT, ActionList, ShownAction, shown
from keywright_openmod.service.log_filters import FILTERS, address_of, query_of, refuse_unknown
from keywright_openmod.settings import OpenModSettings
from keywright_service.http import json_response, refuse

__all__ = ["LogPages"]

T = TypeVar("T")

log = logging.getLogger("keywright.openmod")

HERE = Path(__file__).parent
LONGEST_SECONDS = 2.0
RETRY_SECONDS = "5"
FEED_TYPE = "application/atom+xml"

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "
        "frame-ancestors 'none'; form-action 'self'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    # A search engine would show a copy after a deletion.
    "X-Robots-Tag": "noindex, nofollow, noarchive",
}
PROBLEMS = {
    400: ("This search is not possible", ""),
    404: (
        "This entry does not exist",
        "Perhaps its owner deleted the submission or the account, or a part of the address is missing.",
    ),
    503: ("The log cannot be read now", "Try again in a minute."),
}
_is_post = re.compile(r"t3_[0-9a-z]{1,32}").fullmatch


class LogPages:
    """Makes the ASGI application. `public_url` is its origin as visitors see it, for links in the feed."""

    def __init__(
        self,
        db: AsyncDatabase,
        *,
        subreddit: str,
        settings: OpenModSettings | None = None,
        public_url: str | None = None,
    ) -> None:
        self._db = db
        self._settings = settings
        self._public_url = public_url
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals.update(
            site=subreddit,
            labels=[(action.value, label) for action, (label, _) in LABELS.items()],
            search=lambda name, value: f"/?{urlencode({name: value})}",
        )

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", self._list),
                Route("/entry/{post}", self._entry),
                Route("/feed.atom", self._feed),
                Route("/api/actions", self._api_list),
                Route("/api/actions/{post}", self._api_entry),
                Mount("/static", StaticFiles(directory=HERE / "static")),
            ],
            middleware=[Middleware(Gate)],
            exception_handlers={HTTPException: self._refused, KeywrightError: self._failed},
        )

    async def _list(self, request: Request) -> Response:
        parameters = request.query_params
        found = await self._read(parameters)
        given = {name: without_invisible(parameters.get(name, "")).strip() for name in FILTERS}
        return self._page(
            "log_list.html",
            given=given,
            active=[(name, value, _without(parameters, name)) for name, value in given.items() if value],
            days=_by_day(found),
            next=None if found.next is None else address_of("/", parameters, found.next),
            newest=address_of("/", parameters) if parameters.get("before") else None,
            feed=address_of("/feed.atom", parameters),
            json=address_of("/api/actions", parameters),
        )

    async def _entry(self, request: Request) -> Response:
        return self._page("log_entry.html", action=await self._one(request))

    async def _feed(self, request: Request) -> Response:
        """Neither users nor content are in the feed: its readers keep copies."""
        found = await self._read(request.query_params)
        host = request.headers.get("Host", "")
        if self._public_url is None and host_of(host) is None:
            raise HTTPException(400)
        text = self._templates.get_template("log_feed.xml").render(
            origin=self._public_url or f"{request.scope['scheme']}://{host}",
            query=address_of("", request.query_params),
            actions=[shown(each) for each in found.actions],
            updated=max((each.entry.at for each in found.actions), default=datetime.now(UTC)),
        )
        return Response(text, 200, HEADERS, media_type=FEED_TYPE)

    async def _api_list(self, request: Request) -> Response:
        refuse_unknown(request.query_params)
        found = await self._read(request.query_params)
        following = (
            None if found.next is None else address_of("/api/actions", request.query_params, found.next)
        )
        return json_response(ActionList([shown(each) for each in found.actions], following), headers=HEADERS)

    async def _api_entry(self, request: Request) -> Response:
        return json_response(await self._one(request), headers=HEADERS)

    async def _read(self, parameters: QueryParams) -> LogPage:
        return await self._run(read_log(query_of(parameters), self._settings))

    async def _run(self, call: Call[T]) -> T:
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                return await self._db.run(call)
        except TimeoutError as error:
            log.warning("the public log cannot be read: no answer within %g s", LONGEST_SECONDS)
            raise HTTPException(503, "the log cannot be read now; try again later") from error

    async def _one(self, request: Request) -> ShownAction:
        post = request.path_params["post"]
        try:
            found = await self._run(read_action(post, self._settings)) if _is_post(post) else None
        except VariableError:
            found = None
        if found is None:
            raise HTTPException(404, "this entry does not exist")
        return shown(found, LONGEST_TEXT)

    async def _refused(self, request: Request, error: Exception) -> Response:
        if _is_for_programs(request):
            return _with_headers(await refuse(request, error))
        status = error.status_code if isinstance(error, HTTPException) else 500
        return self._problem(status)

    async def _failed(self, request: Request, error: Exception) -> Response:
        if _is_for_programs(request):
            return _with_headers(await refuse(request, error))
        if isinstance(error, UsageError):
            return self._problem(400, str(error))
        log.warning("the public log cannot be read: %s", error)
        return self._problem(503)

    def _problem(self, status: int, reason: str = "") -> Response:
        title, hint = PROBLEMS.get(status, ("This is not possible", ""))
        response = self._page("log_problem.html", status, title=title, reason=reason or hint)
        if status == 503:
            response.headers["Retry-After"] = RETRY_SECONDS
        return response

    def _page(self, template: str, status: int = 200, **given: Any) -> Response:
        text = self._templates.get_template(template).render(**given)
        return Response(text, status, HEADERS, media_type="text/html")


def _by_day(page: LogPage) -> Iterator[tuple[datetime, list[ShownAction]]]:
    for _, actions in groupby(page.actions, key=lambda each: each.entry.at.date()):
        of_the_day = [shown(each) for each in actions]
        yield of_the_day[0].at, of_the_day


def _without(parameters: QueryParams, name: str) -> str:
    """Return the address of the list without one of its filters."""
    return address_of(
        "/", {key: value for key, value in parameters.items() if key in FILTERS and key != name}
    )


def _is_for_programs(request: Request) -> bool:
    # Not by request.url, which includes the Host header, whatever it has.
    return str(request.scope["path"]).startswith("/api/")


def _with_headers(response: Response) -> Response:
    response.headers.update(HEADERS)
    return response
