"""The events that a session receives with its intents, and the fields that it sees of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from keywright_discord.gateway.intents import Intents

__all__ = ["allowed", "seen_with"]

Json = dict[str, Any]


_LARGE_GUILD = 75_000


def _events(prefix: str, endings: Iterable[str], intent: Intents) -> dict[str, Intents]:
    return {f"{prefix}_{ending}": intent for ending in endings}


_CHANGES = ("CREATE", "UPDATE", "DELETE")
_REACTIONS = ("ADD", "REMOVE", "REMOVE_ALL", "REMOVE_EMOJI")
_MESSAGES = (*_CHANGES, "DELETE_BULK")

_IN_GUILDS: Mapping[str, Intents] = {
    **_events("GUILD", _CHANGES, Intents.GUILDS),
    **_events("GUILD_ROLE", _CHANGES, Intents.GUILDS),
    **_events("CHANNEL", (*_CHANGES, "PINS_UPDATE"), Intents.GUILDS),
    **_events("THREAD", (*_CHANGES, "LIST_SYNC", "MEMBER_UPDATE"), Intents.GUILDS),
    **_events("STAGE_INSTANCE", _CHANGES, Intents.GUILDS),
    **_events("VOICE_CHANNEL", ("STATUS_UPDATE", "START_TIME_UPDATE"), Intents.GUILDS),
    **_events("GUILD_MEMBER", ("ADD", "UPDATE", "REMOVE"), Intents.GUILD_MEMBERS),
    "THREAD_MEMBERS_UPDATE": Intents.GUILD_MEMBERS,
    **_events("GUILD_BAN", ("ADD", "REMOVE"), Intents.GUILD_MODERATION),
    "GUILD_AUDIT_LOG_ENTRY_CREATE": Intents.GUILD_MODERATION,
    **_events("GUILD", ("EMOJIS_UPDATE", "STICKERS_UPDATE"), Intents.GUILD_EXPRESSIONS),
    **_events("GUILD_SOUNDBOARD_SOUND", _CHANGES, Intents.GUILD_EXPRESSIONS),
    "GUILD_SOUNDBOARD_SOUNDS_UPDATE": Intents.GUILD_EXPRESSIONS,
    "GUILD_INTEGRATIONS_UPDATE": Intents.GUILD_INTEGRATIONS,
    **_events("INTEGRATION", _CHANGES, Intents.GUILD_INTEGRATIONS),
    "WEBHOOKS_UPDATE": Intents.GUILD_WEBHOOKS,
    **_events("INVITE", ("CREATE", "DELETE"), Intents.GUILD_INVITES),
    "VOICE_STATE_UPDATE": Intents.GUILD_VOICE_STATES,
    "VOICE_CHANNEL_EFFECT_SEND": Intents.GUILD_VOICE_STATES,
    "PRESENCE_UPDATE": Intents.GUILD_PRESENCES,
    **_events("MESSAGE", _MESSAGES, Intents.GUILD_MESSAGES),
    **_events("MESSAGE_REACTION", _REACTIONS, Intents.GUILD_MESSAGE_REACTIONS),
    "TYPING_START": Intents.GUILD_MESSAGE_TYPING,
    **_events(
        "GUILD_SCHEDULED_EVENT", (*_CHANGES, "USER_ADD", "USER_REMOVE"), Intents.GUILD_SCHEDULED_EVENTS
    ),
    **_events("AUTO_MODERATION_RULE", _CHANGES, Intents.AUTO_MODERATION_CONFIGURATION),
    "AUTO_MODERATION_ACTION_EXECUTION": Intents.AUTO_MODERATION_EXECUTION,
    **_events("MESSAGE_POLL_VOTE", ("ADD", "REMOVE"), Intents.GUILD_MESSAGE_POLLS),
}

_ELSEWHERE: Mapping[str, Intents] = {
    "CHANNEL_PINS_UPDATE": Intents.DIRECT_MESSAGES,
    **_events("MESSAGE", _CHANGES, Intents.DIRECT_MESSAGES),
    **_events("MESSAGE_REACTION", _REACTIONS, Intents.DIRECT_MESSAGE_REACTIONS),
    "TYPING_START": Intents.DIRECT_MESSAGE_TYPING,
    **_events("MESSAGE_POLL_VOTE", ("ADD", "REMOVE"), Intents.DIRECT_MESSAGE_POLLS),
}


def allowed(event: str, data: Any, intents: Intents, bot: str) -> bool:
    """Return whether a session with these intents receives an event; one without an intent is always sent."""
    in_guild = not isinstance(data, dict) or "guild_id" in data or event not in _ELSEWHERE
    needed = (_IN_GUILDS if in_guild else _ELSEWHERE).get(event, Intents(0))
    return intents & needed == needed or _about_itself(event, data, intents, bot)


def _about_itself(event: str, data: Json, intents: Intents, bot: str) -> bool:
    """Return whether an event is about the bot itself, so that GUILD_MEMBERS is not needed."""
    if event == "GUILD_MEMBER_UPDATE":
        return bool(data.get("user", {}).get("id") == bot)
    if event == "THREAD_MEMBERS_UPDATE" and Intents.GUILDS in intents:
        added = {each.get("user_id") for each in data.get("added_members", ())}
        return bot in added or bot in data.get("removed_member_ids", ())
    return False


def seen_with(event: str, data: Any, intents: Intents, bot: str, *, large_threshold: int) -> Any:
    """Return the event as a session with these intents sees it; `data` is not changed."""
    if event == "GUILD_CREATE" and "members" in data:
        return _trimmed_guild(data, intents, bot, large_threshold)
    if event in ("MESSAGE_CREATE", "MESSAGE_UPDATE") and Intents.MESSAGE_CONTENT not in intents:
        return _without_content(data, bot)
    return data


def _trimmed_guild(data: Json, intents: Intents, bot: str, large_threshold: int) -> Json:
    """Return a guild with the members that the session sees.

    Without GUILD_PRESENCES, and in the largest guilds, these are the bot and members in a voice channel;
    otherwise all members, or in a large guild all that are online.
    """
    count = data.get("member_count", len(data["members"]))
    large = count > large_threshold
    close = {bot} | {each["user_id"] for each in data.get("voice_states", ())}
    online = {each["user"]["id"] for each in data.get("presences", ())}
    seen: set[str] | None = None if not large else close | online
    if Intents.GUILD_PRESENCES not in intents or count > _LARGE_GUILD:
        seen = close
    presences = data.get("presences", []) if Intents.GUILD_PRESENCES in intents else []
    if seen is None:
        return {**data, "large": large, "presences": presences}
    return {
        **data,
        "large": large,
        "members": [each for each in data["members"] if each["user"]["id"] in seen],
        "presences": [each for each in presences if each["user"]["id"] in seen],
    }


_CONTENT: Json = {"content": "", "embeds": [], "attachments": [], "components": []}


def _without_content(data: Json, bot: str) -> Json:
    """Return a message without content, unless it is the bot's own, a direct one, or mentions the bot."""
    own = data.get("author", {}).get("id") == bot
    mentioned = any(each["id"] == bot for each in data.get("mentions", ()))
    if own or mentioned or "guild_id" not in data:
        return data
    emptied = {name: empty for name, empty in _CONTENT.items() if name in data}
    return {name: value for name, value in data.items() if name != "poll"} | emptied
