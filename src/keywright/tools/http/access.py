"""Checks of requests that HTTP services share: hosts, origins, cookies, tokens and bodies."""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from enum import Enum
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from keywright.errors import UsageError
from keywright.keyspace import Secret
from keywright.tools.http.sockets import LOOPBACK

__all__ = [
    "LOOPBACK_HOSTS",
    "Gate",
    "SharedToken",
    "TokenVerdict",
    "bearer_of",
    "body_of",
    "check_token",
    "cookie_of",
    "host_of",
    "is_own_form",
    "origin_of",
    "refusal_of",
]

LOOPBACK_HOSTS = frozenset({"localhost", LOOPBACK, "[::1]"})
LONGEST_COOKIES = 8192

SHORTEST_TOKEN = 16
FEWEST_CHARACTERS = 6
PAUSE_SECONDS = 0.3
MOST_WAITING = 16

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:@/\[\]]+)(?::[0-9]{1,5})?", re.IGNORECASE)


def host_of(address: str) -> str | None:
    """Return the host of a Host header or the like, without its port; None if it is malformed."""
    found = _HOST.fullmatch(address)
    return None if found is None else found[1].lower()


def refusal_of(headers: Headers, hosts: AbstractSet[str] | None) -> Response | None:
    """Return the answer to a request that is refused before anything else is done with it, or None.

    431 if its cookies are long; 421 if it is addressed to another host than `hosts`, against DNS rebinding.
    """
    if sum(map(len, headers.getlist("Cookie"))) > LONGEST_COOKIES:
        return PlainTextResponse("The Cookie header is too long. Delete the cookies of this site.\n", 431)
    if hosts is None:
        return None
    if host_of(headers.get("Host", "")) not in hosts:
        return PlainTextResponse("This Host is not allowed. Use the address of this service.\n", 421)
    return None


class Gate:
    """Middleware that refuses requests as `refusal_of` does. `hosts` None allows any host."""

    def __init__(self, app: ASGIApp, hosts: AbstractSet[str] | None = None) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = refusal_of(Headers(scope=scope), self._hosts) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)


def cookie_of(headers: Headers, name: str) -> str | None:
    """Return a cookie of letters, digits and `-._`, or None.

    The parser of the standard library takes quadratic time for quoted values before Python 3.11.10 and 3.12.6
    (CVE-2024-7592), and so do parsers that use it.
    """
    pattern = rf"(?:^|;)[ \t]*{re.escape(name)}=([A-Za-z0-9._-]+)[ \t]*(?:;|$)"
    found = re.search(pattern, ";".join(headers.getlist("Cookie")))
    return None if found is None else found[1]


def origin_of(url: str) -> str:
    """Return the origin of a URL as browsers send it. Raise UsageError unless the URL is an origin."""
    # The URL is not quoted: it may have a password.
    refusal = UsageError("a public address is a scheme and a host. Write it as https://keys.example.org.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise refusal from error
    more = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme not in ("http", "https") or parts.hostname is None or more:
        raise refusal
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = port in (None, {"http": 80, "https": 443}[parts.scheme])
    return f"{parts.scheme}://{host}" if usual else f"{parts.scheme}://{host}:{port}"


def is_own_form(headers: Headers, origin: str | None) -> bool:
    """Return whether a form was sent by a page of this origin, or by a client that sends no such headers.

    Without an origin it is the host that the request is addressed to. A CSRF token has to be checked as well.
    """
    if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return False
    given = headers.get("Origin")
    if given is None:
        return True
    return given == origin if origin is not None else urlsplit(given).netloc == headers.get("Host")


def check_token(token: Secret[str], subject: str = "the token") -> None:
    """Raise UsageError, which names the subject, if a token could be guessed."""
    text = token.reveal()
    if len(text) < SHORTEST_TOKEN:
        problem = f"has fewer than {SHORTEST_TOKEN} characters"
    elif len(set(text)) < FEWEST_CHARACTERS:
        problem = f"repeats fewer than {FEWEST_CHARACTERS} characters"
    else:
        return
    raise UsageError(f"{subject} {problem}. Use a long random one, as `openssl rand -hex 16` prints.")


def bearer_of(headers: Headers) -> bytes | None:
    """Return the bearer token of a request."""
    scheme, _, given = headers.get("Authorization", "").partition(" ")
    return given.strip().encode("latin-1") if scheme.lower() == "bearer" else None


class TokenVerdict(Enum):
    """The outcome of a check: BUSY if the token was not looked at, because too many wrong ones wait."""

    RIGHT = "right"
    WRONG = "wrong"
    BUSY = "busy"


class SharedToken:
    """A token that requests must have.

    Wrong tokens are answered one after another, each after a pause. While too many of them wait, no token is
    looked at, so that guesses are slow however many are sent at once.
    """

    def __init__(
        self, token: Secret[str], *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        self._token = token.reveal().encode()
        self._sleep = sleep
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def check(self, given: bytes) -> TokenVerdict:
        if self._waiting >= MOST_WAITING:
            return TokenVerdict.BUSY
        if hmac.compare_digest(given, self._token):
            return TokenVerdict.RIGHT
        self._waiting += 1
        try:
            async with self._turn:
                await self._sleep(PAUSE_SECONDS)
        finally:
            self._waiting -= 1
        return TokenVerdict.WRONG


async def body_of(request: Request, most: int) -> bytes:
    """Return the body. Raise HTTPException: 413 if it has more than `most` bytes, 400 if it ends early."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise HTTPException(413, f"the request has more than {most} bytes")
    except ClientDisconnect as error:
        raise HTTPException(400, "the body ended early") from error
    return bytes(body)
