"""Changes stored in DRC keys.

`event_cache` describes what is atomic. DRC's names have no hash tags, so on a cluster one event concerns
many slots, and is one transaction in each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from keywright import Call, Key, Map, Set, Value, gather, gather_list
from keywright.operations import Steps
from keywright_discord.changes import (
    Change,
    CountMember,
    Drop,
    DropChannel,
    DropGuild,
    Ids,
    KeepGuilds,
    KeepMembers,
    Kind,
    ListGuild,
    Mode,
    Put,
    PutItem,
    PutItems,
    PutMembers,
    PutPresences,
    PutUsers,
    React,
    ReplaceAll,
    SyncThreads,
    Unreact,
)
from keywright_discord.draft import Draft, Place, others, read
from keywright_discord.drc import schema
from keywright_discord.event_cache import EventCache, Refused, count_member, left_guilds, parent_of, unsynced
from keywright_discord.inline_lists import put_item, put_items
from keywright_discord.raw_json import Snowflakes, body_fields

if TYPE_CHECKING:
    from keywright import Context

__all__ = ["DrcCache", "Refused", "place_of"]

STRINGS: dict[Kind, Callable[[Ids], Value[Any]]] = {
    Kind.APPLICATION: lambda ids: schema.Application(ids[0]),
    Kind.INTERACTION: lambda ids: schema.Interaction(ids[0]),
    Kind.MESSAGE: lambda ids: schema.Message(ids[1]),
    Kind.THREAD: lambda ids: schema.Thread(ids[1]),
    Kind.GUILD: lambda ids: schema.Guild(ids[0]),
    Kind.WIDGET: lambda ids: schema.Widget(ids[0]),
    Kind.MEMBER: lambda ids: schema.Member(ids[0], ids[1]),
    Kind.WELCOME_SCREEN: lambda ids: schema.WelcomeScreen(ids[0]),
    Kind.INVITE: lambda ids: schema.Invite(ids[0]),
    Kind.STAGE_INSTANCE: lambda ids: schema.StageInstance(ids[1]),
    Kind.USER: lambda ids: schema.User(ids[0]),
    Kind.PRESENCE: lambda ids: schema.Presence(ids[0], ids[1]),
    Kind.WEBHOOK: lambda ids: schema.Webhook(ids[0]),
}
MAPS: dict[Kind, Callable[[str], Map[str, Any]]] = {
    Kind.COMMAND: schema.Commands,
    Kind.AUTOMOD_RULE: schema.AutomodRules,
    Kind.CHANNEL: schema.Channels,
    Kind.EMOJI: schema.Emojis,
    Kind.INTEGRATION: schema.Integrations,
    Kind.SCHEDULED_EVENT: schema.ScheduledEvents,
    Kind.ROLE: schema.Roles,
    Kind.TEMPLATE: schema.Templates,
    Kind.STICKER: schema.Stickers,
    Kind.VOICE_STATE: schema.VoiceStates,
}

UNKNOWN_PARENT = "0"

# Changes that list stored keys, so they cannot share a batch with other events.
LISTING = (DropGuild, KeepGuilds, KeepMembers, DropChannel, SyncThreads, Unreact)


class DrcCache(EventCache[Draft]):
    """A DRC cache as one session writes it; `kinds` are the entities that it keeps."""

    def _must_list(self, change: Change) -> bool:
        return _must_list(change)

    def _begin(self, changes: list[Change], context: Context) -> Steps[Draft]:
        now_ms = context.now_ms()
        places = [place for change in changes for place in _needed(change, now_ms)]
        sets = {key: call for change in changes for key, call in _listed(change)}
        if not places and not sets:
            return Draft({}, {}, now_ms)
        known, members = yield gather(read(places), gather_list(sets.values()))
        return Draft(known, dict(zip(sets, members, strict=True)), now_ms)

    def _change(self, change: Change, draft: Draft) -> Steps[None]:
        return _APPLY[type(change)](change, draft)


def place_of(kind: Kind, ids: Ids) -> Place:
    """Return the place of an entity's document."""
    string = STRINGS.get(kind)
    if string is not None:
        return string(ids), None
    if kind is Kind.THREAD_MEMBER:
        return schema.ThreadMembers(ids[1]), ids[2]
    return MAPS[kind](ids[0]), ids[1]


def _must_list(change: Change) -> bool:
    if isinstance(change, Drop):
        return change.kind is Kind.MESSAGE
    if isinstance(change, ReplaceAll):
        return change.kind is Kind.STAGE_INSTANCE
    return isinstance(change, LISTING)


