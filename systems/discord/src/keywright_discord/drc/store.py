"""Changes stored in DRC keys.

`event_cache` describes what is atomic. DRC's names have no hash tags, so on a cluster one event concerns
many slots, and is one transaction in each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from keywright import Call, Key, gather, gather_list
from keywright.operations import Steps
from keywright_discord.changes import (
    Change,
    CountMember,
    Drop,
    DropChannel,
    DropGuild,
    KeepGuilds,
    KeepMembers,
    KeepPresences,
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
    ReceiveChunk,
    ReplaceAll,
    SyncThreads,
    Unreact,
)
from keywright_discord.draft import Draft, Place, among, others, read
from keywright_discord.drc import schema
from keywright_discord.drc.places import MAPS, place_of
from keywright_discord.drc.reactions import react, unreact, users_read
from keywright_discord.drc.removal import (
    drop,
    drop_channel,
    drop_guild,
    drop_members,
    drop_missing_channels,
    drop_presence,
    drop_threads,
    home_of,
    index_of,
)
from keywright_discord.event_cache import (
    EventCache,
    Refused,
    complete_members,
    count_member,
    homes,
    left_guilds,
    parent_of,
    unsynced,
)
from keywright_discord.inline_lists import put_item, put_items
from keywright_discord.raw_json import Body, Snowflakes, body_bytes, body_fields

if TYPE_CHECKING:
    from keywright import Context

__all__ = ["DrcCache", "Refused"]

UNKNOWN = "0"
"""The channel of a thread, webhook or invite that came without one."""

# Changes that list stored keys, so they cannot share a batch with other events.
LISTING = (DropGuild, KeepGuilds, KeepMembers, KeepPresences, DropChannel, SyncThreads)


class DrcCache(EventCache[Draft]):
    """A DRC cache as one session writes it; `kinds` are the entities that it keeps."""

    def _must_list(self, change: Change) -> bool:
        match change:
            case Drop():
                return change.kind is Kind.THREAD
            case ReplaceAll():
                return change.kind in (Kind.CHANNEL, Kind.STAGE_INSTANCE, Kind.WEBHOOK, Kind.INVITE)
            case ReceiveChunk():
                return change.is_last
            case _:
                return isinstance(change, LISTING)

    def _begin(self, changes: list[Change], context: Context) -> Steps[Draft]:
        now_ms = context.now_ms()
        places: list[Place] = []
        others: list[Change] = []
        for change in changes:
            if type(change) is not Put:
                others.append(change)
                places += _needed(change, now_ms)
            elif (place := _merged(change)) is not None:
                places.append(place)  # puts depend on documents only
        lists = {key: call for change in others for key, call in _listed(change)}
        lists.update(users_read(others))
        if asked := homes(changes):
            lists[schema.Guilds()] = among(schema.Guilds(), asked)
        if not places and not lists:
            return Draft({}, {}, now_ms)
        known, found = yield gather(read(places), gather_list(lists.values()))
        return Draft(known, dict(zip(lists, found, strict=True)), now_ms)

    def _change(self, change: Change, draft: Draft) -> Steps[None] | None:
        return _APPLY[type(change)](change, draft)


def _merged(put: Put) -> Place | None:
    """Return the document that a put depends on."""
    if put.kind is Kind.THREAD_MEMBER:
        return schema.ThreadIndex(put.ids[0]), put.ids[1]
    return place_of(put.kind, put.ids) if put.mode is not Mode.REPLACE or put.carried else None


def _needed(change: Change, now_ms: int) -> list[Place]:
    """Return the documents that a change other than a put depends on."""
    match change:
        case Drop():
            return [place_of(change.kind, change.ids)] if change.kind in (Kind.INVITE, Kind.WEBHOOK) else []
        case PutItem() | PutItems():
            return [place_of(Kind.GUILD, (change.guild,))]
        case ReceiveChunk():
            return [place_of(Kind.GUILD, (change.guild,))] if change.is_last else []
        case CountMember():
            return [
                place_of(Kind.GUILD, (change.guild,)),
                place_of(Kind.MEMBER, (change.guild, change.user)),
                *((key, change.user) for key in schema.departed(change.guild, now_ms)),
            ]
        case SyncThreads():
            return [place for put in change.puts if (place := _merged(put)) is not None]
        case React(emoji=str(emoji), user=str(user)) | Unreact(emoji=str(emoji), user=str(user)):
            return [(schema.SuperReactions(change.message, emoji), user)]
        case _:
            return []


def _listed(change: Change) -> Iterator[tuple[Key, Call[Any]]]:
    """Yield the sets and indexes that a change depends on; they are read together with the documents."""
    key: Any
    match change:
        case KeepMembers():
            key = schema.Members(change.guild)
            yield key, others(key, Snowflakes.of(change.people))
        case KeepPresences(among=None):
            key = schema.PresenceIndex(change.guild)
            yield key, others(key, Snowflakes.of(change.people))
        case KeepPresences(among=list(asked)) if offline := set(asked).difference(change.people):
            key = schema.PresenceIndex(change.guild)
            yield key, among(key, sorted(offline))
        case Drop(kind=Kind.MEMBER):
            key = schema.MemberThreads(*change.ids)
            yield key, key.members()
        case Drop(kind=Kind.MESSAGE):
            key = schema.Reactions(change.ids[1])
            yield key, key.members()
        case Unreact(emoji=None):
            key = schema.Reactions(change.message)
            yield key, key.members()
        case ReceiveChunk(is_last=True):
            key = schema.ReceivedMembers(change.guild, change.request)
            yield key, key.members()
        case ReplaceAll(kind=Kind.STAGE_INSTANCE):
            key = schema.StageIndex(change.guild)
            yield key, key.members()
        case ReplaceAll(kind=Kind.CHANNEL):
            for key in (schema.WebhookIndex(change.guild), schema.InviteIndex(change.guild)):
                yield key, key.all()
        case ReplaceAll(kind=Kind.WEBHOOK | Kind.INVITE):
            key = index_of(change.kind, change.guild)
            yield key, key.all()
        case DropChannel():
            for key in (schema.ThreadIndex, schema.WebhookIndex, schema.InviteIndex):
                yield key(change.guild), key(change.guild).all()
        case SyncThreads():
            key = schema.ThreadIndex(change.guild)
            yield key, key.all()
        case _:
            pass


def _put(change: Put, draft: Draft) -> None:
    body: Body | None = change.normal
    if change.only_in is not None and not draft.contains(schema.Guilds(), change.only_in):
        body = change.elsewhere
    if body is None or not draft.put(place_of(change.kind, change.ids), body, change.mode, change.carried):
        return
    note = _NOTED.get(change.kind)
    if note is not None:
        note(change, draft)


def _put_guild(change: Put, draft: Draft) -> None:
    """Forget who left: a new `member_count` has counted them."""
    if "member_count" in body_fields(change.normal):
        for departed in schema.departed(change.ids[0], draft.now_ms):
            draft.erase(departed)


def _put_member(change: Put, draft: Draft) -> None:
    draft.add(schema.Members(change.ids[0]), change.ids[1])


def _put_presence(change: Put, draft: Draft) -> None:
    draft.add(schema.PresenceIndex(change.ids[0]), change.ids[1])


def _put_stage_instance(change: Put, draft: Draft) -> None:
    draft.add(schema.StageIndex(change.ids[0]), change.ids[1])


def _put_thread(change: Put, draft: Draft) -> None:
    if change.mode is not Mode.PATCH:
        parent = parent_of(change) or UNKNOWN
        draft.put((schema.ThreadIndex(change.ids[0]), change.ids[1]), parent.encode(), Mode.REPLACE)


def _put_thread_member(change: Put, draft: Draft) -> None:
    guild, thread, user = change.ids
    draft.add(schema.MemberThreads(guild, user), thread)
    # The members of a thread that was never received must be found when their guild is removed.
    index = schema.ThreadIndex(guild), thread
    if draft.get(index) is None:
        draft.put(index, UNKNOWN.encode(), Mode.REPLACE)


def _put_of_channel(change: Put, draft: Draft) -> None:
    """Note the guild and channel of a webhook, or of an invite, unless it has an expiry of its own."""
    guild, channel = home_of(body_fields(change.normal))
    if guild is None:
        return
    index: Place = index_of(change.kind, guild), change.ids[0]
    if change.kind is Kind.INVITE and schema.end_of_invite(body_bytes(change.normal)) is not None:
        draft.drop(index)
        return
    draft.put(index, (channel or UNKNOWN).encode(), Mode.REPLACE)


def _put_users(change: PutUsers, draft: Draft) -> None:
    draft.put_many(schema.User, (), Snowflakes.of(change.people), change.users)


def _put_members(change: PutMembers, draft: Draft) -> None:
    people = Snowflakes.of(change.people)
    draft.put_many(schema.Member, (change.guild,), people, change.normal)
    draft.add_many(schema.Members(change.guild), people)


def _put_presences(change: PutPresences, draft: Draft) -> None:
    people = Snowflakes.of(change.people)
    draft.put_many(schema.Presence, (change.guild,), people, change.normal)
    draft.add_many(schema.PresenceIndex(change.guild), people)


def _put_item(change: PutItem, draft: Draft) -> None:
    put_item(change, place_of(Kind.GUILD, (change.guild,)), draft)


def _put_items(change: PutItems, draft: Draft) -> None:
    put_items(change, place_of(Kind.GUILD, (change.guild,)), draft)


def _keep_members(change: KeepMembers, draft: Draft) -> Steps[None]:
    yield from drop_members(change.guild, list(draft.listed(schema.Members(change.guild))), draft)


def _receive_chunk(change: ReceiveChunk, draft: Draft) -> Steps[None]:
    received = schema.ReceivedMembers(change.guild, change.request)
    people = complete_members(change, draft, received, place_of(Kind.GUILD, (change.guild,)))
    if people is not None:
        members = yield schema.Members(change.guild).members()
        yield from drop_members(change.guild, sorted(members - people), draft)


def _keep_presences(change: KeepPresences, draft: Draft) -> None:
    if change.among is None or set(change.among).difference(change.people):
        for person in list(draft.listed(schema.PresenceIndex(change.guild))):
            drop_presence(change.guild, person, draft)


def _replace_all(change: ReplaceAll, draft: Draft) -> None:
    if change.kind in (Kind.WEBHOOK, Kind.INVITE):
        index = index_of(change.kind, change.guild)
        for gone in set(draft.listed(index)).difference(put.ids[0] for put in change.puts):
            draft.drop(place_of(change.kind, (gone,)))
            draft.drop((index, gone))
        for put in change.puts:
            _put(put, draft)
        return
    listed = {put.ids[1]: put.normal for put in change.puts}
    if change.kind is Kind.CHANNEL:
        drop_missing_channels(change.guild, {*listed, UNKNOWN}, draft)
    if change.kind is not Kind.STAGE_INSTANCE:
        draft.replace(MAPS[change.kind](change.guild), listed)
        return
    for channel in list(draft.listed(schema.StageIndex(change.guild))):
        draft.erase(schema.StageInstance(channel))
    draft.erase(schema.StageIndex(change.guild))
    for put in change.puts:
        _put(put, draft)


def _count_member(change: CountMember, draft: Draft) -> None:
    guild, member, *departed = _needed(change, draft.now_ms)
    count_member(change, draft, guild, member, departed)


def _list_guild(change: ListGuild, draft: Draft) -> None:
    draft.add(schema.Guilds(), change.guild)


def _keep_guilds(change: KeepGuilds, draft: Draft) -> Steps[None]:
    known = yield schema.Guilds().members()
    for guild in left_guilds(change, known):
        yield from drop_guild(DropGuild(guild), draft)


def _sync_threads(change: SyncThreads, draft: Draft) -> Steps[None]:
    known = draft.listed(schema.ThreadIndex(change.guild))
    gone = unsynced(change, known)
    synced = [put.ids[1] for put in change.puts if put.ids[1] in known]
    yield from drop_threads(change.guild, [*gone, *synced], draft)
    for put in change.puts:
        _put(put, draft)


# What else a put changes, by kind.
_NOTED: dict[Kind, Callable[[Put, Draft], None]] = {
    Kind.GUILD: _put_guild,
    Kind.MEMBER: _put_member,
    Kind.PRESENCE: _put_presence,
    Kind.STAGE_INSTANCE: _put_stage_instance,
    Kind.THREAD: _put_thread,
    Kind.THREAD_MEMBER: _put_thread_member,
    Kind.WEBHOOK: _put_of_channel,
    Kind.INVITE: _put_of_channel,
}
_APPLY: dict[type[Change], Callable[[Any, Draft], Steps[None] | None]] = {
    Put: _put,
    PutItem: _put_item,
    PutItems: _put_items,
    PutMembers: _put_members,
    PutPresences: _put_presences,
    PutUsers: _put_users,
    Drop: drop,
    ReplaceAll: _replace_all,
    CountMember: _count_member,
    ListGuild: _list_guild,
    KeepGuilds: _keep_guilds,
    KeepMembers: _keep_members,
    KeepPresences: _keep_presences,
    ReceiveChunk: _receive_chunk,
    DropGuild: drop_guild,
    DropChannel: drop_channel,
    SyncThreads: _sync_threads,
    React: react,
    Unreact: unreact,
}
