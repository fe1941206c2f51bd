"""Discord's objects as the gateway sends them in 2026, undocumented fields included."""

from __future__ import annotations

from collections.abc import Sequence

from keywright_discord.traffic.source import Json, Source

TEXT, VOICE, CATEGORY, NEWS, STAGE, FORUM, MEDIA = 0, 2, 4, 5, 13, 15, 16
CHANNEL_TYPES = (TEXT, TEXT, TEXT, TEXT, VOICE, VOICE, CATEGORY, NEWS, STAGE, FORUM, MEDIA)
NEWS_THREAD, PUBLIC_THREAD, PRIVATE_THREAD = 10, 11, 12
UNICODE_EMOJIS = ("👍", "🔥", "❤️", "👩‍👩‍👧", "🇳🇴", "1️⃣")
FEATURES = ("COMMUNITY", "NEWS", "WELCOME_SCREEN_ENABLED", "ROLE_ICONS", "SOUNDBOARD", "INVITE_SPLASH")


def user(source: Source, identity: str, *, bot: bool = False) -> Json:
    made: Json = {
        "id": identity,
        "username": f"{source.words(1)}.{identity[-6:]}",
        "discriminator": "0" if not bot else f"{source.number(9999):04d}",
        "global_name": None if bot or source.chance(0.2) else source.words(2),
        "avatar": source.maybe_hash(0.7),
        "avatar_decoration_data": _decoration(source) if source.chance(0.05) else None,
        "public_flags": source.number(1 << 18) if source.chance(0.4) else 0,
        "clan": None,
        "primary_guild": None,
        "collectibles": None,
    }
    if source.chance(0.05):
        made["clan"] = made["primary_guild"] = _tag(source)
    if bot:
        made["bot"] = True
    return made


def _decoration(source: Source) -> Json:
    return {"asset": f"a_{source.hexadecimal()}", "sku_id": source.snowflake(), "expires_at": None}


def _tag(source: Source) -> Json:
    return {
        "identity_guild_id": source.snowflake(),
        "identity_enabled": True,
        "tag": "KEYW",
        "badge": source.hexadecimal(),
    }


def member(source: Source, roles: Sequence[str]) -> Json:
    """Return a member without its user."""
    return {
        "roles": source.some(roles, 3),
        "nick": source.words(2) if source.chance(0.2) else None,
        "avatar": source.maybe_hash(0.05),
        "banner": source.maybe_hash(0.02),
        "joined_at": source.past(),
        "premium_since": source.past() if source.chance(0.05) else None,
        "communication_disabled_until": source.past() if source.chance(0.01) else None,
        "deaf": False,
        "mute": source.chance(0.02),
        "flags": source.number(16),
        "pending": False,
        "hoisted_role": None,
    }


def role(source: Source, identity: str, position: int) -> Json:
    colour = source.number(1 << 24)
    made: Json = {
        "id": identity,
        "name": source.words(1),
        "description": None,
        "color": colour,
        "colors": {"primary_color": colour, "secondary_color": None, "tertiary_color": None},
        "hoist": source.chance(0.3),
        "icon": source.maybe_hash(0.05),
        "unicode_emoji": None,
        "position": position,
        "permissions": str(source.random.getrandbits(50)),
        "managed": False,
        "mentionable": source.chance(0.3),
        "flags": 0,
        "version": source.number(1 << 40),
    }
    if source.chance(0.1):
        made["tags"] = {"bot_id": source.snowflake()} if source.chance(0.5) else {"premium_subscriber": None}
    return made


def overwrites(source: Source, roles: Sequence[str], users: Sequence[str]) -> list[Json]:
    targets = [(each, 0) for each in source.some(roles, 3)] + [(each, 1) for each in source.some(users, 1)]
    return [
        {
            "id": target,
            "type": kind,
            "allow": str(source.random.getrandbits(40)),
            "deny": str(source.random.getrandbits(40)),
        }
        for target, kind in targets
    ]