def _needed(change: Change, now_ms: int) -> list[Place]:
    """Return the documents that a change depends on."""
    if isinstance(change, Put):
        if change.kind is Kind.THREAD_MEMBER:
            return [(schema.ThreadIndex(change.ids[0]), change.ids[1])]
        return [place_of(change.kind, change.ids)] if change.needs_stored else []
    if isinstance(change, PutItem | PutItems):
        return [place_of(Kind.GUILD, (change.guild,))]
    if isinstance(change, CountMember):
        return [
            place_of(Kind.GUILD, (change.guild,)),
            place_of(Kind.MEMBER, (change.guild, change.user)),
            *((key, change.user) for key in schema.departed(change.guild, now_ms)),
        ]
    if isinstance(change, SyncThreads):
        return [place for put in change.puts for place in _needed(put, now_ms)]
    return []


def _listed(change: Change) -> Iterator[tuple[Set[str], Call[set[str]]]]:
    """Yield the sets that a change of a guild depends on; they are read together with the documents."""
    if isinstance(change, KeepMembers):
        members = schema.Members(change.guild)
        yield members, others(members, Snowflakes.of(change.people))
    elif isinstance(change, ReplaceAll) and change.kind is Kind.STAGE_INSTANCE:
        index = schema.StageIndex(change.guild)
        yield index, index.members()


def _put(change: Put, draft: Draft) -> Steps[None]:
    yield from ()
    if not draft.put(place_of(change.kind, change.ids), change.normal, change.mode, change.carried):
        return
    ids = change.ids
    match change.kind:
        case Kind.GUILD if "member_count" in body_fields(change.normal):
            for departed in schema.departed(ids[0], draft.now_ms):
                draft.erase(departed)
        case Kind.MEMBER:
            draft.add(schema.Members(ids[0]), ids[1])
        case Kind.PRESENCE:
            draft.add(schema.PresenceIndex(ids[0]), ids[1])
        case Kind.STAGE_INSTANCE:
            draft.add(schema.StageIndex(ids[0]), ids[1])
        case Kind.THREAD if change.mode is not Mode.PATCH:
            parent = parent_of(change) or UNKNOWN_PARENT
            draft.put((schema.ThreadIndex(ids[0]), ids[1]), parent.encode(), Mode.REPLACE)
        case Kind.THREAD_MEMBER:
            # The members of a thread that was never received must be found when their guild is removed.
            index = schema.ThreadIndex(ids[0]), ids[1]
            if draft.get(index) is None:
                draft.put(index, UNKNOWN_PARENT.encode(), Mode.REPLACE)
        case _:
            pass


def _put_users(change: PutUsers, draft: Draft) -> Steps[None]:
    yield from ()
    draft.put_many(schema.User, (), Snowflakes.of(change.people), change.users)


def _put_members(change: PutMembers, draft: Draft) -> Steps[None]:
    yield from ()
    people = Snowflakes.of(change.people)
    draft.put_many(schema.Member, (change.guild,), people, change.normal)
    draft.add_many(schema.Members(change.guild), people)


def _put_presences(change: PutPresences, draft: Draft) -> Steps[None]:
    yield from ()
    people = Snowflakes.of(change.people)
    draft.put_many(schema.Presence, (change.guild,), people, change.normal)
    draft.add_many(schema.PresenceIndex(change.guild), people)


def _keep_members(change: KeepMembers, draft: Draft) -> Steps[None]:
    for person in draft.listed(schema.Members(change.guild)):
        yield from _drop(Drop(Kind.MEMBER, (change.guild, person)), draft)


def _drop(change: Drop, draft: Draft) -> Steps[None]:
    ids = change.ids
    draft.drop(place_of(change.kind, ids))
    match change.kind:
        case Kind.MEMBER:
            draft.remove(schema.Members(ids[0]), ids[1])
            draft.drop(place_of(Kind.PRESENCE, ids))
            draft.remove(schema.PresenceIndex(ids[0]), ids[1])
            draft.drop(place_of(Kind.VOICE_STATE, ids))
        case Kind.PRESENCE:
            draft.remove(schema.PresenceIndex(ids[0]), ids[1])
        case Kind.STAGE_INSTANCE:
            draft.remove(schema.StageIndex(ids[0]), ids[1])
        case Kind.THREAD:
            draft.erase(schema.ThreadMembers(ids[1]))
            draft.drop((schema.ThreadIndex(ids[0]), ids[1]))
        case Kind.MESSAGE:
            yield from _unreact(Unreact(ids[1]), draft)
        case _:
            pass


def _replace_all(change: ReplaceAll, draft: Draft) -> Steps[None]:
    if change.kind is not Kind.STAGE_INSTANCE:
        draft.replace(MAPS[change.kind](change.guild), {put.ids[1]: put.normal for put in change.puts})
        return
    for channel in draft.listed(schema.StageIndex(change.guild)):
        draft.erase(schema.StageInstance(channel))
    draft.erase(schema.StageIndex(change.guild))
    for put in change.puts:
        yield from _put(put, draft)


