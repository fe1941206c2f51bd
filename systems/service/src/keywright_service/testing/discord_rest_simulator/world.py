"""The guild that the simulated Discord has. Ids are beyond 2**53, as real ones are."""

from __future__ import annotations

import itertools
from typing import Any

__all__ = ["Guild"]

Json = dict[str, Any]

FIRST_ID = 1_234_567_890_123_456_789
TEXT_CHANNEL, CATEGORY = 0, 4


class Guild:
    """One guild with its bot. A test reads and changes it as people in the guild would."""

    def __init__(self) -> None:
        self._ids = itertools.count(FIRST_ID, 7)
        self._joins = itertools.count()
        self.id = self.new_id()
        self.bot = self.new_id()
        self.channels: dict[int, Json] = {}
        # A guild's @everyone role has the id of the guild.
        self.roles: dict[int, Json] = {self.id: self._role(self.id, {"name": "@everyone"})}
        self.members: dict[int, set[int]] = {self.bot: set()}
        self.joined_at: dict[int, str] = {}
        self.names: dict[int, str] = {self.bot: "keywright"}
        self.messages: list[tuple[int, str]] = []
        self.components: list[list[Json]] = []
        """The rows of buttons of each message."""
        self.application: Json = {
            "id": str(self.bot),
            "name": "keywright",
            "verify_key": "",
            "interactions_endpoint_url": None,
        }
        self.commands: list[Json] = []
        self.permissions: dict[int, int] = {}
        """The bits of members who may do more than others."""
        self.replies: dict[str, Json] = {}
        """What the bot wrote instead of deferred replies, by the token of the interaction."""
        self.tokens: set[str] = set()
        """The tokens of interactions that are valid."""
        self._nonces: dict[tuple[int, str], int] = {}

    def new_id(self) -> int:
        return next(self._ids)

    def join(self, name: str) -> int:
        """Somebody becomes a member; their id."""
        user = self.new_id()
        self.names[user] = name
        self.rejoin(user)
        return user

    def leave(self, user: int) -> None:
        """Somebody leaves the guild, or is kicked: their roles are gone."""
        del self.members[user]

    def rejoin(self, user: int) -> None:
        self.members[user] = set()
        self.joined_at[user] = f"2026-01-01T00:00:00.{next(self._joins):06}+00:00"

    def add_channel(self, name: str = "general", kind: int = TEXT_CHANNEL, **given: Any) -> int:
        """Somebody else makes a channel; its id."""
        return self.make_channel({"name": name, "type": kind, **given})

    def add_category(self, name: str) -> int:
        return self.add_channel(name, CATEGORY)

    def make_channel(self, given: Json) -> int:
        channel = self.new_id()
        self.channels[channel] = {
            "id": str(channel),
            "type": given.get("type", TEXT_CHANNEL),
            "guild_id": str(self.id),
            "name": given["name"].lower().replace(" ", "-"),
            "topic": given.get("topic"),
            "parent_id": given.get("parent_id"),
            "permission_overwrites": list(given.get("permission_overwrites", ())),
            "position": len(self.channels),
            "nsfw": False,
        }
        return channel

    def make_role(self, given: Json) -> int:
        role = self.new_id()
        self.roles[role] = self._role(role, given)
        return role

    def delete_role(self, role: int) -> None:
        del self.roles[role]
        for roles in self.members.values():
            roles.discard(role)

    def set_commands(self, given: list[Json]) -> None:
        """Discord adds ids and defaults."""
        self.commands = [
            {
                "id": str(self.new_id()),
                "application_id": str(self.bot),
                "guild_id": str(self.id),
                "version": str(self.new_id()),
                "default_member_permissions": None,
                "nsfw": False,
                "type": 1,
                **each,
            }
            for each in given
        ]

    def post(
        self, channel: int, content: str, nonce: str | None, components: list[Json] | None = None
    ) -> int:
        """A message; one with the same nonce is posted once."""
        if nonce is not None and (channel, nonce) in self._nonces:
            return self._nonces[channel, nonce]
        message = self.new_id()
        self.messages.append((channel, content))
        self.components.append(components or [])
        if nonce is not None:
            self._nonces[channel, nonce] = message
        return message

    def roles_of(self, user: int) -> set[str]:
        """The names of somebody's roles."""
        return {self.roles[role]["name"] for role in self.members[user]}

    @property
    def text_channels(self) -> list[Json]:
        return [each for each in self.channels.values() if each["type"] == TEXT_CHANNEL]

    @property
    def made_roles(self) -> list[Json]:
        """All but @everyone."""
        return [each for role, each in self.roles.items() if role != self.id]

    def _role(self, role: int, given: Json) -> Json:
        return {
            "id": str(role),
            "name": given.get("name", "new role"),
            "permissions": given.get("permissions", "0"),
            "color": given.get("color", 0),
            "hoist": False,
            "managed": False,
            "mentionable": given.get("mentionable", False),
            "position": 1,
        }