def channel(source: Source, identity: str, kind: int, given: Sequence[Json]) -> Json:
    """Return a channel as GUILD_CREATE contains it, without `guild_id`; `given` are its overwrites."""
    made: Json = {
        "id": identity,
        "type": kind,
        "name": source.words(2),
        "position": source.number(100),
        "flags": 0,
        "parent_id": None,
        "permission_overwrites": list(given),
        "version": source.number(1 << 40),
        "icon_emoji": {"id": None, "name": source.pick(UNICODE_EMOJIS)},
        "theme_color": None,
    }
    if kind in (TEXT, NEWS, FORUM, MEDIA):
        made |= {
            "topic": source.words(6) if source.chance(0.5) else None,
            "rate_limit_per_user": 0,
            "nsfw": False,
            "last_message_id": None,
            "last_pin_timestamp": None,
        }
    if kind in (VOICE, STAGE):
        made |= {"bitrate": 64000, "user_limit": 0, "rtc_region": None, "rate_limit_per_user": 0}
    if kind in (FORUM, MEDIA):
        made |= _forum(source)
    return made


def _forum(source: Source) -> Json:
    tags = [
        {
            "id": source.snowflake(),
            "name": source.words(1),
            "moderated": False,
            "emoji_id": None,
            "emoji_name": source.pick(UNICODE_EMOJIS),
        }
        for _ in range(source.number(5))
    ]
    return {
        "available_tags": tags,
        "default_reaction_emoji": None,
        "default_sort_order": None,
        "default_forum_layout": 0,
        "template": "",
    }


def thread(source: Source, identity: str, guild: str, parent: Json, owner: str) -> Json:
    made: Json = {
        "id": identity,
        "guild_id": guild,
        "parent_id": parent["id"],
        "owner_id": owner,
        "type": NEWS_THREAD if parent["type"] == NEWS else source.pick((PUBLIC_THREAD, PRIVATE_THREAD)),
        "name": source.words(3),
        "last_message_id": None,
        "message_count": source.number(50),
        "total_message_sent": source.number(60),
        "member_count": 1 + source.number(10),
        "rate_limit_per_user": 0,
        "bitrate": 64000,
        "user_limit": 0,
        "rtc_region": None,
        "flags": 0,
        "thread_metadata": {
            "archived": False,
            "archive_timestamp": source.time(),
            "auto_archive_duration": 1440,
            "locked": False,
            "create_timestamp": source.time(),
        },
    }
    if parent["type"] in (FORUM, MEDIA):
        made["applied_tags"] = [tag["id"] for tag in parent.get("available_tags", [])[:2]]
    return made


def thread_member(source: Source) -> Json:
    """Return the bot's own membership as a thread contains it, without thread and user."""
    return {"join_timestamp": source.time(), "flags": 1, "mute_config": None, "muted": False}


def emoji(source: Source, identity: str, creator: Json | None) -> Json:
    made: Json = {
        "id": identity,
        "name": source.words(1),
        "roles": [],
        "require_colons": True,
        "managed": False,
        "animated": source.chance(0.2),
        "available": True,
        "version": source.number(1 << 40),
    }
    return made | ({"user": creator} if creator is not None else {})


def sticker(source: Source, identity: str, guild: str, creator: Json | None) -> Json:
    made: Json = {
        "id": identity,
        "name": source.words(1),
        "description": source.words(4),
        "tags": source.pick(UNICODE_EMOJIS),
        "type": 2,
        "format_type": 1,
        "available": True,
        "guild_id": guild,
        "asset": "",
        "version": source.number(1 << 40),
    }
    return made | ({"user": creator} if creator is not None else {})


def sound(source: Source, identity: str, guild: str, creator: Json) -> Json:
    return {
        "name": source.words(1),
        "sound_id": identity,
        "volume": 1.0,
        "emoji_id": None,
        "emoji_name": source.pick(UNICODE_EMOJIS),
        "guild_id": guild,
        "available": True,
        "user": creator,
    }


