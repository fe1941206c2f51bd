"""The simulated Discord on a thread of its own, and the comparison of its guilds with the raw cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import redis
from anyio.from_thread import BlockingPortal, start_blocking_portal

from keywright_discord.simulator import DiscordSimulator, SimulatorSettings
from keywright_discord.simulator.world import SimulatedWorld
from keywright_discord.traffic.mixes import EVERYDAY

__all__ = ["PREFIX", "Discord", "simulated_discord", "spectacles_differences"]

T = TypeVar("T")
Json = dict[str, Any]
Cache = redis.Redis
"""A client that decodes replies."""

PREFIX = "bot:v1json"
GUILD_FIELDS = ("id", "name", "owner_id", "description", "features", "member_count", "preferred_locale")
"""Fields of a guild that change by an event only; the simulator invents some others at every read."""
MESSAGE_FIELDS = ("id", "channel_id", "content", "embeds", "edited_timestamp", "attachments")
USER_FIELDS = ("id", "username", "global_name", "avatar")
STATE = {
    "GUILD_UPDATE": 1.0,
    "GUILD_ROLE_CREATE": 1.0,
    "GUILD_ROLE_UPDATE": 2.0,
    "CHANNEL_CREATE": 2.0,
    "CHANNEL_UPDATE": 3.0,
    "CHANNEL_DELETE": 1.0,
    "GUILD_MEMBER_ADD": 3.0,
    "GUILD_MEMBER_UPDATE": 4.0,
    "GUILD_MEMBER_REMOVE": 2.0,
}
MESSAGES = {
    "MESSAGE_CREATE": 20.0,
    "MESSAGE_UPDATE": 5.0,
    "MESSAGE_DELETE": 2.0,
    "MESSAGE_DELETE_BULK": 0.5,
}


class Discord:
    """The simulator, every message that it has sent, and the messages that a complete cache has."""

    def __init__(self, portal: BlockingPortal, simulator: DiscordSimulator) -> None:
        self._portal = portal
        self.simulator = simulator
        self.created: list[str] = []
        """The ids of all messages, in order."""
        self.messages: dict[str, Json] = {}
        """The messages since the cache was last empty, as Discord has them now."""
        self.deleted: set[str] = set()

    def look(self, probe: Callable[[], T]) -> T:
        """Return the value of a function that runs between two events."""
        return self._portal.call(probe)

    def play(self, count: int, *, messages: bool = True) -> list[str]:
        """Send events of every guild to the bot. Return the ids of the new messages."""
        mix = dict.fromkeys(EVERYDAY, 0.0) | STATE | (MESSAGES if messages else {})
        before = len(self.created)
        self._portal.call(self.simulator.play, self._noted(self.simulator.world.events(count, mix=mix)))
        return self.created[before:]

    def _noted(self, events: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        for event, data in events:
            if event == "MESSAGE_CREATE":
                self.created.append(data["id"])
                self.messages[data["id"]] = data
            elif event == "MESSAGE_UPDATE" and data["id"] in self.messages:
                self.messages[data["id"]] = {**self.messages[data["id"]], **data}
            elif event in ("MESSAGE_DELETE", "MESSAGE_DELETE_BULK"):
                gone = data.get("ids") or [data["id"]]
                self.deleted.update(gone)
                for each in gone:
                    self.messages.pop(each, None)
            yield event, data

    def forget_messages(self) -> None:
        """Expect no message that was sent until now: Discord sends none again to an empty cache."""
        self.messages.clear()

    def differences(self, raw: Cache) -> list[str]:
        """Compare the cache with the world: guilds, roles, channels, members, users, messages."""
        return self.look(lambda: [*self._guild_differences(raw), *self._message_differences(raw)])

    def _guild_differences(self, raw: Cache) -> Iterator[str]:
        world = self.simulator.world
        yield from _compared("guilds", set(world.guilds), raw.smembers(f"{PREFIX}:guilds"))
        for guild in world.guilds:
            whole = world.guild_create(guild) or {}
            [about] = _documents(raw, [f"{PREFIX}:guilds:{guild}"])
            yield from _compared(f"guild {guild}", _some(whole, GUILD_FIELDS), _some(about, GUILD_FIELDS))
            for kind in ("roles", "channels"):
                listed = {each["id"]: each for each in whole[kind]}
                cached = _entries(raw, f"{PREFIX}:{kind}:{guild}")
                yield from _compared(
                    f"{kind} of {guild}",
                    _without(listed, "last_message_id"),
                    _without(cached, "guild_id", "last_message_id"),  # the simulator's stays as it was
                )
            members = world.members(guild)
            yield from _compared(
                f"members of {guild}", set(members), raw.smembers(f"{PREFIX}:members:{guild}")
            )
            found = _documents(raw, [f"{PREFIX}:members:{guild}:{each}" for each in members])
            yield from _compared(
                f"members of {guild}",
                _without(members, "user"),
                _without(dict(zip(members, found, strict=True)), "user_id", "guild_id"),
            )
            users = _documents(raw, [f"{PREFIX}:users:{each}" for each in members])
            for member, user in zip(members.values(), users, strict=True):
                yield from _compared("user", _some(member["user"], USER_FIELDS), _some(user, USER_FIELDS))

    def _message_differences(self, raw: Cache) -> Iterator[str]:
        found = _documents(raw, [f"{PREFIX}:messages:{each}" for each in self.messages])
        for sent, cached in zip(self.messages.values(), found, strict=True):
            yield from _compared(
                f"message {sent['id']}", _some(sent, MESSAGE_FIELDS), _some(cached, MESSAGE_FIELDS)
            )
        left = _documents(raw, [f"{PREFIX}:messages:{each}" for each in self.deleted])
        for identity, cached in zip(self.deleted, left, strict=True):
            yield from _compared(f"deleted message {identity}", {}, cached)


@contextmanager
def simulated_discord(settings: SimulatorSettings) -> Iterator[Discord]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(DiscordSimulator(settings)) as simulator,
    ):
        yield Discord(portal, simulator)


def spectacles_differences(raw: Cache, world: SimulatedWorld) -> list[str]:
    """Compare a cache of the Spectacles layout, of the prefix `bot`, with a world without traffic."""

    found: list[str] = []
    guilds, channels = _entries(raw, "bot:GUILDS"), _entries(raw, "bot:CHANNELS")
    found += _compared("guilds", set(world.guilds), set(guilds))
    for guild in world.guilds:
        whole = world.guild_create(guild) or {}
        found += _compared(
            f"guild {guild}", _some(whole, GUILD_FIELDS), _some(guilds.get(guild, {}), GUILD_FIELDS)
        )
        places = {each["id"]: each for each in (*whole["channels"], *whole["threads"])}
        found += _compared(f"channels of {guild}", set(places), raw.smembers(f"bot:CHANNELS:{guild}"))
        kept = {key: channels.get(key, {}) for key in places}
        found += _compared(
            f"channels of {guild}",
            _without(places, "guild_id", "member"),
            _without(kept, "guild_id", "member"),
        )
        roles = {each["id"]: each for each in whole["roles"]}
        found += _compared(
            f"roles of {guild}", roles, _without(_entries(raw, f"bot:ROLES:{guild}"), "guild_id")
        )
        members = _without(_entries(raw, f"bot:MEMBERS:{guild}"), "guild_id")
        found += _compared(f"members of {guild}", world.members(guild), members)
    return found


def _documents(raw: Cache, keys: list[str]) -> list[Json]:
    """Return the JSON documents of these keys; an empty one for a key that does not exist."""
    found = raw.mget(keys) if keys else []
    return [json.loads(text or "{}") for text in found]


def _entries(raw: Cache, key: str) -> dict[str, Json]:
    """Return the JSON documents of a hash."""
    return {str(field): json.loads(text) for field, text in raw.hgetall(key).items()}


def _some(document: Json, fields: tuple[str, ...]) -> Json:
    return {name: document.get(name) for name in fields}


def _without(documents: Mapping[str, Json], *fields: str) -> dict[str, Json]:
    return {
        key: {name: value for name, value in each.items() if name not in fields}
        for key, each in documents.items()
    }


def _compared(what: str, expected: object, found: object) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in expected.keys() | found.keys():
            if expected.get(key) != found.get(key):
                yield f"{what}: {key} is {found.get(key)!r}, and should be {expected.get(key)!r}"
    elif expected != found:
        yield f"{what}: {found!r}, and should be {expected!r}"
