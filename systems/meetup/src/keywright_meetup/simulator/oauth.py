"""OAuth 2 as Meetup has it, with PKCE: a consent page, and tokens for codes and for refresh tokens."""

from __future__ import annotations

import base64
import hashlib
import html
import secrets
from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from keywright_meetup.simulator.world import MeetupWorld

__all__ = ["OAuthProvider"]

CLIENT_ID, CLIENT_SECRET = "simulated-client", "simulated-client-secret"

_PAGE = """<!doctype html><html lang="en"><title>Simulated Meetup</title>
<link rel="icon" href="data:,"><h1>Let Keywright see who you are?</h1>
<form method="post"><p>You are {who}.</p><button name="answer" value="allow">Allow</button>
<button name="answer" value="deny">Deny</button></form></html>"""


@dataclass(frozen=True)
class _Grant:
    member: int
    redirect_uri: str
    challenge: str
    scopes: str


class OAuthProvider:
    """The provider. The member who is `signed_in` answers on the consent page; None: the page asks who."""

    def __init__(self, world: MeetupWorld) -> None:
        self._world = world
        self.signed_in: int | None = None
        self.rotate = True
        """Whether a refresh answers with a new refresh token."""
        self.refreshes = 0
        self.scopes: list[str] = []
        """The scopes that were asked for on the consent page, each time."""
        self._codes: dict[str, _Grant] = {}
        self._access: dict[str, int] = {}
        self._refresh: dict[str, int] = {}

    def grant(self, member: int) -> tuple[str, str]:
        """Return an access and a refresh token, as if the member had consented."""
        access, refresh = secrets.token_hex(16), secrets.token_hex(16)
        self._access[access] = member
        self._refresh[refresh] = member
        return access, refresh

    def holder(self, access_token: str) -> int | None:
        return self._access.get(access_token)

    def refreshable(self, refresh_token: str) -> bool:
        """Return whether a refresh token is valid."""
        return refresh_token in self._refresh

    def expire_access(self) -> None:
        """Make every access token invalid, as after an hour."""
        self._access.clear()

    def revoke(self) -> None:
        """Make every access and refresh token invalid."""
        self._access.clear()
        self._refresh.clear()

    async def authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        if asked.get("client_id") != CLIENT_ID or asked.get("response_type") != "code":
            return HTMLResponse("<h1>Unknown client</h1>", 400)
        if asked.get("code_challenge_method") != "S256" or not asked.get("code_challenge"):
            return HTMLResponse("<h1>PKCE is required</h1>", 400)
        if request.method == "GET":
            self.scopes.append(asked.get("scope", ""))
            return HTMLResponse(_PAGE.format(who=self._who()))
        form = parse_qs((await request.body()).decode())
        member = self.signed_in or int(form.get("member", ["0"])[0])
        if member not in self._world.members:
            return HTMLResponse("<h1>Sign in first</h1>", 401)
        answered = {"state": asked["state"]}
        if form.get("answer") == ["allow"]:
            code = secrets.token_urlsafe(12)
            challenge, scope = asked["code_challenge"], asked.get("scope", "")
            self._codes[code] = _Grant(member, asked["redirect_uri"], challenge, scope)
            answered["code"] = code
        else:
            answered["error"] = "access_denied"
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(answered)}", 303)

    def _who(self) -> str:
        """Return the name of the member who is signed in, or a choice of all."""
        if self.signed_in is not None:
            return html.escape(self._world.members[self.signed_in])
        options = "".join(
            f'<option value="{member}">{html.escape(name)}</option>'
            for member, name in self._world.members.items()
        )
        return f'<select name="member" aria-label="Member">{options}</select>'

    async def token(self, request: Request) -> Response:
        given = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        if (given.get("client_id"), given.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET):
            return _refusal("invalid_client", 401)
        if given.get("grant_type") == "authorization_code":
            return self._exchanged(given)
        return self._refreshed(given)

    def _exchanged(self, given: dict[str, str]) -> Response:
        grant = self._codes.pop(given.get("code", ""), None)
        digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if grant is None or grant.redirect_uri != given.get("redirect_uri") or grant.challenge != challenge:
            return _refusal("invalid_grant")
        return self._tokens(grant.member)

    def _refreshed(self, given: dict[str, str]) -> Response:
        token = given.get("refresh_token", "")
        member = self._refresh.get(token)
        if member is None:
            return _refusal("invalid_grant")
        self.refreshes += 1
        if self.rotate:
            del self._refresh[token]
        return self._tokens(member, refresh=self.rotate)

    def _tokens(self, member: int, *, refresh: bool = True) -> Response:
        access, fresh = self.grant(member)
        answered = {"access_token": access, "token_type": "bearer", "expires_in": 3600}
        if refresh:
            answered["refresh_token"] = fresh
        return JSONResponse(answered)


def _refusal(code: str, status: int = 400) -> Response:
    return JSONResponse({"error": code}, status)
