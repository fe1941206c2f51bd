"""The objects that only the REST API of the simulated Discord returns, made from its world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from keywright_discord.simulator.world import SimulatedWorld
from keywright_discord.traffic.objects import TEXT

__all__ = ["OF_A_GUILD", "OfGuild", "SimulatedInteraction", "application", "command", "interaction"]

Json = dict[str, Any]
OfGuild: TypeAlias = Callable[[SimulatedWorld, str], Json | list[Json]]

_MADE_AT = "2026-01-02T03:04:05+00:00"
_SLASH_COMMAND = 1
_APPLICATION_COMMAND = 2


@dataclass(eq=False)
class SimulatedInteraction:
    """The use of a command, and the answer of the bot."""

    id: str
    token: str
    data: Json
    response: Json | None = None
    """The body of the bot's callback; None before it came."""


def application(world: SimulatedWorld) -> Json:
    bot = world.bot
    return {
        **world.application,
        "name": bot["username"],
        "icon": None,
        "description": "",
        "summary": "",
        "type": None,
        "bot": bot,
        "bot_public": True,
        "bot_require_code_grant": False,
        "verify_key": "00" * 32,
        "hook": True,
        "owner": bot,
        "team": None,
        "redirect_uris": [],
        "interactions_endpoint_url": None,
        "role_connections_verification_url": None,
        "integration_types_config": {"0": {}},
        "approximate_guild_count": len(world.guilds),
        "approximate_user_install_count": 0,
        "approximate_user_authorization_count": 0,
        "event_webhooks_url": None,
        "event_webhooks_status": 1,
        "event_webhooks_types": [],
    }


def command(world: SimulatedWorld, application: str, guild: str | None, given: Mapping[str, Any]) -> Json:
    """Return a command as Discord returns it after it was created."""
    made = {
        "id": world.new_id(),
        "application_id": application,
        "version": "1",
        "type": _SLASH_COMMAND,
        "description": "",
        "options": [],
        "default_member_permissions": None,
        "nsfw": False,
        **given,
    }
    return made if guild is None else {**made, "guild_id": guild}


def interaction(world: SimulatedWorld, used: Json, guild: str, options: list[Json]) -> SimulatedInteraction:
    """Return the use of a command by a member, in a text channel."""
    said = world.message("", guild=guild)
    identity = world.new_id()
    token = f"interaction-{identity}"
    data: Json = {
        "id": identity,
        "application_id": used["application_id"],
        "type": _APPLICATION_COMMAND,
        "token": token,
        "version": 1,
        "guild_id": guild,
        "channel_id": said["channel_id"],
        "member": {**said["member"], "user": said["author"], "permissions": "0"},
        "data": {"id": used["id"], "name": used["name"], "type": used["type"], "options": options},
        "locale": "en-US",
        "guild_locale": "en-US",
        "app_permissions": "0",
        "entitlements": [],
        "authorizing_integration_owners": {"0": guild},
        "context": 0,
    }
    return SimulatedInteraction(identity, token, data)


def _webhooks(world: SimulatedWorld, guild: str) -> list[Json]:
    return [
        {
            "id": str(int(guild) + 1),
            "type": 1,
            "guild_id": guild,
            "channel_id": _text_channel(world, guild)["id"],
            "name": "Announcements",
            "avatar": None,
            "token": f"webhook-{guild}",
            "application_id": None,
            "user": _owner(world, guild),
        }
    ]


def _templates(world: SimulatedWorld, guild: str) -> list[Json]:
    owner = _owner(world, guild)
    return [
        {
            "code": f"template{guild}",
            "name": "Friends & Family",
            "description": None,
            "usage_count": 0,
            "creator_id": owner["id"],
            "creator": owner,
            "created_at": _MADE_AT,
            "updated_at": _MADE_AT,
            "source_guild_id": guild,
            "serialized_source_guild": {"name": "Friends & Family", "channels": [], "roles": []},
            "is_dirty": None,
        }
    ]


def _widget(world: SimulatedWorld, guild: str) -> Json:
    return {
        "id": guild,
        "name": _whole(world, guild)["name"],
        "instant_invite": None,
        "channels": [],
        "members": [],
        "presence_count": 0,
    }


def _welcome_screen(world: SimulatedWorld, guild: str) -> Json:
    channel = {"channel_id": _text_channel(world, guild)["id"], "description": "Say hello", "emoji_id": None}
    return {"description": "Welcome", "welcome_channels": [{**channel, "emoji_name": "👋"}]}


def _invites(world: SimulatedWorld, guild: str) -> list[Json]:
    channel = _text_channel(world, guild)
    return [
        {
            "type": 0,
            "code": f"invite{guild}",
            "guild": {"id": guild, "name": _whole(world, guild)["name"]},
            "guild_id": guild,
            "channel": {"id": channel["id"], "name": channel["name"], "type": TEXT},
            "inviter": _owner(world, guild),
            "uses": 0,
            "max_uses": 0,
            "max_age": 86400,
            "temporary": False,
            "created_at": _MADE_AT,
        }
    ]


def _automod_rules(world: SimulatedWorld, guild: str) -> list[Json]:
    return [
        {
            "id": str(int(guild) + 2),
            "guild_id": guild,
            "name": "No links",
            "creator_id": _owner(world, guild)["id"],
            "event_type": 1,
            "trigger_type": 1,
            "trigger_metadata": {"keyword_filter": ["http*"], "regex_patterns": [], "allow_list": []},
            "actions": [{"type": 1, "metadata": {}}],
            "enabled": True,
            "exempt_roles": [],
            "exempt_channels": [],
        }
    ]


def _integrations(world: SimulatedWorld, guild: str) -> list[Json]:
    """Return the integration of the bot itself; unlike the gateway, the API sends no `guild_id`."""
    bot = world.bot
    about = {
        "id": world.application["id"],
        "name": bot["username"],
        "icon": None,
        "description": "",
        "bot": bot,
    }
    return [
        {
            "id": str(int(guild) + 3),
            "name": bot["username"],
            "type": "discord",
            "enabled": True,
            "account": {"id": bot["id"], "name": bot["username"]},
            "application": about,
            "scopes": ["bot", "applications.commands"],
            "user": _owner(world, guild),
        }
    ]


OF_A_GUILD: Mapping[str, OfGuild] = {
    "webhooks": _webhooks,
    "templates": _templates,
    "widget.json": _widget,
    "welcome-screen": _welcome_screen,
    "invites": _invites,
    "auto-moderation/rules": _automod_rules,
    "integrations": _integrations,
}
"""The route below the guild, and what it returns."""


def _whole(world: SimulatedWorld, guild: str) -> Json:
    return world.guild_create(guild) or {"name": "", "owner_id": world.bot["id"], "channels": []}


def _text_channel(world: SimulatedWorld, guild: str) -> Json:
    found = [each for each in _whole(world, guild)["channels"] if each["type"] == TEXT]
    return found[0] if found else {"id": guild, "name": "general"}


def _owner(world: SimulatedWorld, guild: str) -> Json:
    user: Json = next(iter(world.members(guild).values()))["user"]
    return user
