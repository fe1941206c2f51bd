"""Discord's REST API, as far as the bot needs it: channels, roles, members and messages of one guild.

What Discord says is not there is None or False. Only its own "Unknown Channel" and kin count as that: another
404, such as one of a proxy or of an unknown guild, is an error, since something is deleted because of it.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, NamedTuple, TypeVar, Unpack
from urllib.parse import quote

import httpx
import msgspec

from keywright import Secret
from keywright_meetup.service.http_retry import (
    HttpApi,
    Manner,
    backoff,
    described,
    never_sent,
    worth_repeating,
)
from keywright_meetup.service.rate_limits import RateLimits, Route
from keywright_service.errors import PlatformRefusedError, PlatformTroubleError

__all__ = ["API_URL", "Channel", "DiscordApi", "Member", "Overwrite", "Role"]

API_URL = "https://discord.com/api/v10"
TEXT_CHANNEL = 0
_UNKNOWN = {10003, 10007, 10008, 10011, 10013}  # channel, member, message, role, user
_LONGEST_NONCE = 25
_WITH_BUCKETS = ("/channels/{}", "/guilds/{}")  # each of these has its own

T = TypeVar("T")
Snowflake = Annotated[str, msgspec.Meta(pattern="^[0-9]{1,20}$")]
Bits = Annotated[str, msgspec.Meta(pattern="^[0-9]{1,40}$")]
Json = dict[str, Any]


class Overwrite(msgspec.Struct, frozen=True):
    """What a role (type 0) or member (type 1) may do in a channel; bits as text, as Discord has them."""

    id: Snowflake
    type: int
    allow: Bits = "0"
    deny: Bits = "0"


class Channel(msgspec.Struct, frozen=True):
    id: Snowflake
    name: str | None = None
    type: int = TEXT_CHANNEL
    topic: str | None = None
    parent_id: Snowflake | None = None
    permission_overwrites: tuple[Overwrite, ...] = ()


class Role(msgspec.Struct, frozen=True):
    id: Snowflake
    name: str


class _User(msgspec.Struct, frozen=True):
    id: Snowflake
    username: str = ""
    global_name: str | None = None


class Member(msgspec.Struct, frozen=True):
    roles: tuple[Snowflake, ...]
    nick: str | None = None
    user: _User | None = None


class _Refusal(msgspec.Struct, frozen=True):
    """The body of an error, whatever of it is there."""

    message: str = ""
    code: int = 0
    retry_after: float | None = None
    everything: bool = msgspec.field(default=False, name="global")


class _Again(NamedTuple):
    """An attempt that may be repeated, unless what was asked may have been done and must not be twice."""

    reason: str
    maybe_done: bool
    pauses: bool = True


class DiscordApi(HttpApi):
    """The API as one bot sees it, in one guild. `async with` it."""

    def __init__(
        self, token: Secret[str], guild: int, *, url: str = API_URL, **manner: Unpack[Manner]
    ) -> None:
        super().__init__(**manner)
        self.guild = guild
        self._url = url
        self._token = token
        self._limits = RateLimits(sleep=self._sleep)

    async def me(self) -> int:
        """The bot's own id."""
        found = await self._found(_User, "GET", "/users/@me")
        return int(_must(found).id)

    async def name_of(self, user: int) -> str | None:
        """What a user is called; None when there is no such user."""
        found = await self._found(_User, "GET", "/users/{}", user)
        return None if found is None else found.global_name or found.username

    async def channels(self) -> dict[int, Channel]:
        found = await self._found(tuple[Channel, ...], "GET", "/guilds/{}/channels", self.guild)
        return {int(each.id): each for each in _must(found)}

    async def channel(self, channel: int) -> Channel | None:
        return await self._found(Channel, "GET", "/channels/{}", channel)

    async def create_channel(self, **given: Any) -> Channel:
        """Not repeated when the answer is lost: PlatformTroubleError means that it may have been made."""
        body = {"type": TEXT_CHANNEL, **given}
        found = await self._found(
            Channel, "POST", "/guilds/{}/channels", self.guild, body=body, repeatable=False
        )
        return _must(found)

    async def modify_channel(self, channel: int, **given: Any) -> Channel | None:
        return await self._found(Channel, "PATCH", "/channels/{}", channel, body=given)

    async def delete_channel(self, channel: int) -> bool:
        """False when there is none, which is as good."""
        return await self._answer("DELETE", "/channels/{}", channel) is not None

    async def roles(self) -> dict[int, Role]:
        found = await self._found(tuple[Role, ...], "GET", "/guilds/{}/roles", self.guild)
        return {int(each.id): each for each in _must(found)}

    async def role(self, role: int) -> Role | None:
        return await self._found(Role, "GET", "/guilds/{}/roles/{}", self.guild, role)

    async def create_role(self, **given: Any) -> Role:
        """Not repeated when the answer is lost: PlatformTroubleError means that it may have been made."""
        found = await self._found(Role, "POST", "/guilds/{}/roles", self.guild, body=given, repeatable=False)
        return _must(found)

    async def modify_role(self, role: int, **given: Any) -> Role | None:
        return await self._found(Role, "PATCH", "/guilds/{}/roles/{}", self.guild, role, body=given)

    async def delete_role(self, role: int) -> bool:
        """False when there is none, which is as good."""
        return await self._answer("DELETE", "/guilds/{}/roles/{}", self.guild, role) is not None

    async def member(self, user: int) -> Member | None:
        return await self._found(Member, "GET", "/guilds/{}/members/{}", self.guild, user)

    async def add_role(self, user: int, role: int) -> bool:
        """False when the guild has no such member or role."""
        route = "/guilds/{}/members/{}/roles/{}"
        return await self._answer("PUT", route, self.guild, user, role) is not None

    async def post(self, channel: int, content: str, nonce: str) -> bool:
        """Post a message, once however often it is tried; False when there is no such channel."""
        body = {
            "content": content,
            "nonce": nonce[:_LONGEST_NONCE],
            "enforce_nonce": True,
            "allowed_mentions": {"parse": ["roles"]},
        }
        return await self._answer("POST", "/channels/{}/messages", channel, body=body) is not None

    async def _found(self, kind: type[T], method: str, template: str, *ids: int, **how: Any) -> T | None:
        answer = await self._answer(method, template, *ids, **how)
        if answer is None:
            return None
        try:
            return msgspec.json.decode(answer.content, type=kind)
        except msgspec.MsgspecError as error:
            raise PlatformTroubleError("Discord", f"{method} {template}", f"its answer: {error}") from error

    async def _answer(
        self, method: str, template: str, *ids: int, body: Json | None = None, repeatable: bool = True
    ) -> httpx.Response | None:
        """The answer, through limits and trouble; None where Discord does not know what the path names."""
        route = Route(method, template, str(ids[0]) if template.startswith(_WITH_BUCKETS) else "")
        path, reason = template.format(*ids), ""
        for attempt in range(self._attempts):
            async with self._limits.turn(route):
                got = await self._tried(route, path, body)
            if not isinstance(got, _Again):
                return got
            reason = got.reason
            if got.maybe_done and not repeatable:
                break
            if got.pauses and attempt < self._attempts - 1:
                await self._sleep(backoff(attempt))
        raise PlatformTroubleError("Discord", f"{method} {path}", reason)

    async def _tried(self, route: Route, path: str, body: Json | None) -> httpx.Response | _Again | None:
        try:
            answer = await self._sent(route.method, path, body)
        except httpx.HTTPError as error:
            return _Again(described(error), maybe_done=not never_sent(error))
        self._limits.note(route, answer.headers)
        if answer.is_success:
            return answer
        asked, reason = f"{route.method} {path}", f"status {answer.status_code}"
        if answer.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            self._note_refusal(route, answer)
            return _Again(reason, maybe_done=False, pauses=False)
        if worth_repeating(answer.status_code):
            return _Again(reason, maybe_done=True)
        _require_absence(answer, asked)
        return None

    async def _sent(self, method: str, path: str, body: Json | None) -> httpx.Response:
        headers = {
            "Authorization": f"Bot {self._token.reveal()}",
            "User-Agent": "DiscordBot (https://pypi.org/project/keywright, 0.1)",
            "X-Audit-Log-Reason": quote("Keywright: Meetup events"),
        }
        return await self._client.request(method, f"{self._url}{path}", headers=headers, json=body)

    def _note_refusal(self, route: Route, answer: httpx.Response) -> None:
        """A proxy in front of Discord refuses with a header alone, and means everything."""
        told = _refusal(answer)
        seconds = told.retry_after
        if seconds is None:
            header = answer.headers.get("Retry-After", "")
            seconds = float(header) if header.replace(".", "", 1).isdigit() else 1.0
        everything = told.everything or told.retry_after is None
        self._limits.refused(route, seconds, everything=everything)


_REMEDIES = {
    401: "Give the bot's token of the developer portal.",
    403: "Give the bot's role the permissions Manage Channels and Manage Roles, above the roles it makes.",
    404: "Check the guild's id and the API's address.",
}


def _require_absence(answer: httpx.Response, asked: str) -> None:
    """Raise unless Discord itself says that it does not know what was named."""
    told = _refusal(answer)
    if answer.status_code == HTTPStatus.NOT_FOUND and told.code in _UNKNOWN:
        return
    raise PlatformRefusedError(
        "Discord",
        asked,
        f"status {answer.status_code} {told.message}".strip(),
        _REMEDIES.get(answer.status_code, "Check the configuration of the guild and the API's address."),
    )


def _refusal(answer: httpx.Response) -> _Refusal:
    try:
        return msgspec.json.decode(answer.content, type=_Refusal)
    except msgspec.MsgspecError:
        return _Refusal()


def _must(found: T | None) -> T:
    """What cannot be unknown to Discord, unless it answers nonsense."""
    if found is None:
        raise PlatformTroubleError("Discord", "a request", "it does not know what it must know")
    return found
