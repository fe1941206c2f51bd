"""Authentication, sessions, CSRF protection and security headers of an explorer.

Without a token it answers requests of this machine only, and checks the Host header, against DNS rebinding.
With one, a browser signs in once and gets a cookie that does not contain the token. A request that changes
something must be a form of the same origin with the CSRF token (the mark) of its session.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keywright.explorer.settings import ExplorerSettings
from keywright.tools.http import (
    LOOPBACK_HOSTS,
    SharedToken,
    TokenVerdict,
    bearer_of,
    cookie_of,
    host_of,
    is_loopback,
    is_own_form,
    origin_of,
    refusal_of,
)

__all__ = ["HEADERS", "Access", "Guard"]

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
SESSION_LENGTH = timedelta(hours=12)
RETRY_SECONDS = "5"


class Session(NamedTuple):
    """A browser session; `signed_in` once it sent the token."""

    identity: str
    signed_in: bool


class Access:
    """The access rules of one explorer. Sessions end after twelve hours, and with the process."""

    def __init__(
        self, settings: ExplorerSettings, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.token = None if settings.token is None else SharedToken(settings.token)
        self.clock = clock
        self.origin = None if settings.public_url is None else origin_of(settings.public_url)
        self.hosts = _hosts(settings, self.origin)
        self._key = secrets.token_bytes(32)
        self._signed_in: dict[str, datetime] = {}

    @property
    def needs_token(self) -> bool:
        return self.token is not None

    def new_cookie(self) -> str:
        """Return the cookie value of a new session, which is not signed in where a token is needed."""
        identity = f"{secrets.token_urlsafe(16)}.{int(self.clock().timestamp())}"
        return f"{identity}.{self._mark('session', identity)}"

    def session(self, cookie: str) -> Session | None:
        """Return the session of a cookie, or None if its signature is invalid or the session has ended."""
        identity, _, mark = cookie.rpartition(".")
        if not hmac.compare_digest(mark.encode(), self._mark("session", identity).encode()):
            return None
        begun = datetime.fromtimestamp(int(identity.rpartition(".")[2]), UTC)
        if self.clock() - begun > SESSION_LENGTH:
            return None
        return Session(identity, not self.needs_token or identity in self._signed_in)

    def sign_in(self) -> str:
        """Return the cookie value of a new session that is signed in."""
        now = self.clock()
        self._signed_in = {one: end for one, end in self._signed_in.items() if end > now}
        cookie = self.new_cookie()
        self._signed_in[cookie.rpartition(".")[0]] = now + SESSION_LENGTH
        return cookie

    def sign_out(self, session: Session) -> None:
        self._signed_in.pop(session.identity, None)

    def form_mark(self, session: Session) -> str:
        """Return the CSRF token that forms of this session must send."""
        return self._mark("form", session.identity)

    def form_is_ours(self, session: Session, mark: str, headers: Headers) -> bool:
        """Return whether a form was sent by a page of this explorer in this session."""
        if not is_own_form(headers, self.origin):
            return False
        return hmac.compare_digest(mark.encode(), self.form_mark(session).encode())

    def cookie_name(self, scope: Scope) -> str:
        # Browsers send a cookie to every port of a host: two explorers of one machine need different names.
        # The prefix keeps other hosts of the domain from setting it.
        _, port = scope.get("server") or ("", None)
        name = f"keywright_explorer_{port or 'socket'}"
        return f"__Host-{name}" if self._is_secure(scope) else name

    def cookie_header(self, scope: Scope, value: str) -> str:
        secure = "; Secure" if self._is_secure(scope) else ""
        return f"{self.cookie_name(scope)}={value}; Path=/; HttpOnly; SameSite=Strict{secure}"

    def _is_secure(self, scope: Scope) -> bool:
        return (self.origin or f"{scope['scheme']}:").startswith("https:")

    def _mark(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose}:{text}".encode(), hashlib.sha256).hexdigest()


def _hosts(settings: ExplorerSettings, origin: str | None) -> frozenset[str] | None:
    """Return the hosts that requests may be addressed to; None, any, where it listens beyond loopback."""
    ours = LOOPBACK_HOSTS | {settings.host.lower()}
    if origin is not None:
        return ours | {host_of(urlsplit(origin).netloc) or ""}
    return ours if settings.token is None or is_loopback(settings.host) else None


class Guard:
    """Middleware that refuses requests without access and adds the security headers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        fresh = ""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    answer.setdefault(name, value)
                if fresh and "set-cookie" not in answer and not scope["path"].startswith("/static/"):
                    answer.append("Set-Cookie", self.access.cookie_header(scope, fresh))
            await send(message)

        headers = Headers(scope=scope)
        refusal = refusal_of(headers, self.access.hosts) or self._stranger(scope)
        if refusal is None:
            session = self.access.session(cookie_of(headers, self.access.cookie_name(scope)) or "")
            if session is None:
                fresh = self.access.new_cookie()
                session = self.access.session(fresh)
                assert session is not None
            refusal = await self._admission(scope, headers, session)
        await (refusal or self.app)(scope, receive, guarded)

    def _stranger(self, scope: Scope) -> Response | None:
        """Refuse other machines where no token is needed: the server of this application may be public."""
        peer = scope.get("client")
        if self.access.needs_token or (peer is not None and is_loopback(peer[0])):
            return None
        return PlainTextResponse("Without a token only this machine has access. Set a token.\n", 403)

    async def _admission(self, scope: Scope, headers: Headers, session: Session) -> Response | None:
        """Put the session and whether it is admitted into the scope. Return the refusal if it is not."""
        bearer, verdict = bearer_of(headers), None
        if not session.signed_in and self.access.token is not None and bearer is not None:
            verdict = await self.access.token.check(bearer)
        admitted = session.signed_in or verdict is TokenVerdict.RIGHT
        scope["state"] = {**scope.get("state", {}), "session": session, "admitted": admitted}
        if verdict is TokenVerdict.BUSY:
            text = "Too many wrong tokens were sent. Try again in a few seconds.\n"
            return PlainTextResponse(text, 429, headers={"Retry-After": RETRY_SECONDS})
        if admitted or _is_open(scope["path"]):
            return None
        if "text/html" in headers.get("Accept", "") and "HX-Request" not in headers:
            return RedirectResponse(f"/login?next={quote(_address(scope), safe='/')}", 303)
        challenge = {"WWW-Authenticate": 'Bearer realm="keywright"'}
        return PlainTextResponse("A token is required. Sign in at /login.\n", 401, headers=challenge)


def _address(scope: Scope) -> str:
    query = scope.get("query_string", b"").decode("latin-1")
    path: str = scope["path"]
    return f"{quote(path)}?{query}" if query else quote(path)


def _is_open(path: str) -> bool:
    """Return whether a path is public: the login page and static files."""
    return path == "/login" or path.startswith("/static/")
