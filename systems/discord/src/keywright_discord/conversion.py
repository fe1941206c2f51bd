"""Conversion of a Spectacles cache to DRC: guild by guild, then messages and users.

The parts of a guild are put together again as Discord would send them, and become the same changes as an
event; so the rules of DRC's normalisation stay in one place. Converting a guild again replaces what the
first conversion wrote.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator

from keywright import AsyncDatabase, Call, Keyspace, gather, gather_list
from keywright.operations import Command, Effect, Operation, Steps, procedure
from keywright_discord.changes import (
    Change,
    Drop,
    KeepMembers,
    Kind,
    ListGuild,
    Put,
    PutMembers,
    PutUsers,
    ReplaceAll,
    SyncThreads,
)
from keywright_discord.draft import Place, read
from keywright_discord.drc import schema as drc
from keywright_discord.drc.store import DrcCache
from keywright_discord.entities import guild, message
from keywright_discord.event_cache import ALL_KINDS
from keywright_discord.raw_json import Fields, encode, fields, scalar, stored_fields, written
from keywright_discord.spectacles import schema as spectacles
from keywright_discord.spectacles.reader import THREAD_TYPES

__all__ = ["LEFT_OUT", "SpectaclesToDrc"]

PORTION = 500
# `Users.scan` decodes the documents; they are stored again as they are.
SCAN = Operation("scan", b"HSCAN", Effect.READ)

LEFT_OUT = (
    "thread members, reactions, invites, integrations, auto moderation rules: Spectacles keeps none of them",
    "applications, commands, interactions, webhooks, widgets, templates: Spectacles keeps none of them",
    "a presence is of a user in Spectacles: every guild that shows the user gets the latest one",
    "stickers, stage instances and scheduled events of a guild that came without such a list: not kept",
)


class SpectaclesToDrc:
    """The conversion, for a database with bindings of both layouts. The Spectacles cache is only read."""

    source: tuple[Keyspace, ...] = (spectacles.spectacles, spectacles.private)
    target: tuple[Keyspace, ...] = (drc.drc, drc.private)
    left_out: tuple[str, ...] = LEFT_OUT

    def __init__(self) -> None:
        # Users are converted from USERS, where they are newest; those nested in other objects are older.
        self._cache = DrcCache(kinds=ALL_KINDS - {Kind.USER})
        self._users = DrcCache()

    async def size(self, db: AsyncDatabase) -> int:
        guilds, users = await db.run(gather(spectacles.GuildIndex().size(), spectacles.Users().size()))
        return guilds + 1 + -(-users // PORTION)

    async def pages(self, db: AsyncDatabase) -> AsyncIterator[tuple[str, Call[int]]]:
        """Yield guilds, then messages, then users, with names that sort in this order."""
        listed, stored = await db.run(gather(spectacles.GuildIndex().members(), spectacles.Guilds().fields()))
        for each in sorted({*listed, *stored}, key=int):
            yield f"guild {int(each):020}", self.guild(each)
        batch: list[spectacles.Message] = []
        async for key in db.scan(spectacles.Message):
            batch.append(key)
            if len(batch) == PORTION:
                yield "messages", self.messages(batch)
                batch = []
        yield "messages", self.messages(batch)
        cursor = 0
        while True:
            cursor, found = await db.run(_users(cursor))
            yield "users", self.users([each.decode() for each in found[::2]], found[1::2])
            if not cursor:
                return

    def users(self, people: list[str], bodies: list[bytes]) -> Call[int]:
        """Convert users."""
        return self._users.store([PutUsers(people, bodies)]).map(lambda _: len(people))

    @procedure
    def guild(self, identity: str) -> Steps[int]:
        """Convert one guild with its parts. Return the number of entities."""
        whole = yield from _guild(identity)
        if whole is None:
            yield self._cache.store([ListGuild(identity)])
            return 1
        changes = list(guild(whole, identity, None))
        yield self._cache.store(changes)
        members = yield from self._members(identity)
        presences = yield from self._presences(identity)
        return sum(map(_entities, changes)) + members + presences

    def _members(self, identity: str) -> Steps[int]:
        people = yield spectacles.Members(identity).fields()
        yield self._cache.store([KeepMembers(identity, people)])
        for portion in _portions(people):
            found = yield read((spectacles.Members(identity), person) for person in portion)
            bodies = {place[1]: body for place, body in found.items() if body is not None}
            kept = [_without(body, "user", "permissions") for body in bodies.values()]
            yield self._cache.store([PutMembers(identity, list(bodies), [], kept, with_users=False)])
        return len(people)

    def _presences(self, identity: str) -> Steps[int]:
        shown, known = yield gather(
            spectacles.PresenceIndex(identity).members(), drc.PresenceIndex(identity).members()
        )
        yield self._cache.store([Drop(Kind.PRESENCE, (identity, person)) for person in known - shown])
        for portion in _portions(sorted(shown)):
            found = yield read((spectacles.Presence(person), person) for person in portion)
            puts = [
                _presence(identity, person, body)
                for (_, person), body in found.items()
                if person is not None and body is not None
            ]
            yield self._cache.store(puts)
        return len(shown)

    @procedure
    def messages(self, keys: list[spectacles.Message]) -> Steps[int]:
        """Convert messages with their remaining time to live; those that expired meanwhile are left out."""
        found = yield read((key, None) for key in keys)
        left = yield gather_list(key.ttl() for key in keys)
        stored = [
            (key, body, ttl)
            for key, ttl in zip(keys, left, strict=True)
            if (body := found[key, None]) is not None
        ]
        # Only the message itself: its nested entities are converted from their own keys, and newer there.
        puts = [message(fields(body, "message"), None).put for _, body, _ in stored]
        yield self._cache.store(puts)
        ends = [drc.Message(key.message).expire(ttl) for key, _, ttl in stored if ttl is not None]
        yield gather_list(ends)
        return len(puts)


def _guild(identity: str) -> Steps[Fields | None]:
    """Return a guild as Discord sends it, without members and presences."""
    channels, emojis, roles, states, threads = yield gather_list(
        [
            spectacles.ChannelIds(identity).members(),
            spectacles.EmojiIds(identity).members(),
            spectacles.Roles(identity).fields(),
            spectacles.VoiceStates(identity).fields(),
            spectacles.ThreadIndex(identity).fields(),
        ]
    )
    places: dict[str, list[Place]] = {
        "channels": [(spectacles.Channels(), each) for each in sorted(channels, key=int)],
        "emojis": [(spectacles.Emojis(), each) for each in sorted(emojis, key=int)],
        "roles": [(spectacles.Roles(identity), each) for each in roles],
        "voice_states": [(spectacles.VoiceStates(identity), each) for each in states],
    }
    own: Place = spectacles.Guilds(), identity
    found = yield read([own, *(place for some in places.values() for place in some)])
    body = stored_fields(found[own])
    if body is None:
        return None
    listed = {
        name: [fields(found[place], name) for place in some if found[place] is not None]
        for name, some in places.items()
    }
    listed["threads"] = [each for each in listed["channels"] if _is_thread(each, threads)]
    listed["channels"] = [each for each in listed["channels"] if not _is_thread(each, threads)]
    for state in listed["voice_states"]:
        state.pop("member", None)  # the member is converted from its own key, and newer there
    return {**body, **{name: written(some) for name, some in listed.items()}}


def _is_thread(given: Fields, threads: Iterable[str]) -> bool:
    kind = scalar(given["type"], "channel.type") if "type" in given else None
    return kind in THREAD_TYPES or scalar(given["id"], "channel.id") in threads


def _presence(identity: str, person: str, body: bytes) -> Put:
    data = {**fields(body, "presence"), "guild_id": written(identity)}
    return Put(Kind.PRESENCE, (identity, person), data, {**data, "user": written(person)})


def _without(body: bytes, *names: str) -> bytes:
    return encode({name: raw for name, raw in fields(body, "member").items() if name not in names})


def _entities(change: Change) -> int:
    if isinstance(change, ReplaceAll | SyncThreads):
        return len(change.puts)
    return isinstance(change, Put)


def _portions(ids: list[str]) -> Iterator[list[str]]:
    return (ids[start : start + PORTION] for start in range(0, len(ids), PORTION))


def _users(cursor: int) -> Call[tuple[int, list[bytes]]]:
    """Return one page of users as they are stored: the next cursor, and ids and bodies in turn."""
    operands = (cursor, b"COUNT", PORTION)
    return Command(SCAN, spectacles.Users(), operands, lambda page: (int(page[0]), page[1]))