def voice_state(source: Source, person: str, where: str) -> Json:
    return {
        "channel_id": where,
        "user_id": person,
        "session_id": source.hexadecimal(),
        "deaf": False,
        "mute": False,
        "self_deaf": source.chance(0.2),
        "self_mute": source.chance(0.5),
        "self_video": False,
        "suppress": False,
        "request_to_speak_timestamp": None,
        "discoverable": True,
    }


def presence(source: Source, person: str, *, offline: float = 0.0) -> Json:
    status = "offline" if source.chance(offline) else source.pick(("online", "idle", "dnd"))
    return {
        "user": {"id": person},
        "status": status,
        "client_status": {} if status == "offline" else {source.pick(("desktop", "mobile", "web")): status},
        "activities": [_activity(source) for _ in range(source.number(3))] if status != "offline" else [],
        "processed_at_timestamp": source.number(1 << 44),
    }


def _activity(source: Source) -> Json:
    if source.chance(0.4):
        return {
            "id": "custom",
            "name": "Custom Status",
            "type": 4,
            "state": source.words(3),
            "emoji": {"name": source.pick(UNICODE_EMOJIS)},
            "created_at": source.number(1 << 44),
        }
    return {
        "id": source.hexadecimal()[:16],
        "name": source.words(2),
        "type": source.number(4),
        "details": source.words(4),
        "state": None,
        "application_id": source.snowflake(),
        "timestamps": {"start": source.number(1 << 44)},
        "assets": {"large_image": source.snowflake(), "large_text": source.words(2)},
        "party": {"id": source.hexadecimal(), "size": [1, 4]},
        "flags": 1,
        "created_at": source.number(1 << 44),
    }


def stage_instance(source: Source, where: str, guild: str) -> Json:
    return {
        "id": source.snowflake(),
        "guild_id": guild,
        "channel_id": where,
        "topic": source.words(4),
        "privacy_level": 2,
        "discoverable_disabled": False,
        "guild_scheduled_event_id": None,
        "invite_code": None,
    }


def scheduled_event(source: Source, identity: str, guild: str, creator: Json) -> Json:
    return {
        "id": identity,
        "guild_id": guild,
        "channel_id": None,
        "creator_id": creator["id"],
        "creator": creator,
        "name": source.words(3),
        "description": source.words(12),
        "image": source.maybe_hash(0.5),
        "scheduled_start_time": source.time(),
        "scheduled_end_time": source.time(),
        "privacy_level": 2,
        "status": 1,
        "entity_type": 3,
        "entity_id": None,
        "entity_metadata": {"location": source.words(2)},
        "recurrence_rule": None,
        "sku_ids": [],
        "user_count": source.number(200),
        "guild_scheduled_event_exceptions": [],
    }


def automod_rule(source: Source, identity: str, guild: str, creator: str) -> Json:
    return {
        "id": identity,
        "guild_id": guild,
        "name": source.words(2),
        "creator_id": creator,
        "event_type": 1,
        "trigger_type": 1,
        "trigger_metadata": {"keyword_filter": [source.words(1)], "regex_patterns": [], "allow_list": []},
        "actions": [{"type": 1, "metadata": {"custom_message": source.words(4)}}],
        "enabled": True,
        "exempt_roles": [],
        "exempt_channels": [],
    }


def integration(source: Source, identity: str, guild: str) -> Json:
    bot = user(source, source.snowflake(), bot=True)
    return {
        "id": identity,
        "guild_id": guild,
        "name": source.words(1),
        "type": "discord",
        "enabled": True,
        "account": {"id": bot["id"], "name": bot["username"]},
        "application": {
            "id": bot["id"],
            "name": bot["username"],
            "icon": None,
            "description": "",
            "summary": "",
            "type": None,
            "bot": bot,
        },
        "scopes": ["bot", "applications.commands"],
    }
