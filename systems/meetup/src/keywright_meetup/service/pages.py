"""The linking pages: a person comes with a link from Discord, consents at Meetup, and confirms both accounts.

Opening a page uses nothing up, so link previews do no harm. A form counts only if a page of ours sent it, in
the browser that opened the link: else a foreign page could lead its visitors through somebody else's link.
The link, and the tokens with it, are stored once the person has seen both accounts by name and confirmed
them. The outcome is shown on its own page, which may be reloaded. After a failure at Meetup there is a new
link to try again with.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from keywright import AsyncDatabase, Secret
from keywright.errors import KeywrightError, TakenError, VariableError
from keywright.tools.http import Gate, body_of, cookie_of, is_own_form, origin_of
from keywright_meetup import account_links
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.schema import CSRF_EXPIRY, DiscordId, new_id
from keywright_meetup.service.authorization import OrganizerAuthorization
from keywright_meetup.service.forms import Consent, Forms
from keywright_meetup.service.meetup_api import MeetupApi, Member
from keywright_meetup.service.oauth import Flow, Granted, OAuthClient
from keywright_meetup.service.outcomes import NOTICES, OUTCOMES, PROBLEMS
from keywright_service.discord_rest import User
from keywright_service.errors import PlatformError

__all__ = ["REDIRECT_PATH", "LinkingPages", "link_to"]

log = logging.getLogger("keywright.meetup")

REDIRECT_PATH = "/link/redirect"
COOKIE = "csrf_user_id"
LARGEST_FORM = 16 * 1024
NAME_SECONDS = 2.0
HERE = Path(__file__).parent
_COMMAND = re.compile(r"(?<!\S)(/[a-z]+|keywright meetup [a-z]+)")

FindUser = Callable[[DiscordId], Awaitable[User | None]]


def link_to(public_url: str, linking_id: str) -> str:
    """Return the address that a person opens to link their accounts."""
    return f"{public_url.rstrip('/')}/link/{linking_id}"


class LinkingPages:
    """Makes the ASGI application. `find_user` returns a Discord user, where there is one."""

    def __init__(
        self,
        db: AsyncDatabase,
        oauth: OAuthClient,
        meetup: MeetupApi,
        *,
        public_url: str,
        find_user: FindUser,
        organizer: OrganizerAuthorization,
        community: str = "our community",
    ) -> None:
        self._db = db
        self._oauth = oauth
        self._meetup = meetup
        self._forms = Forms(oauth.provider.client_secret)
        self._origin = origin_of(public_url)
        self._secure = public_url.startswith("https:")
        # Browsers keep such a cookie from other hosts of the domain, but only over https.
        self._cookie = f"__Host-{COOKIE}" if self._secure else COOKIE
        self._find_user = find_user
        self._organizer = organizer
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined
        )
        self._templates.filters["commands"] = _with_commands
        self._templates.globals.update(community=community, offer_rsvp=oauth.provider.offer_rsvp)

    def application(self, *routes: Route) -> Starlette:
        """Return the application with the pages, and other routes beside them."""
        return Starlette(
            routes=[
                Route(REDIRECT_PATH, self._returned),
                Route("/link/outcome/{outcome}", self._outcome),
                Route("/link/{linking}", self._start),
                Route("/link/{linking}", self._leave, methods=["POST"]),
                Route("/link/{linking}/confirm", self._confirmed, methods=["POST"]),
                Mount("/static", StaticFiles(directory=HERE / "static")),
                *routes,
            ],
            middleware=[Middleware(Gate)],
            exception_handlers={HTTPException: self._refused, KeywrightError: self._failed},
        )

    async def _start(self, request: Request) -> Response:
        """Show the page of a link, with a notice if an earlier attempt did not succeed."""
        linking_id = request.path_params["linking"]
        user = await self._user_of(linking_id)
        if user is None:
            return self._expired()
        named = await self._named(user)
        if named is None:
            return self._problem("unnamed", 503)
        browser = self._browser(request) or new_id()
        response = self._page(
            "link.html",
            discord=named,
            notice=NOTICES.get(request.query_params.get("after", "")),
            linking=linking_id,
            mark=self._forms.mark(browser, linking_id),
            # Chromium holds all redirects after a form to form-action. A provider sends those who must sign
            # in first to other hosts, which nobody here knows.
            leads_to=f" {self._oauth.provider.scheme}:",
        )
        response.set_cookie(
            self._cookie,
            browser,
            max_age=(CSRF_EXPIRY.ttl_ms or 0) // 1000,
            httponly=True,
            samesite="lax",
            secure=self._secure,
        )
        return response

    async def _leave(self, request: Request) -> Response:
        """Redirect to Meetup, with a state that ties the answer to the link and to this browser."""
        linking_id = request.path_params["linking"]
        form, browser = await self._own_form(request)
        if await self._user_of(linking_id) is None:
            return self._expired()
        rsvp = self._oauth.provider.offer_rsvp and form.get("scope") == "rsvp"
        flow = Flow.new(linking_id, "rsvp" if rsvp else "basic")
        await self._db.run(account_links.keep_csrf(linking_id, _bound(flow, browser)))
        return self._redirect(self._oauth.authorization(flow))

    async def _returned(self, request: Request) -> Response:
        """Handle the return from Meetup: show both accounts, for the person to confirm."""
        flow, browser = Flow.of(request.query_params.get("state", "")), self._browser(request)
        if flow is not None and flow.purpose == "organizer":
            return await self._authorized(request)
        if flow is None or browser is None or not await self._is_ours(flow, browser):
            log.info("a return from Meetup without its cookie, or for the second time")
            return self._problem("stray", 400)
        user = await self._user_of(flow.linking)
        if user is None:
            return self._expired()
        code = request.query_params.get("code")
        if code is None:
            refused = request.query_params.get("error") == "access_denied"
            return await self._again(flow.linking, "denied" if refused else "failed")
        try:
            granted = await self._oauth.exchange(flow, code)
            member = await self._meetup.self_member(granted.access_token)
        except PlatformError as error:
            log.warning("linking Discord user %d: %s", user, error)
            return await self._again(flow.linking, "failed")
        named = await self._named(user)
        if named is None:
            return await self._again(flow.linking, "unnamed")
        return self._page(
            "confirm.html",
            discord=named,
            meetup=member,
            rsvp=flow.purpose == "rsvp",
            linking=flow.linking,
            mark=self._forms.mark(browser, flow.linking),
            consent=self._forms.seal(_consent(browser, flow, user, member, granted)),
        )

    async def _authorized(self, request: Request) -> Response:
        """Handle the return of an organizer, who authorized the bot."""
        try:
            await self._organizer.finish(str(request.url))
        except (RefusedChangeError, PlatformError) as error:
            log.warning("the bot was not authorized: %s", error)
            return self._problem("unauthorized", 400)
        return self._redirect("/link/outcome/authorized")

    async def _confirmed(self, request: Request) -> Response:
        """Link the accounts that the person saw and confirmed."""
        linking_id = request.path_params["linking"]
        form, browser = await self._own_form(request)
        consent = self._forms.open(form.get("consent", ""), browser, linking_id)
        if consent is None:
            return self._problem("stray", 400)
        user = await self._taken(linking_id)
        if form.get("answer") != "yes":
            path = "/link/outcome/declined"
        elif user == consent.discord_user:
            path = await self._linked(consent)
        elif await self._are_linked(consent):  # the button was pressed twice
            path = "/link/outcome/linked"
        else:
            return self._expired()
        response = self._redirect(path)
        response.delete_cookie(self._cookie, httponly=True, samesite="lax", secure=self._secure)
        return response

    async def _linked(self, consent: Consent) -> str:
        """Store the link, with the tokens. Return the address of the page with the outcome."""
        member, user = consent.meetup_user, consent.discord_user
        try:
            new = await self._db.run(account_links.link(member, user, consent.tokens))
        except TakenError as error:
            taken = "meetup-taken" if error.holder == member and error.wanted == user else "discord-taken"
            return f"/link/outcome/{taken}"
        return f"/link/outcome/{'linked' if new else 'already'}"

    async def _are_linked(self, consent: Consent) -> bool:
        found = await self._db.run(account_links.discord_users_of([consent.meetup_user]))
        return found.get(consent.meetup_user) == consent.discord_user

    async def _again(self, linking_id: str, after: str) -> Response:
        """Redirect to a new link for the same person: the old one is used up."""
        user = await self._taken(linking_id)
        if user is None:
            return self._expired()
        try:
            fresh = await self._db.run(account_links.begin_linking(user))
        except TakenError:
            return self._redirect("/link/outcome/discord-taken")
        return self._redirect(f"/link/{fresh}?after={after}")

    async def _outcome(self, request: Request) -> Response:
        outcome = OUTCOMES.get(request.path_params["outcome"])
        if outcome is None:
            raise HTTPException(404)
        return self._page("outcome.html", outcome.status, outcome=outcome)

    def _browser(self, request: Request) -> str | None:
        """Return the id that the cookie gives this browser."""
        return cookie_of(request.headers, self._cookie)

    async def _own_form(self, request: Request) -> tuple[dict[str, str], str]:
        """Return the fields of a form and its browser. Raise HTTPException unless a page of ours sent it."""
        given = parse_qs((await body_of(request, LARGEST_FORM)).decode(errors="replace"))
        form = {name: values[-1] for name, values in given.items()}
        browser, linking_id = self._browser(request), request.path_params["linking"]
        if browser is None or not is_own_form(request.headers, self._origin):
            raise HTTPException(403)
        if not self._forms.is_marked(form.get("mark", ""), browser, linking_id):
            raise HTTPException(403)
        return form, browser

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

    async def _is_ours(self, flow: Flow, browser: str) -> bool:
        try:
            return await self._db.run(account_links.redeem_csrf(flow.linking, _bound(flow, browser)))
        except VariableError:
            return False

    async def _named(self, user: DiscordId) -> User | None:
        """Return the Discord user, or None: without a name nobody can check whom the link is for."""
        try:
            async with asyncio.timeout(NAME_SECONDS):
                return await self._find_user(user)
        except (PlatformError, TimeoutError) as error:
            log.warning("no name for Discord user %d: %s", user, str(error) or "no answer in time")
            return None

    def _expired(self) -> Response:
        return self._problem("expired", 410)

    def _problem(self, name: str, status: int) -> Response:
        return self._page("outcome.html", status, outcome=PROBLEMS[name])

    async def _refused(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        problem = {403: "foreign", 404: "unknown", 405: "unknown"}.get(status, "trouble")
        return self._problem(problem, status)

    async def _failed(self, request: Request, error: Exception) -> Response:
        log.error("a page cannot be served: %s", error)
        return self._problem("trouble", 503)

    def _page(self, template: str, status: int = 200, *, leads_to: str = "", **given: Any) -> Response:
        """Render a page, whose forms may lead to pages of ours, and to the others that are named."""
        text = self._templates.get_template(template).render(**given)
        return Response(text, status, self._headers(leads_to), media_type="text/html")

    def _redirect(self, address: str) -> Response:
        return RedirectResponse(address, 303, self._headers())

    def _headers(self, leads_to: str = "") -> dict[str, str]:
        policy = (
            "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "
            f"frame-ancestors 'none'; form-action 'self'{leads_to}"
        )
        headers = {
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            # With "no-referrer" browsers would send "Origin: null" with our own forms.
            "Referrer-Policy": "same-origin",
            "X-Content-Type-Options": "nosniff",
        }
        return headers | ({"Strict-Transport-Security": "max-age=31536000"} if self._secure else {})


def _with_commands(text: str) -> Markup:
    """Return a text in which commands, such as /link, are set apart."""
    return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(text))))


def _bound(flow: Flow, browser: str) -> Secret[str]:
    """Return the CSRF token of a flow in one browser."""
    return Secret(f"{flow.state.reveal()}.{browser}")


def _consent(browser: str, flow: Flow, user: DiscordId, member: Member, granted: Granted) -> Consent:
    """Return a consent with the tokens to keep: only those of people who let the bot manage RSVPs."""
    kept = granted.refresh_token if flow.purpose == "rsvp" else None
    return Consent(
        browser=browser,
        linking=flow.linking,
        discord_user=user,
        meetup_user=member.id,
        access_token=None if kept is None else granted.access_token.reveal(),
        refresh_token=None if kept is None else kept.reveal(),
    )
