"""Authentication, sessions, CSRF protection and security headers of an explorer.

Without a token it listens on loopback only and checks the Host header, against DNS rebinding. With one, a
browser signs in once and gets a cookie that does not contain the token. A request that changes something must
be a form of the same origin with the CSRF token (the mark) of its session.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keywright.explorer.settings import ExplorerSettings
from keywright.tools.http import is_loopback

__all__ = ["HEADERS", "Access", "Guard", "cookie_header"]

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


class Session(NamedTuple):
    """A browser session; `signed_in` once it sent the token."""

    identity: str
    signed_in: bool


class Access:
    """The access rules of one explorer. Sessions end with the process, and with its signing key."""

    def __init__(self, settings: ExplorerSettings) -> None:
        self._token = None if settings.token is None else settings.token.reveal()
        self._key = secrets.token_bytes(32)
        self._hosts = {"localhost", "127.0.0.1", "[::1]", settings.host.lower()}
        self._any_host = self._token is not None and not is_loopback(settings.host)

    @property
    def needs_token(self) -> bool:
        return self._token is not None

    def accepts(self, token: str) -> bool:
        return self._token is not None and hmac.compare_digest(token.encode(), self._token.encode())

    def host_is_ours(self, host: str) -> bool:
        """Return whether a Host header names this machine; any host is accepted beyond loopback."""
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        return self._any_host or name.lower() in self._hosts

    def cookie(self, *, signed_in: bool) -> str:
        """Return the cookie value of a new session."""
        identity = f"{secrets.token_urlsafe(16)}.{int(signed_in)}"
        return f"{identity}.{self._mark('session', identity)}"

    def session(self, cookie: str) -> Session | None:
        """Return the session of a cookie, or None if its signature is invalid."""
        identity, _, mark = cookie.rpartition(".")
        if not hmac.compare_digest(mark.encode(), self._mark("session", identity).encode()):
            return None
        return Session(identity, identity.endswith(".1"))

    def form_mark(self, session: Session) -> str:
        """Return the CSRF token that forms of this session must send."""
        return self._mark("form", session.identity)

    def form_is_ours(self, session: Session, mark: str, headers: Headers) -> bool:
        """Return whether a form was sent by a page of this explorer in this session."""
        origin = headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != headers.get("Host"):
            return False
        if headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            return False
        return hmac.compare_digest(mark.encode(), self.form_mark(session).encode())

    def bears_token(self, headers: Headers) -> bool:
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.accepts(token.strip())

    def _mark(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose}:{text}".encode(), hashlib.sha256).hexdigest()


class Guard:
    """Middleware that refuses requests without access and adds the security headers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        session = self._session(scope, headers)
        fresh = session is None
        cookie = self.access.cookie(signed_in=not self.access.needs_token) if fresh else ""
        session = session or self.access.session(cookie)
        admitted = (session is not None and session.signed_in) or self.access.bears_token(headers)
        scope["state"] = {**scope.get("state", {}), "session": session, "admitted": admitted}

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    answer.setdefault(name, value)
                if fresh and "set-cookie" not in answer and not scope["path"].startswith("/static/"):
                    answer.append("Set-Cookie", cookie_header(scope, cookie))
            await send(message)

        refusal = self._refusal(scope, headers)
        await (self.app if refusal is None else refusal)(scope, receive, guarded)

    def _session(self, scope: Scope, headers: Headers) -> Session | None:
        try:
            found = SimpleCookie(headers.get("Cookie", "")).get(_cookie_name(scope))
        except CookieError:
            return None
        return None if found is None else self.access.session(found.value)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if not self.access.host_is_ours(headers.get("Host", "")):
            return PlainTextResponse("This Host is not allowed. Use the address of the explorer.\n", 421)
        if scope["state"]["admitted"] or _is_open(scope["path"]):
            return None
        if "text/html" in headers.get("Accept", "") and "HX-Request" not in headers:
            return RedirectResponse("/login", 303)
        challenge = {"WWW-Authenticate": 'Bearer realm="keywright"'}
        return PlainTextResponse("A token is required. Sign in at /login.\n", 401, headers=challenge)


def _is_open(path: str) -> bool:
    """Return whether a path is public: the login page and static files."""
    return path == "/login" or path.startswith("/static/")


def cookie_header(scope: Scope, value: str) -> str:
    secure = "; Secure" if scope["scheme"] == "https" else ""
    return f"{_cookie_name(scope)}={value}; Path=/; HttpOnly; SameSite=Strict{secure}"


def _cookie_name(scope: Scope) -> str:
    # Browsers send a cookie to every port of a host: two explorers of one machine need different names.
    _, port = scope.get("server") or ("", None)
    return f"keywright_explorer_{port or 'socket'}"
