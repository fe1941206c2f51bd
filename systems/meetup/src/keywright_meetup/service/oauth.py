"""OAuth 2 against a configurable provider: the authorization code with PKCE, and refreshing.

The state of a flow is the CSRF token that the model keeps for the browser: it names the linking id and what
the authorization is for, so a state that was tampered with is none that was kept. The PKCE verifier
follows from the state and the client's secret: nobody who sees the addresses can compute it, and nothing more
must be stored.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from http import HTTPStatus
from typing import Literal, NamedTuple, Self, TypeAlias, cast, get_args
from urllib.parse import urlencode, urlsplit

import httpx
import msgspec

from keywright import Secret
from keywright_service.errors import HttpRefusedError, PlatformTroubleError
from keywright_service.http_client import (
    DEFAULTS,
    MALFORMED,
    Again,
    ClientOptions,
    HttpClient,
    is_worth_repeating,
)

__all__ = ["Flow", "Granted", "OAuthClient", "Provider", "Purpose"]

Purpose: TypeAlias = Literal["basic", "rsvp", "organizer"]


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """The addresses of a provider, and our client there."""

    client_id: str
    client_secret: Secret[str]
    authorize_url: str = "https://secure.meetup.com/oauth2/authorize"
    token_url: str = "https://secure.meetup.com/oauth2/access"
    scopes: tuple[str, ...] = ("basic",)
    rsvp_scopes: tuple[str, ...] = ("basic", "rsvp")
    offer_rsvp: bool = False

    @property
    def scheme(self) -> str:
        """The scheme of the address, for the content security policy."""
        return urlsplit(self.authorize_url).scheme


class Flow(NamedTuple):
    """One authorization: for which linking id, and to do what."""

    linking: str
    purpose: Purpose
    nonce: str

    @classmethod
    def new(cls, linking: str, purpose: Purpose) -> Self:
        return cls(linking, purpose, secrets.token_urlsafe(24))

    @classmethod
    def of(cls, state: str) -> Self | None:
        """Return the flow that a state names, true or not; None if it names none."""
        parts = state.split(".")
        if len(parts) != 3 or parts[1] not in get_args(Purpose) or not all(parts):
            return None
        return cls(parts[0], cast("Purpose", parts[1]), parts[2])

    @property
    def state(self) -> Secret[str]:
        return Secret(f"{self.linking}.{self.purpose}.{self.nonce}")


class Granted(NamedTuple):
    access_token: Secret[str]
    refresh_token: Secret[str] | None


class _Answer(msgspec.Struct, frozen=True):
    access_token: str
    refresh_token: str | None = None


class _Error(msgspec.Struct, frozen=True):
    error: str = ""


class OAuthClient(HttpClient):
    """`async with` it. Raise PlatformRefusedError if a code or token is invalid, or not valid any more."""

    def __init__(self, provider: Provider, redirect_uri: str, *, options: ClientOptions = DEFAULTS) -> None:
        super().__init__("Meetup", options)
        self.provider = provider
        self._redirect_uri = redirect_uri

    def authorization(self, flow: Flow) -> str:
        """Return the address to send the browser to."""
        digest = hashlib.sha256(self._verifier(flow).encode()).digest()
        asked = {
            "client_id": self.provider.client_id,
            "response_type": "code",
            "redirect_uri": self._redirect_uri,
            "scope": " ".join(self.provider.rsvp_scopes if flow.purpose == "rsvp" else self.provider.scopes),
            "state": flow.state.reveal(),
            "code_challenge": _base64(digest),
            "code_challenge_method": "S256",
        }
        return f"{self.provider.authorize_url}?{urlencode(asked)}"

    async def exchange(self, flow: Flow, code: str) -> Granted:
        """Return the tokens for a code. It works once, so a request whose answer is lost is not repeated."""
        return await self._granted(
            "a code",
            {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": self._redirect_uri,
                "code_verifier": self._verifier(flow),
            },
        )

    async def refresh(self, token: Secret[str]) -> Granted:
        """Return new tokens. If the answer is lost, the provider may have invalidated the old one."""
        return await self._granted(
            "a refresh", {"grant_type": "refresh_token", "refresh_token": token.reveal()}
        )

    def _verifier(self, flow: Flow) -> str:
        key = self.provider.client_secret.reveal().encode()
        return _base64(hmac.digest(key, b"pkce " + flow.state.reveal().encode(), "sha256"))

    async def _granted(self, what: str, given: dict[str, str]) -> Granted:
        us = {
            "client_id": self.provider.client_id,
            "client_secret": self.provider.client_secret.reveal(),
        }

        async def attempt() -> Granted | Again:
            answer = await self._client.post(self.provider.token_url, data=us | given)
            if answer.is_success:
                return _granted(answer, what)
            limited = answer.status_code == HTTPStatus.TOO_MANY_REQUESTS
            if limited or is_worth_repeating(answer.status_code):
                return Again(f"status {answer.status_code}", maybe_done=False)
            raise _refused(answer, what)

        return await self._ask(f"{what} for tokens", attempt, repeatable=False)


def _granted(answer: httpx.Response, what: str) -> Granted:
    try:
        tokens = msgspec.json.decode(answer.content, type=_Answer)
    except MALFORMED:
        # The error of decoding would quote tokens.
        raise PlatformTroubleError("Meetup", f"{what} for tokens", "its answer has no tokens") from None
    refresh = Secret(tokens.refresh_token) if tokens.refresh_token else None
    return Granted(Secret(tokens.access_token), refresh)


def _refused(answer: httpx.Response, what: str) -> HttpRefusedError:
    try:
        code = msgspec.json.decode(answer.content, type=_Error).error
    except MALFORMED:
        code = ""
    remedy = "Authorize again; if that does not help, check the client's id and secret."
    return HttpRefusedError("Meetup", f"{what} for tokens", answer.status_code, code, remedy)


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