def _count_member(change: CountMember, draft: Draft) -> Steps[None]:
    yield from ()
    guild, member, *departed = _needed(change, draft.now_ms)
    count_member(change, draft, guild, member, departed)


def _list_guild(change: ListGuild, draft: Draft) -> Steps[None]:
    yield from ()
    draft.add(schema.Guilds(), change.guild)


def _keep_guilds(change: KeepGuilds, draft: Draft) -> Steps[None]:
    known = yield schema.Guilds().members()
    for guild in left_guilds(change, known):
        yield from _drop_guild(DropGuild(guild), draft)


def _drop_guild(change: DropGuild, draft: Draft) -> Steps[None]:
    """Remove every key of a guild (docs/resolutions.md#a66), those in private indexes included."""
    guild = change.guild
    members, present, staged, threads = yield gather_list(
        [
            schema.Members(guild).members(),
            schema.PresenceIndex(guild).members(),
            schema.StageIndex(guild).members(),
            schema.ThreadIndex(guild).fields(),
        ]
    )
    gone: list[Key] = [schema.Member(guild, user) for user in members]
    gone += [schema.Presence(guild, user) for user in {*present, *members}]
    gone += [schema.StageInstance(channel) for channel in staged]
    gone += [key for thread in threads for key in (schema.Thread(thread), schema.ThreadMembers(thread))]
    gone += [make(guild) for kind, make in MAPS.items() if kind is not Kind.COMMAND]
    gone += [make(guild) for make in OF_ONE_GUILD]
    gone += schema.departed(guild, draft.now_ms)
    for key in gone:
        draft.erase(key)
    draft.remove(schema.Guilds(), guild)


OF_ONE_GUILD: tuple[Callable[[str], Key], ...] = (
    schema.Guild,
    schema.Widget,
    schema.WelcomeScreen,
    schema.Members,
    schema.PresenceIndex,
    schema.StageIndex,
    schema.ThreadIndex,
)


def _drop_channel(change: DropChannel, draft: Draft) -> Steps[None]:
    threads = yield schema.ThreadIndex(change.guild).all()
    ids = (change.guild, change.channel)
    draft.drop(place_of(Kind.CHANNEL, ids))
    yield from _drop(Drop(Kind.STAGE_INSTANCE, ids), draft)
    for thread, parent in threads.items():
        if parent == change.channel:
            yield from _drop(Drop(Kind.THREAD, (change.guild, thread)), draft)


def _sync_threads(change: SyncThreads, draft: Draft) -> Steps[None]:
    threads = yield schema.ThreadIndex(change.guild).all()
    for thread in unsynced(change, threads):
        yield from _drop(Drop(Kind.THREAD, (change.guild, thread)), draft)
    for put in change.puts:
        yield from _put(put, draft)


def _react(change: React, draft: Draft) -> Steps[None]:
    yield from ()
    draft.add(schema.Reactions(change.message), change.emoji)
    draft.add(schema.ReactionUsers(change.message, change.emoji), change.user)


def _unreact(change: Unreact, draft: Draft) -> Steps[None]:
    """Remove reactions, and an emoji without any from the index (docs/resolutions.md#a32)."""
    if change.emoji is None:
        emojis = yield schema.Reactions(change.message).members()
        for emoji in emojis:
            draft.erase(schema.ReactionUsers(change.message, emoji))
        draft.erase(schema.Reactions(change.message))
        return
    users = schema.ReactionUsers(change.message, change.emoji)
    if change.user is not None:
        left = yield users.sample(2)
        draft.remove(users, change.user)
        if set(left) - {change.user}:
            return
    draft.erase(users)
    draft.remove(schema.Reactions(change.message), change.emoji)


def _put_item(change: PutItem, draft: Draft) -> Steps[None]:
    yield from ()
    put_item(change, place_of(Kind.GUILD, (change.guild,)), draft)


def _put_items(change: PutItems, draft: Draft) -> Steps[None]:
    yield from ()
    put_items(change, place_of(Kind.GUILD, (change.guild,)), draft)


_APPLY: dict[type[Change], Callable[[Any, Draft], Steps[None]]] = {
    Put: _put,
    PutItem: _put_item,
    PutItems: _put_items,
    PutMembers: _put_members,
    PutPresences: _put_presences,
    PutUsers: _put_users,
    Drop: _drop,
    ReplaceAll: _replace_all,
    CountMember: _count_member,
    ListGuild: _list_guild,
    KeepGuilds: _keep_guilds,
    KeepMembers: _keep_members,
    DropGuild: _drop_guild,
    DropChannel: _drop_channel,
    SyncThreads: _sync_threads,
    React: _react,
    Unreact: _unreact,
}
