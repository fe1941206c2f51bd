"""The client of Discord's REST API: requests through rate limits and outages.

What Discord says is not there is None or False. Only its own "Unknown Channel" and the like count as that:
another 404, such as one of a proxy or of an unknown guild, is an error, because callers delete what is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from keywright import Secret
from keywright_service.configuration import ConfigurationError
from keywright_service.discord_rest.objects import Application, GatewayInfo, User
from keywright_service.discord_rest.rate_limits import RateLimits, Route
from keywright_service.errors import HttpRefusedError, PlatformTroubleError
from keywright_service.http_client import (
    DEFAULTS,
    MALFORMED,
    Again,
    ClientOptions,
    HttpClient,
    is_worth_repeating,
    retry_after,
)

__all__ = ["API_URL", "DiscordRest", "bot_token", "required"]

API_URL = "https://discord.com/api/v10"
# channel, member, message, role, user, webhook, interaction
_UNKNOWN = {10003, 10007, 10008, 10011, 10013, 10015, 10062}
_LONGEST_REASON = 300
_ANSWERED = "already been acknowledged"
_WITH_BUCKETS = ("/channels/{}", "/guilds/{}")  # each of these has its own

T = TypeVar("T")


class _Refusal(msgspec.Struct, frozen=True):
    """The body of an error, whatever of it is there."""

    message: str = ""
    code: int = 0
    errors: Any = None
    """What is wrong with each field: objects by their names, down to lists of `_errors`."""
    retry_after: float | None = None
    everything: bool = msgspec.field(default=False, name="global")


_REMEDIES = {
    401: "Give the bot's token of the developer portal.",
    403: "Give the bot's role the permissions Manage Channels and Manage Roles, above the roles it makes.",
    404: "Check the guild's id and the API's address.",
}


def bot_token(setting: str, token: Secret[str]) -> Secret[str]:
    """Return a bot's token without the word `Bot`, with which some write it.

    Raise ConfigurationError, which names the setting and not the token, if it has characters that cannot be
    sent: an HTTP client would quote them in its error.
    """
    text = token.reveal().strip().removeprefix("Bot ").strip()
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ConfigurationError(
            setting, "has characters that no token has", "Copy it again from the developer portal."
        )
    return Secret(text)


class DiscordRest(HttpClient):
    """The API as one bot sees it. `async with` it.

    Raise PlatformTroubleError for what Discord gave no certain answer to, HttpRefusedError for what it
    refused.
    """

    def __init__(
        self,
        token: Secret[str],
        *,
        url: str = API_URL,
        audit_reason: str | None = None,
        options: ClientOptions = DEFAULTS,
    ) -> None:
        super().__init__("Discord", options)
        self.url = url
        self._token = token
        self._headers = {"User-Agent": "DiscordBot (https://pypi.org/project/keywright, 0.1)"}
        if audit_reason is not None:
            self._headers["X-Audit-Log-Reason"] = quote(audit_reason)
        self._limits = RateLimits(sleep=options.sleep)

    async def gateway(self) -> GatewayInfo:
        """Return where and how to connect to the gateway."""
        return required(await self._get(GatewayInfo, "GET", "/gateway/bot"))

    async def me(self) -> int:
        """Return the bot's own id."""
        return int(required(await self._get(User, "GET", "/users/@me")).id)

    async def find_user(self, user: int) -> User | None:
        """Return a user; None if the user does not exist."""
        return await self._get(User, "GET", "/users/{}", user)

    async def resource(self, template: str, *ids: int) -> bytes | None:
        """Return the answer to a GET as it came; None if Discord does not know what it names."""
        return await self._request(bytes, "GET", template, *ids)

    async def replace_commands(
        self, application: int, commands: Sequence[Mapping[str, Any]], *, guild: int | None = None
    ) -> None:
        """Make these all commands of an application: the global ones, or those of a guild."""
        template = "/applications/{}/commands" if guild is None else "/applications/{}/guilds/{}/commands"
        ids = (application,) if guild is None else (application, guild)
        required(await self._request(bytes, "PUT", template, *ids, body=commands))

    async def answer_interaction(self, interaction: int, token: str, response: Mapping[str, Any]) -> bool:
        """Answer an interaction within its three seconds. Return False if it is over, or was answered before.

        The token comes with the interaction. It is not part of any error.
        """
        template = "/interactions/{}/{}/callback"
        try:
            found = await self._request(bytes, "POST", template, interaction, Secret(token), body=response)
        except HttpRefusedError as error:
            if error.status == HTTPStatus.BAD_REQUEST and _ANSWERED in error.reason:
                return False
            raise
        return found is not None

    async def application(self) -> Application:
        """Return the application of the bot."""
        return required(await self._get(Application, "GET", "/applications/@me"))

    async def set_interactions_endpoint(self, url: str) -> Application:
        """Have Discord send interactions to this address, which it tries at once."""
        body = {"interactions_endpoint_url": url}
        return required(await self._get(Application, "PATCH", "/applications/@me", body=body))

    async def edit_reply(self, application: int, token: Secret[str], **given: Any) -> bool:
        """Write the reply to an interaction that was deferred; return False when its token has expired.

        The token is that of the interaction, and is valid for 15 minutes.
        """
        route = "/webhooks/{}/{}/messages/@original"
        return await self._request(bytes, "PATCH", route, application, token, body=given) is not None

    async def _get(
        self, kind: type[T], method: str, template: str, *ids: int | Secret[str], **request: Any
    ) -> T | None:
        """Return the answer of a request as this type; None where Discord does not know what it names."""
        decode = msgspec.json.Decoder(kind).decode
        return await self._request(decode, method, template, *ids, **request)

    async def _request(
        self,
        decode: Callable[[bytes], T],
        method: str,
        template: str,
        *ids: int | Secret[str],
        body: object = None,
        repeatable: bool = True,
    ) -> T | None:
        """Make a request through limits and outages. An answer that cannot be decoded is asked for again.

        Errors do not show secrets of the path.
        """
        route = Route(method, template, str(ids[0]) if template.startswith(_WITH_BUCKETS) else "")
        path = template.format(
            *(quote(each.reveal(), safe="") if isinstance(each, Secret) else each for each in ids)
        )
        asked = f"{method} {template.format(*('…' if isinstance(each, Secret) else each for each in ids))}"

        async def attempt() -> T | Again | None:
            async with self._limits.turn(route):
                headers = {"Authorization": f"Bot {self._token.reveal()}", **self._headers}
                answer = await self._client.request(method, f"{self.url}{path}", headers=headers, json=body)
                self._limits.note(route, answer.headers)
                if answer.status_code == HTTPStatus.TOO_MANY_REQUESTS:
                    self._note_refusal(route, answer)
                    # The next turn waits for as long as the limit lasts.
                    return Again("status 429", maybe_done=False, after=0.0)
            if is_worth_repeating(answer.status_code):
                return Again(f"status {answer.status_code}", maybe_done=True, after=retry_after(answer))
            if not answer.is_success:
                _require_absence(answer, asked)
                return None
            try:
                return decode(answer.content)
            except MALFORMED as error:
                return Again(f"its answer: {error}", maybe_done=True)

        return await self._ask(asked, attempt, repeatable=repeatable)

    def _note_refusal(self, route: Route, answer: httpx.Response) -> None:
        """A proxy in front of Discord refuses with a header alone, and means everything."""
        refusal = _refusal(answer)
        by_proxy = refusal.retry_after is None
        seconds = retry_after(answer) if by_proxy else refusal.retry_after
        self._limits.refused(
            route, 1.0 if seconds is None else seconds, everything=by_proxy or refusal.everything
        )


