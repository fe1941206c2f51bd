"""Gateway payloads with ids that no float can hold, and the cache that they are applied to."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from keywright import Database
from keywright.testing import Raw
from keywright_discord.event_cache import Refused
from keywright_discord.spectacles.store import SpectaclesCache

Event = tuple[str, dict[str, Any]]

GUILD = "1300000000000000001"
OTHER_GUILD = "1300000000000000002"
BOT = "1300000000000000003"
ANN = "1300000000000000011"
BOB = "1300000000000000012"
GENERAL = "1300000000000000021"
VOICE = "1300000000000000022"
THREAD = "1300000000000000023"
ROLE = "1300000000000000031"
EMOJI = "1300000000000000041"
STICKER = "1300000000000000051"
MESSAGE = "1300000000000000061"
PRIVATE = "spectacles-private:"

Opener = Callable[..., Database]
"""From a URL and bindings to an open database."""


def user(identity: str, name: str, **more: Any) -> dict[str, Any]:
    return {"id": identity, "username": name, "avatar": None, **more}


def member(identity: str, name: str, **more: Any) -> dict[str, Any]:
    return {"user": user(identity, name), "roles": [], "nick": None, **more}


def channel(identity: str, guild: str = GUILD, **more: Any) -> dict[str, Any]:
    return {"guild_id": guild, "id": identity, "type": 0, "permission_overwrites": [], **more}


def thread(identity: str = THREAD, parent: str = GENERAL, guild: str = GUILD, **more: Any) -> dict[str, Any]:
    return {"guild_id": guild, "id": identity, "type": 11, "parent_id": parent, **more}


def message(identity: str = MESSAGE, place: str = GENERAL, **more: Any) -> dict[str, Any]:
    written = {"id": identity, "channel_id": place, "guild_id": GUILD, "content": "hello", "embeds": []}
    return {**written, "author": user(ANN, "ann"), "mentions": [], **more}


def presence(identity: str, guild: str = GUILD, status: str = "online") -> dict[str, Any]:
    return {"guild_id": guild, "user": {"id": identity}, "status": status, "activities": []}


def voice_state(identity: str, place: str | None = VOICE, guild: str = GUILD) -> dict[str, Any]:
    return {"guild_id": guild, "user_id": identity, "channel_id": place, "session_id": "s"}


def guild(identity: str = GUILD, /, **more: Any) -> dict[str, Any]:
    """Return a guild as GUILD_CREATE contains it, with empty lists."""
    lists = ("channels", "threads", "members", "roles", "emojis", "stickers", "voice_states", "presences")
    empty: dict[str, Any] = {name: [] for name in (*lists, "stage_instances", "guild_scheduled_events")}
    return {"id": identity, "name": "here", "icon": None, "features": [], "member_count": 2, **empty, **more}


def stored_guild(identity: str = GUILD, /, **more: Any) -> dict[str, Any]:
    """Return the same guild as the cache stores it."""
    apart = ("voice_states", "roles", "emojis", "channels", "members", "presences", "threads")
    return {name: value for name, value in guild(identity, **more).items() if name not in apart}


def full_guild(identity: str = GUILD, /, **more: Any) -> dict[str, Any]:
    """Return a guild with one entity of every kind."""
    return guild(
        identity,
        **{
            "channels": [channel(GENERAL, identity), channel(VOICE, identity, type=2)],
            "threads": [thread(guild=identity)],
            "members": [member(ANN, "ann"), member(BOB, "bob")],
            "roles": [{"id": ROLE, "name": "staff"}],
            "emojis": [{"id": EMOJI, "name": "wave", "user": user(BOB, "bob")}],
            "stickers": [{"id": STICKER, "name": "cat"}],
            "voice_states": [voice_state(ANN, guild=identity)],
            "presences": [presence(ANN, identity)],
            **more,
        },
    )


class World:
    """A cache, the database that it writes to, and a raw client to read it."""

    def __init__(self, database: Database, raw: Raw, cache: SpectaclesCache) -> None:
        self.context = database.context
        self.run = database.run
        self.raw = raw
        self.cache = cache

    def offer(self, *events: Event) -> list[Refused]:
        return self.run(self.cache.apply([(name, json.dumps(d).encode()) for name, d in events]))

    def apply(self, *events: Event) -> None:
        assert self.offer(*events) == []

    def all(self) -> dict[str, Any]:
        """Return every key with its content, except those who left last, whose name has the hour in it."""
        names = (name for name in self.raw.names() if b":departed:" not in name)
        return {name: self.content(name) for name in sorted(map(bytes.decode, names))}

    def public(self) -> dict[str, Any]:
        """Return the keys of the Spectacles document."""
        return {name: content for name, content in self.all().items() if PRIVATE not in name}

    def content(self, name: str) -> Any:
        kind = self.raw("TYPE", name).decode()
        if kind == "string":
            return json.loads(self.raw("GET", name))
        if kind == "hash":
            return {field.decode(): json.loads(value) for field, value in self.raw("HGETALL", name).items()}
        if kind == "set":
            return {member.decode() for member in self.raw("SMEMBERS", name)}
        return {member.decode() for member in self.raw("ZRANGE", name, 0, -1)}
