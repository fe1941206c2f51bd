"""Messages and interactions: the objects with the most nested ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from keywright_discord.traffic import objects
from keywright_discord.traffic.source import Json, Source


class Speaker(NamedTuple):
    """A person in a guild, or in a direct message if the member is None."""

    user: Json
    member: Json | None


class Setting(NamedTuple):
    """The channel of a message, and the people who can be mentioned."""

    channel: str
    guild: str | None
    present: Sequence[Speaker]
    application: str


def message(source: Source, setting: Setting, author: Speaker) -> Json:
    made: Json = {
        "id": source.snowflake(),
        "channel_id": setting.channel,
        "author": author.user,
        "content": source.words(1 + source.number(12)),
        "timestamp": source.time(),
        "edited_timestamp": None,
        "tts": False,
        "mention_everyone": False,
        "mentions": [_mention(speaker) for speaker in source.some(setting.present, 2)],
        "mention_roles": [],
        "attachments": [_attachment(source)] if source.chance(0.1) else [],
        "embeds": [_embed(source)] if source.chance(0.1) else [],
        "pinned": False,
        "type": 0,
        "flags": 0,
        "components": [],
        "nonce": source.snowflake(),
        "channel_type": 0,
    }
    if setting.guild is not None:
        made["guild_id"] = setting.guild
    if author.member is not None:
        made["member"] = author.member
    _add_rarities(source, setting, made)
    return made


def _mention(speaker: Speaker) -> Json:
    return speaker.user if speaker.member is None else {**speaker.user, "member": speaker.member}


def _add_rarities(source: Source, setting: Setting, made: Json) -> None:
    if source.chance(0.05):
        made["sticker_items"] = [{"id": source.snowflake(), "name": source.words(1), "format_type": 1}]
    if source.chance(0.03):
        made["poll"] = _poll(source)
    if source.chance(0.05):
        made |= _webhook(source)
        made.pop("member", None)
    elif source.chance(0.05):
        asked = source.pick(setting.present)
        made |= _answer(source, asked, setting)


def _webhook(source: Source) -> Json:
    identity = source.snowflake()
    author = {
        "id": identity,
        "username": source.words(1),
        "discriminator": "0000",
        "avatar": None,
        "bot": True,
    }
    return {"webhook_id": identity, "author": author}


def _answer(source: Source, asked: Speaker, setting: Setting) -> Json:
    identity = source.snowflake()
    named: Json = {"id": identity, "type": 2, "name": source.words(1), "user": asked.user}
    if asked.member is not None:
        named["member"] = asked.member
    metadata: Json = {
        "id": identity,
        "type": 2,
        "user": asked.user,
        "authorizing_integration_owners": {"0": setting.guild or "0"},
        "name": source.words(1),
        "command_type": 1,
    }
    if source.chance(0.3):
        metadata["triggering_interaction_metadata"] = {
            "id": source.snowflake(),
            "type": 2,
            "user": asked.user,
            "target_user": source.pick(setting.present).user,
        }
    return {
        "type": 20,
        "application_id": setting.application,
        "interaction": named,
        "interaction_metadata": metadata,
    }


def _attachment(source: Source) -> Json:
    identity = source.snowflake()
    return {
        "id": identity,
        "filename": "picture.png",
        "size": source.number(1 << 22),
        "url": f"https://cdn.discordapp.com/attachments/{identity}/picture.png",
        "proxy_url": f"https://media.discordapp.net/attachments/{identity}/picture.png",
        "width": 640,
        "height": 480,
        "content_type": "image/png",
        "placeholder_version": 1,
    }


def _embed(source: Source) -> Json:
    return {
        "type": "rich",
        "title": source.words(3),
        "description": source.words(20),
        "color": source.number(1 << 24),
        "fields": [{"name": source.words(1), "value": source.words(3), "inline": True}],
        "content_scan_version": 0,
    }


def _poll(source: Source) -> Json:
    return {
        "question": {"text": source.words(4)},
        "answers": [{"answer_id": n, "poll_media": {"text": source.words(2)}} for n in (1, 2)],
        "expiry": source.time(),
        "allow_multiselect": False,
        "layout_type": 1,
        "results": {"answer_counts": [], "is_finalized": False},
    }


def interaction(source: Source, setting: Setting, asking: Speaker) -> Json:
    made: Json = {
        "id": source.snowflake(),
        "application_id": setting.application,
        "type": 2,
        "token": source.hexadecimal(),
        "version": 1,
        "channel_id": setting.channel,
        "locale": "en-GB",
        "app_permissions": "562949953601536",
        "entitlements": [],
        "context": 0,
        "attachment_size_limit": 10485760,
        "data": {"id": source.snowflake(), "name": source.words(1), "type": 1},
    }
    if setting.guild is not None and asking.member is not None:
        member = {**asking.member, "user": asking.user, "permissions": "2251799813685247"}
        made |= {"guild_id": setting.guild, "member": member, "guild_locale": "en-US"}
    else:
        made["user"] = asking.user
    if source.chance(0.4):
        made["data"]["resolved"] = _resolved(source.some(setting.present, 2))
    elif source.chance(0.3):
        held = message(source, setting, source.pick(setting.present))
        for name in ("guild_id", "member"):
            held.pop(name, None)  # Discord omits them here
        made |= {"type": 3, "message": held, "data": {"custom_id": "again", "component_type": 2}}
    return made


def _resolved(people: Sequence[Speaker]) -> Json:
    found: Json = {"users": {each.user["id"]: each.user for each in people}}
    named = {
        each.user["id"]: {
            **{name: value for name, value in each.member.items() if name not in ("deaf", "mute")},
            "permissions": "1024",
        }
        for each in people
        if each.member is not None
    }
    return found | ({"members": named} if named else {})


def reaction_emoji(source: Source, custom: Json | None) -> Json:
    if custom is not None and source.chance(0.4):
        return {"id": custom["id"], "name": custom["name"], "animated": custom["animated"]}
    return {"id": None, "name": source.pick(objects.UNICODE_EMOJIS)}
