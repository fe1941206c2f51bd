"""A DRC cache fed with events, what Redis holds then, and small objects for events."""

from __future__ import annotations

import json
from typing import Any

from keywright import Database
from keywright.testing import Raw
from keywright_discord.drc.store import DrcCache

from .survey import PREFIX, PRIVATE, read, survey

Json = dict[str, Any]

# All above 2^53, where a float would lose digits.
BOT = "9007199254740993"
ANN = "9007199254740995"
BEN = "9007199254740997"
GUILD = "18014398509481985"
OTHER_GUILD = "18014398509481987"
CHANNEL = "18014398509481989"
THREAD = "18014398509481991"
MESSAGE = "18014398509481993"
ROLE = "18014398509481995"
EMOJI = "18014398509481997"


class Feed:
    """Applies one event at a time, which must be accepted unless `refuses` is used."""

    def __init__(self, database: Database, raw: Raw) -> None:
        self.database = database
        self.raw = raw
        self.cache = DrcCache()

    def __call__(self, event: str, data: object) -> None:
        assert self.database.run(self.cache.apply([(event, encoded(data))])) == []

    def at(self, name: str) -> Any:
        """Return what a name of the reference holds: a document, a dictionary of them, a set, or None."""
        full = PREFIX + name
        return read(self.raw, full) if self.raw("EXISTS", full) else None

    def stored(self, name: str, field: str | None = None) -> bytes:
        """Return the bytes of a document."""
        words = ("GET", PREFIX + name) if field is None else ("HGET", PREFIX + name, field)
        found = self.raw(*words)
        assert isinstance(found, bytes)
        return found

    def expires_in(self, name: str) -> int:
        """Return the remaining seconds of a key; -1 means no expiry."""
        return int(self.raw("TTL", PREFIX + name))

    def names(self) -> set[str]:
        return set(survey(self.raw))

    def everything(self) -> tuple[Json, Json]:
        """Return all keys, those of the reference and the private ones."""
        return survey(self.raw), survey(self.raw, PRIVATE)

    def changes_nothing(self, event: str, data: object) -> None:
        before = self.everything()
        self(event, data)
        assert self.everything() == before

    def refuses(self, event: str, data: object) -> str:
        """Assert that an event is refused and changes nothing. Return the reason."""
        before = self.everything()
        (refused,) = self.database.run(self.cache.apply([(event, encoded(data))]))
        assert (refused.place, refused.event) == (0, event)
        assert self.everything() == before
        return refused.reason


def encoded(data: object) -> bytes:
    """Encode JSON without white space, as Discord sends it."""
    return data if isinstance(data, bytes) else json.dumps(data, separators=(",", ":")).encode()


def user(identity: str, **more: object) -> Json:
    return {"id": identity, "username": f"user {identity[-2:]}", "global_name": None, "avatar": None, **more}


def member(**more: object) -> Json:
    """Return a member without its user."""
    return {"roles": [], "nick": None, "joined_at": "2024-05-01T00:00:00+00:00", "flags": 0, **more}


def whole_member(identity: str, **more: object) -> Json:
    return {"user": user(identity), **member(**more)}


def channel(identity: str = CHANNEL, **more: object) -> Json:
    return {"id": identity, "type": 0, "name": "general", "permission_overwrites": [], **more}


def thread(identity: str = THREAD, **more: object) -> Json:
    return {"id": identity, "guild_id": GUILD, "parent_id": CHANNEL, "type": 11, "name": "aside", **more}


def guild(identity: str = GUILD, **more: object) -> Json:
    return {"id": identity, "name": "Cats", "features": [], "owner_id": ANN, **more}


def message(identity: str = MESSAGE, **more: object) -> Json:
    """Return a message in a guild by Ann, without her member."""
    return {
        "id": identity,
        "channel_id": CHANNEL,
        "guild_id": GUILD,
        "author": user(ANN),
        "content": "hello",
        "mentions": [],
        **more,
    }


def reaction(emoji: Json, person: str = ANN, **more: object) -> Json:
    return {
        "user_id": person,
        "message_id": MESSAGE,
        "channel_id": CHANNEL,
        "guild_id": GUILD,
        "emoji": emoji,
        **more,
    }


def ready(*guilds: str, shard: tuple[int, int] = (0, 1)) -> Json:
    return {
        "v": 10,
        "user": user(BOT, bot=True, email="bot@example.com", verified=True),
        "guilds": [{"id": each, "unavailable": True} for each in guilds],
        "shard": list(shard),
        "application": {"id": BOT, "flags": 64},
    }
