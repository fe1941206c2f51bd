"""What a bot does in one guild: channels, roles, members and messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keywright import Secret
from keywright_service.discord_rest.client import API_URL, DiscordRest, required
from keywright_service.discord_rest.objects import TEXT_CHANNEL, Channel, Member, Role
from keywright_service.http_client import DEFAULTS, ClientOptions

__all__ = ["DiscordGuild"]

_LONGEST_NONCE = 25
_OF_ROLES = {"parse": ["roles"]}


class DiscordGuild(DiscordRest):
    """The API as one bot sees it, in one guild. `async with` it."""

    def __init__(
        self,
        token: Secret[str],
        guild: int,
        *,
        url: str = API_URL,
        audit_reason: str | None = None,
        options: ClientOptions = DEFAULTS,
    ) -> None:
        super().__init__(token, url=url, audit_reason=audit_reason, options=options)
        self.guild = guild

    async def channels(self) -> dict[int, Channel]:
        found = await self._get(tuple[Channel, ...], "GET", "/guilds/{}/channels", self.guild)
        return {int(each.id): each for each in required(found)}

    async def channel(self, channel: int) -> Channel | None:
        return await self._get(Channel, "GET", "/channels/{}", channel)

    async def create_channel(self, **given: Any) -> Channel:
        """Not repeated when the answer is lost: PlatformTroubleError means that it may have been made."""
        body = {"type": TEXT_CHANNEL, **given}
        return required(
            await self._get(Channel, "POST", "/guilds/{}/channels", self.guild, body=body, repeatable=False)
        )

    async def modify_channel(self, channel: int, **given: Any) -> Channel | None:
        return await self._get(Channel, "PATCH", "/channels/{}", channel, body=given)

    async def delete_channel(self, channel: int) -> bool:
        """Return False when there is none, which is as good."""
        return await self._request(bytes, "DELETE", "/channels/{}", channel) is not None

    async def roles(self) -> dict[int, Role]:
        found = await self._get(tuple[Role, ...], "GET", "/guilds/{}/roles", self.guild)
        return {int(each.id): each for each in required(found)}

    async def role(self, role: int) -> Role | None:
        return await self._get(Role, "GET", "/guilds/{}/roles/{}", self.guild, role)

    async def create_role(self, **given: Any) -> Role:
        """Not repeated when the answer is lost: PlatformTroubleError means that it may have been made."""
        return required(
            await self._get(Role, "POST", "/guilds/{}/roles", self.guild, body=given, repeatable=False)
        )

    async def modify_role(self, role: int, **given: Any) -> Role | None:
        return await self._get(Role, "PATCH", "/guilds/{}/roles/{}", self.guild, role, body=given)

    async def delete_role(self, role: int) -> bool:
        """Return False when there is none, which is as good."""
        return await self._request(bytes, "DELETE", "/guilds/{}/roles/{}", self.guild, role) is not None

    async def member(self, user: int) -> Member | None:
        return await self._get(Member, "GET", "/guilds/{}/members/{}", self.guild, user)

    async def add_role(self, user: int, role: int) -> bool:
        """Return False when the guild has no such member or role."""
        route = "/guilds/{}/members/{}/roles/{}"
        return await self._request(bytes, "PUT", route, self.guild, user, role) is not None

    async def remove_role(self, user: int, role: int) -> bool:
        """Return False when the guild has no such member or role."""
        route = "/guilds/{}/members/{}/roles/{}"
        return await self._request(bytes, "DELETE", route, self.guild, user, role) is not None

    async def commands(self, application: int) -> list[dict[str, Any]]:
        """Return the application's commands in this guild, as Discord has them."""
        route = "/applications/{}/guilds/{}/commands"
        return required(await self._get(list[dict[str, Any]], "GET", route, application, self.guild))

    async def post(
        self,
        channel: int,
        content: str,
        nonce: str,
        *,
        mentions: Mapping[str, Any] = _OF_ROLES,
        components: Sequence[Mapping[str, Any]] = (),
    ) -> bool:
        """Post a message, once however often it is tried; return False if the channel does not exist.

        `mentions` says whom it may notify, `components` are rows of buttons; both in Discord's form.
        """
        body = {
            "content": content,
            "nonce": nonce[:_LONGEST_NONCE],
            "enforce_nonce": True,
            "allowed_mentions": mentions,
            "components": list(components),
        }
        return await self._request(bytes, "POST", "/channels/{}/messages", channel, body=body) is not None