def _require_absence(answer: httpx.Response, asked: str) -> None:
    """Raise HttpRefusedError unless Discord itself says that it does not know what was named."""
    refusal = _refusal(answer)
    if answer.status_code == HTTPStatus.NOT_FOUND and refusal.code in _UNKNOWN:
        return
    remedy = _REMEDIES.get(answer.status_code, "Check the configuration of the guild and the API's address.")
    reason = ": ".join([refusal.message, *islice(_of_fields(refusal.errors), 1)])
    raise HttpRefusedError("Discord", asked, answer.status_code, reason, remedy)


def _of_fields(errors: Any) -> Iterator[str]:
    """Yield the texts about single fields, without the dot at their ends."""
    for name, found in errors.items() if isinstance(errors, dict) else ():
        if name != "_errors":
            yield from _of_fields(found)
        elif isinstance(found, list) and found and isinstance(found[0], dict):
            yield str(found[0].get("message", "")).rstrip(".")[:_LONGEST_REASON]


def _refusal(answer: httpx.Response) -> _Refusal:
    try:
        return msgspec.json.decode(answer.content, type=_Refusal)
    except MALFORMED:
        return _Refusal()


def required(found: T | None) -> T:
    """Return what cannot be unknown to Discord; raise PlatformTroubleError if it is."""
    if found is None:
        raise PlatformTroubleError("Discord", "a request", "it does not know what it must know")
    return found
