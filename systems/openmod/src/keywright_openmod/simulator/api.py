"""The routes of Reddit's API that a moderation program needs: tokens, listings, submissions, edits."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from keywright.errors import UsageError
from keywright_openmod.simulator import payloads
from keywright_openmod.simulator.world import RedditWorld, SimulatedSubmission, SimulatedUser

__all__ = ["AppCredentials", "RedditApi"]

Handler = Callable[[Request, SimulatedUser], Awaitable[Response]]

TOKEN_SECONDS = 3600


@dataclass(frozen=True)
class AppCredentials:
    """The credentials of the one script app and its account."""

    client_id: str
    client_secret: str
    username: str
    password: str


class RedditApi:
    """An ASGI application. Requests with a token act as the account of the app."""

    def __init__(
        self, world: RedditWorld, credentials: AppCredentials, on_change: Callable[[], None]
    ) -> None:
        self.world = world
        self._on_change = on_change
        self._credentials = credentials
        self._tokens: set[str] = set()
        self._app = Starlette(routes=[*self._reading(), *self._writing()])

    def forget_tokens(self) -> None:
        """Invalidate every token, as after an hour."""
        self._tokens.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def _reading(self) -> list[Route]:
        reads: dict[str, Handler] = {
            "/api/v1/me": self._me,
            "/api/info": self._info,
            "/api/user_data_by_account_ids": self._accounts,
            "/user/{name}/about": self._about_user,
            "/user/{name}/submitted": self._submitted,
            "/r/{subreddit}/about": self._about_subreddit,
            "/r/{subreddit}/about/log": self._log,
            "/r/{subreddit}/about/edited": self._edited,
            "/r/{subreddit}/new": self._new,
            "/r/{subreddit}/comments": self._comments,
        }
        return [Route(path, self._authorized(handler)) for path, handler in reads.items()]

    def _writing(self) -> list[Route]:
        return [
            Route("/api/v1/access_token", self._token, methods=["POST"]),
            Route("/api/submit", self._authorized(self._submit), methods=["POST"]),
            Route("/api/editusertext", self._authorized(self._edit), methods=["POST"]),
        ]

    def _authorized(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def handled(request: Request) -> Response:
            token = request.headers.get("authorization", "").partition(" ")[2]
            user = self.world.user_named(self._credentials.username)
            if token not in self._tokens or user is None:
                headers = {"www-authenticate": 'Bearer realm="reddit", error="invalid_token"'}
                return JSONResponse({"message": "Unauthorized", "error": 401}, 401, headers)
            try:
                return await handler(request, user)
            except UsageError:  # the subreddit does not exist
                return _refusal(404)

        return handled

    async def _token(self, request: Request) -> Response:
        known = self._credentials
        basic = base64.b64encode(f"{known.client_id}:{known.client_secret}".encode()).decode()
        if request.headers.get("authorization", "").partition(" ")[2] != basic:
            return _refusal(401)
        form = await _form(request)
        if form.get("username") != known.username or form.get("password") != known.password:
            return JSONResponse({"error": "invalid_grant"})
        token = secrets.token_urlsafe(16)
        self._tokens.add(token)
        granted = {"access_token": token, "token_type": "bearer", "expires_in": TOKEN_SECONDS, "scope": "*"}
        return JSONResponse(granted)

    async def _me(self, request: Request, user: SimulatedUser) -> Response:
        return JSONResponse(payloads.own_account(user))

    async def _info(self, request: Request, user: SimulatedUser) -> Response:
        return JSONResponse(
            payloads.listing(self._known(request.query_params.get("id", "")), {"limit": "100"})
        )

    def _known(self, names: str) -> list[dict[str, Any]]:
        found = []
        for name in names.split(",")[: payloads.LARGEST_PAGE]:
            if name in self.world.submissions:
                found.append(payloads.submission(self.world.submissions[name]))
            found += [payloads.subreddit(each) for each in self.world.subreddits.values() if each.id == name]
        return found

    async def _accounts(self, request: Request, user: SimulatedUser) -> Response:
        wanted = request.query_params.get("ids", "").split(",")
        found = {
            each: {"name": self.world.users[each].name, "created_utc": 1.0e9}
            for each in wanted
            if each in self.world.users and not self.world.users[each].deleted
        }
        return JSONResponse(found) if found else _refusal(404)

    async def _about_user(self, request: Request, user: SimulatedUser) -> Response:
        found = self.world.user_named(request.path_params["name"])
        return _refusal(404) if found is None else JSONResponse(payloads.account(found))

    async def _submitted(self, request: Request, user: SimulatedUser) -> Response:
        author = self.world.user_named(request.path_params["name"])
        if author is None:
            return _refusal(404)
        posts = [each for each in self.world.submissions.values() if each.is_post and each.author is author]
        return self._listed([each for each in posts if not each.deleted], request)

    async def _about_subreddit(self, request: Request, user: SimulatedUser) -> Response:
        return JSONResponse(payloads.subreddit(self.world.subreddit(request.path_params["subreddit"])))

    async def _log(self, request: Request, user: SimulatedUser) -> Response:
        here = self.world.subreddit(request.path_params["subreddit"])
        if user.id not in here.moderators:
            return _refusal(403)
        entries = [payloads.log_entry(each) for each in self.world.log if each.subreddit is here]
        return JSONResponse(payloads.listing(entries[::-1], request.query_params))

    async def _edited(self, request: Request, user: SimulatedUser) -> Response:
        here = self.world.subreddit(request.path_params["subreddit"])
        if user.id not in here.moderators:
            return _refusal(403)
        edited = self.world.edited.values()
        return self._listed([each for each in edited if each.subreddit is here and not each.deleted], request)

    async def _new(self, request: Request, user: SimulatedUser) -> Response:
        return self._listed([each for each in self._alive(request) if each.is_post], request)

    async def _comments(self, request: Request, user: SimulatedUser) -> Response:
        return self._listed([each for each in self._alive(request) if not each.is_post], request)

    def _alive(self, request: Request) -> list[SimulatedSubmission]:
        here = self.world.subreddit(request.path_params["subreddit"])
        return [
            each for each in self.world.submissions.values() if each.subreddit is here and not each.deleted
        ]

    def _listed(self, oldest_first: list[SimulatedSubmission], request: Request) -> Response:
        children = [payloads.submission(each) for each in reversed(oldest_first)]
        return JSONResponse(payloads.listing(children, request.query_params))

    async def _submit(self, request: Request, user: SimulatedUser) -> Response:
        form = await _form(request)
        here = self.world.subreddits.get(form.get("sr", "").lower())
        if here is None:
            return _errors("SUBREDDIT_NOEXIST", "that subreddit doesn't exist", "sr")
        if here.closed:
            return _errors("SUBREDDIT_NOTALLOWED", "you aren't allowed to post there.", "sr")
        made = self.world.post(user, here.name, form["title"], form.get("text", ""))
        self._on_change()
        url = f"{payloads.SITE}{made.permalink}"
        return _done({"url": url, "drafts_count": 0, "id": made.id.removeprefix("t3_"), "name": made.id})

    async def _edit(self, request: Request, user: SimulatedUser) -> Response:
        form = await _form(request)
        found = self.world.submissions.get(form["thing_id"])
        if found is None or found.deleted or found.author is not user:
            return _refusal(403)
        self.world.edit(found, form["text"])
        self._on_change()
        return _done({"things": [payloads.submission(found)]})


async def _form(request: Request) -> dict[str, str]:
    return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True))


def _refusal(status: int) -> Response:
    words = {401: "Unauthorized", 403: "Forbidden", 404: "Not Found"}
    return JSONResponse({"message": words[status], "error": status}, status)


def _errors(code: str, message: str, field: str) -> Response:
    return JSONResponse({"json": {"errors": [[code, message, field]]}})


def _done(data: Mapping[str, Any]) -> Response:
    return JSONResponse({"json": {"errors": [], "data": data}})
