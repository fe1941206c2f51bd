"""The linking pages: a person comes with a link from Discord and consents at Meetup; then both are linked.

Opening a page uses nothing up, so link previews do no harm. The outcome is shown on its own page, which
may be reloaded. After anything that fails later than the consent there is a new link to try again with.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from keywright import AsyncDatabase
from keywright.errors import KeywrightError, TakenError, VariableError
from keywright_meetup import account_links
from keywright_meetup.schema import CSRF_EXPIRY, DiscordId, Tokens
from keywright_meetup.service.meetup_api import MeetupApi
from keywright_meetup.service.oauth import Flow, Granted, OAuthClient
from keywright_meetup.service.outcomes import NOTICES, OUTCOMES, PROBLEMS
from keywright_service.errors import PlatformError

__all__ = ["REDIRECT_PATH", "LinkingPages", "link_to"]

log = logging.getLogger("keywright.meetup")

REDIRECT_PATH = "/link/redirect"
COOKIE = "csrf_user_id"
LARGEST_FORM = 4096
NAME_SECONDS = 2.0
HERE = Path(__file__).parent

NameOf = Callable[[DiscordId], Awaitable[str | None]]


def link_to(public_url: str, linking_id: str) -> str:
    """Return the address that a person opens to link their accounts."""
    return f"{public_url.rstrip('/')}/link/{linking_id}"


class LinkingPages:
    """Makes the ASGI application. `name_of` returns a Discord user's name, where that is known."""

    def __init__(
        self,
        db: AsyncDatabase,
        oauth: OAuthClient,
        meetup: MeetupApi,
        *,
        public_url: str,
        name_of: NameOf,
        community: str = "our community",
    ) -> None:
        self._db = db
        self._oauth = oauth
        self._meetup = meetup
        self._secure = public_url.startswith("https:")
        # Browsers keep such a cookie from other hosts of the domain, but only over https.
        self._cookie = f"__Host-{COOKIE}" if self._secure else COOKIE
        self._name_of = name_of
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined
        )
        self._templates.globals.update(community=community, offer_rsvp=oauth.provider.offer_rsvp)

    def application(self, *routes: Route) -> Starlette:
        """Return the application with the pages, and other routes beside them."""
        return Starlette(
            routes=[
                Route(REDIRECT_PATH, self._returned),
                Route("/link/outcome/{outcome}", self._outcome),
                Route("/link/{linking}", self._start),
                Route("/link/{linking}", self._leave, methods=["POST"]),
                Mount("/static", StaticFiles(directory=HERE / "static")),
                *routes,
            ],
            exception_handlers={HTTPException: self._refused, KeywrightError: self._failed},
        )

    async def _start(self, request: Request) -> Response:
        """Show the page of a link, with a notice if an earlier attempt did not succeed."""
        linking_id = request.path_params["linking"]
        user = await self._user_of(linking_id)
        if user is None:
            return self._expired()
        notice = NOTICES.get(request.query_params.get("after", ""))
        return self._page("link.html", name=await self._named(user), notice=notice, linking=linking_id)

    async def _leave(self, request: Request) -> Response:
        """Redirect to Meetup, with a cookie that ties the answer to this browser."""
        linking_id = request.path_params["linking"]
        if await self._user_of(linking_id) is None:
            return self._expired()
        wanted = (await _form(request)).get("scope", [])
        flow = Flow.new(linking_id, rsvp=self._oauth.provider.offer_rsvp and "rsvp" in wanted)
        cookie = await self._db.run(account_links.new_csrf(flow.state))
        response = self._redirect(self._oauth.authorization(flow))
        response.set_cookie(
            self._cookie,
            cookie,
            max_age=(CSRF_EXPIRY.ttl_ms or 0) // 1000,
            httponly=True,
            samesite="lax",
            secure=self._secure,
        )
        return response

    async def _returned(self, request: Request) -> Response:
        """Handle the return from Meetup."""
        state = request.query_params.get("state", "")
        flow, cookie = Flow.of(state), request.cookies.get(self._cookie, "")
        if flow is None or not await self._is_ours(cookie, flow):
            log.info("a return from Meetup without its cookie, or for the second time")
            return self._problem("stray", 400)
        user = await self._taken(flow.linking)
        if user is None:
            return self._expired()
        response = self._redirect(await self._concluded(request, flow, user))
        response.delete_cookie(self._cookie, httponly=True, samesite="lax", secure=self._secure)
        return response

    async def _concluded(self, request: Request, flow: Flow, user: DiscordId) -> str:
        """Act on the person's answer. Return the address of the page with the outcome."""
        code = request.query_params.get("code")
        if code is None:
            refused = request.query_params.get("error") == "access_denied"
            return await self._again(user, "denied" if refused else "failed")
        try:
            granted = await self._oauth.exchange(flow, code)
            member = await self._meetup.self_id(granted.access_token)
        except PlatformError as error:
            log.warning("linking Discord user %d: %s", user, error)
            return await self._again(user, "failed")
        return await self._linked(member, user, _tokens(flow, granted))

    async def _linked(self, member: int, user: DiscordId, tokens: Tokens | None) -> str:
        try:
            new = await self._db.run(account_links.link(member, user, tokens))
        except TakenError as error:
            taken = "meetup-taken" if error.holder == member and error.wanted == user else "discord-taken"
            return f"/link/outcome/{taken}"
        return f"/link/outcome/{'linked' if new else 'already'}"

    async def _again(self, user: DiscordId, after: str) -> str:
        """Return a new link for the same person, since the old one is used up."""
        try:
            fresh = await self._db.run(account_links.begin_linking(user))
        except TakenError:
            return "/link/outcome/discord-taken"
        return f"/link/{fresh}?after={after}"

    async def _outcome(self, request: Request) -> Response:
        outcome = OUTCOMES.get(request.path_params["outcome"])
        if outcome is None:
            raise HTTPException(404)
        return self._page("outcome.html", outcome.status, outcome=outcome)

    async def _user_of(self, linking_id: str) -> DiscordId | None:
        try:
            return await self._db.run(account_links.look_up_linking(linking_id))
        except VariableError:
            return None

    async def _taken(self, linking_id: str) -> DiscordId | None:
        try:
            return await self._db.run(account_links.take_linking(linking_id))
        except VariableError:
            return None

    async def _is_ours(self, cookie: str, flow: Flow) -> bool:
        try:
            return bool(cookie) and await self._db.run(account_links.redeem_csrf(cookie, flow.state))
        except VariableError:
            return False

    async def _named(self, user: DiscordId) -> str | None:
        """Return the name to show, or None: trouble with Discord must not stop anybody."""
        try:
            async with asyncio.timeout(NAME_SECONDS):
                return await self._name_of(user)
        except (PlatformError, TimeoutError) as error:
            log.warning("no name for Discord user %d: %s", user, str(error) or "no answer in time")
            return None

    def _expired(self) -> Response:
        return self._problem("expired", 410)

    def _problem(self, name: str, status: int) -> Response:
        return self._page("outcome.html", status, outcome=PROBLEMS[name])

    async def _refused(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return self._problem("unknown" if status in (404, 405) else "trouble", status)

    async def _failed(self, request: Request, error: Exception) -> Response:
        log.error("a page cannot be served: %s", error)
        return self._problem("trouble", 503)

    def _page(self, template: str, status: int = 200, **given: Any) -> Response:
        text = self._templates.get_template(template).render(**given)
        return Response(text, status, self._headers(), media_type="text/html")

    def _redirect(self, address: str) -> Response:
        return RedirectResponse(address, 303, self._headers())

    def _headers(self) -> dict[str, str]:
        # Chromium holds all redirects after a form to form-action. A provider sends those who must sign in
        # first to other hosts, which nobody here knows; and no form of ours holds anything secret.
        policy = (
            "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "
            f"frame-ancestors 'none'; form-action 'self' {self._oauth.provider.scheme}:"
        )
        headers = {
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        return headers | ({"Strict-Transport-Security": "max-age=31536000"} if self._secure else {})


async def _form(request: Request) -> dict[str, list[str]]:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_FORM:
            raise HTTPException(413)
    return parse_qs(body.decode(errors="replace"))


def _tokens(flow: Flow, granted: Granted) -> Tokens | None:
    """Return the tokens to keep: only those of people who let the bot manage RSVPs."""
    if not flow.rsvp or granted.refresh_token is None:
        return None
    return Tokens(granted.access_token, granted.refresh_token)
