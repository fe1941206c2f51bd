"""Changes stored in Spectacles keys, each object as it was received.

`event_cache` describes what is atomic: an event on a single server, the share of one slot on a cluster.

Questions that the table leaves open are answered in docs/resolutions.md#spectacles. Threads are channels;
a guild's own list of channels and active threads replaces all stored ones. A guild keeps inline the lists
that the table does not remove, and events update its stickers, stage instances and scheduled events there.
A presence is of a user and not of a guild, so it is removed with the last guild that showed it, or when
its user leaves that guild. Messages are removed with their channel. Users stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from keywright import Map, Set, gather, gather_list
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
    ReceiveChunk,
    ReplaceAll,
    SyncThreads,
)
from keywright_discord.draft import Place, among, read
from keywright_discord.event_cache import (
    ALL_KINDS,
    Event,
    EventCache,
    Refused,
    complete_members,
    count_member,
    homes,
    left_guilds,
    parent_of,
    unsynced,
)
from keywright_discord.inline_lists import put_item, put_items, replace
from keywright_discord.interpreter import BotSession
from keywright_discord.raw_json import Body, absent, body_fields, fields, maybe_id
from keywright_discord.spectacles import schema
from keywright_discord.spectacles.message_index import IndexedDraft
from keywright_discord.spectacles.removal import (
    INLINE,
    drop_channel,
    drop_channels,
    drop_guilds,
    drop_member,
    drop_members,
    hide,
    in_guild,
)

if TYPE_CHECKING:
    from keywright import Context

__all__ = ["Refused", "SpectaclesCache", "place_of"]

PLACES: dict[Kind, Callable[[Ids], Place]] = {
    Kind.USER: lambda ids: (schema.Users(), ids[0]),
    Kind.GUILD: lambda ids: (schema.Guilds(), ids[0]),
    Kind.MEMBER: lambda ids: (schema.Members(ids[0]), ids[1]),
    Kind.VOICE_STATE: lambda ids: (schema.VoiceStates(ids[0]), ids[1]),
    Kind.PRESENCE: lambda ids: (schema.Presence(ids[1]), ids[1]),
    Kind.CHANNEL: lambda ids: (schema.Channels(), ids[1]),
    Kind.THREAD: lambda ids: (schema.Channels(), ids[1]),
    Kind.ROLE: lambda ids: (schema.Roles(ids[0]), ids[1]),
    Kind.EMOJI: lambda ids: (schema.Emojis(), ids[1]),
    Kind.MESSAGE: lambda ids: (schema.Message(ids[0], ids[1]), None),
}
STORED = frozenset(PLACES) | frozenset(INLINE)

NOT_IN_A_GUILD = frozenset(("voice_states", "roles", "emojis", "channels", "members", "presences", "threads"))
LISTING = (DropGuild, KeepGuilds, KeepMembers, KeepPresences, DropChannel, SyncThreads)


class SpectaclesCache(EventCache[IndexedDraft]):
    """A Spectacles cache as one session writes it; `kinds` are the entities that it keeps. With `strip_user`
    members are stored without their users."""

    def __init__(
        self,
        session: BotSession | None = None,
        kinds: Iterable[Kind] = ALL_KINDS,
        *,
        strip_user: bool = False,
    ) -> None:
        super().__init__(session, STORED.intersection(kinds))
        self.strip_user = strip_user

    def _interpreted(
        self, events: Sequence[Event], refused: list[Refused]
    ) -> Iterator[tuple[int, list[Change]]]:
        return ((place, _folded(changes)) for place, changes in super()._interpreted(events, refused))

    def _must_list(self, change: Change) -> bool:
        if isinstance(change, Drop):
            return change.kind in (Kind.GUILD, Kind.CHANNEL, Kind.THREAD)
        if isinstance(change, ReplaceAll):
            return change.kind is Kind.CHANNEL
        if isinstance(change, ReceiveChunk):
            return change.is_last
        return isinstance(change, LISTING)

    def _begin(self, changes: list[Change], context: Context) -> Steps[IndexedDraft]:
        now_ms = context.now_ms()
        places = [place for change in changes for place in _needed(change, now_ms)]
        others = [change for change in changes if type(change) is not Put]  # puts depend on documents only
        sets = {key: key.members() for change in others for key in _needed_sets(change)}
        if asked := homes(changes):
            sets[schema.GuildIndex()] = among(schema.GuildIndex(), asked)
        known, members = yield gather(read(places), gather_list(sets.values()))
        return IndexedDraft(known, dict(zip(sets, members, strict=True)), context)

    def _change(self, change: Change, draft: IndexedDraft) -> Steps[None] | None:
        if self.strip_user:
            change = _stripped(change)
        return _APPLY[type(change)](change, draft)


def _folded(changes: list[Change]) -> list[Change]:
    """Return the changes of one event without duplicates that result from threads being channels.

    A guild contains its inline lists itself; its complete list of channels has its threads in it; and a patch
    of a channel or thread, whichever it is, is applied once.
    """
    if len(changes) < 2:
        return changes
    whole = next((each for each in changes if _is_of(each, ReplaceAll, Kind.CHANNEL)), None)
    inline = any(_is_of(each, Put, Kind.GUILD) for each in changes)
    folded: list[Change] = []
    for change in changes:
        if isinstance(change, SyncThreads) and isinstance(whole, ReplaceAll):
            whole.puts += change.puts
            continue
        if isinstance(change, Put) and change.kind is Kind.THREAD:
            before = folded[-1] if folded else None
            if isinstance(before, Put) and before.kind is Kind.CHANNEL and before.data is change.data:
                continue
        elif inline and isinstance(change, ReplaceAll) and change.kind in INLINE:
            continue
        folded.append(change)
    return folded


def _is_of(change: Change, what: type[Put] | type[ReplaceAll], kind: Kind) -> bool:
    return isinstance(change, what) and change.kind is kind


def _stripped(change: Change) -> Change:
    if isinstance(change, Put) and change.kind is Kind.MEMBER:
        return Put(change.kind, change.ids, change.normal, change.normal, change.mode)
    if isinstance(change, PutMembers):
        return PutMembers(change.guild, change.people, change.users, change.normal, with_users=False)
    return change


def place_of(kind: Kind, ids: Ids) -> Place:
    """Return the place of an entity's document."""
    return PLACES[kind](ids)


def _needed(change: Change, now_ms: int) -> list[Place]:
    """Return the documents that a change depends on."""
    if isinstance(change, Put):
        if change.kind in INLINE:
            return [(schema.Guilds(), change.ids[0])]
        return [place_of(change.kind, change.ids)] if change.needs_stored else []
    if isinstance(change, Drop | ReplaceAll) and change.kind in INLINE:
        return [(schema.Guilds(), change.guild if isinstance(change, ReplaceAll) else change.ids[0])]
    if isinstance(change, PutItem | PutItems) or (isinstance(change, ReceiveChunk) and change.is_last):
        return [(schema.Guilds(), change.guild)]
    if isinstance(change, CountMember):
        return [
            (schema.Guilds(), change.guild),
            (schema.Members(change.guild), change.user),
            *((key, change.user) for key in schema.departed(change.guild, now_ms)),
        ]
    if isinstance(change, DropChannel):
        return [(schema.Guilds(), change.guild)]
    if isinstance(change, Drop):
        return [(schema.Guilds(), change.ids[0])] if change.kind is Kind.CHANNEL else []
    if isinstance(change, ReplaceAll | SyncThreads):
        return [place for put in change.puts for place in _needed(put, now_ms)]
    return []


def _needed_sets(change: Change) -> list[Set[Any]]:
    """Return the sets that a change depends on."""
    if isinstance(change, Drop) and change.kind is Kind.MEMBER:
        return [schema.PresenceGuilds(change.ids[1])]
    if isinstance(change, ReplaceAll) and change.kind is Kind.EMOJI:
        return [schema.EmojiIds(change.guild)]
    if isinstance(change, ReplaceAll) and change.kind is Kind.CHANNEL:
        return [schema.ChannelIds(change.guild)]
    if isinstance(change, KeepPresences):
        return [schema.PresenceIndex(change.guild)]
    if isinstance(change, ReceiveChunk) and change.is_last:
        return [schema.ReceivedMembers(change.guild, change.request)]
    return []


def _put(change: Put, draft: IndexedDraft) -> None:
    kind, ids = change.kind, change.ids
    if change.only_in is not None and not draft.contains(schema.GuildIndex(), change.only_in):
        return
    if kind in INLINE:
        put_item(in_guild(kind, ids, body_fields(change.data)), (schema.Guilds(), ids[0]), draft)
        return
    place = place_of(kind, ids)
    if not draft.put(place, _body(change, place, draft), change.mode, change.carried):
        return
    match kind:
        case Kind.GUILD if "member_count" in body_fields(change.data):
            for departed in schema.departed(ids[0], draft.now_ms):
                draft.erase(departed)
        case Kind.CHANNEL | Kind.THREAD if change.mode is not Mode.PATCH:
            draft.add(schema.ChannelIds(ids[0]), ids[1])
            parent = parent_of(change) if kind is Kind.THREAD else None
            if parent is not None:
                draft.put((schema.ThreadIndex(ids[0]), ids[1]), parent.encode(), Mode.REPLACE)
        case Kind.EMOJI:
            draft.add(schema.EmojiIds(ids[0]), ids[1])
        case Kind.PRESENCE:
            draft.add(schema.PresenceIndex(ids[0]), ids[1])
            draft.add(schema.PresenceGuilds(ids[1]), ids[0])
        case Kind.MESSAGE:
            draft.index_message(*ids)
            guild = maybe_id(body_fields(change.data), "guild_id", "message")
            if guild is not None:
                draft.add(schema.MessageChannels(guild), ids[0])
        case _:
            pass


def _body(change: Put, place: Place, draft: IndexedDraft) -> Body:
    """Return the part of a put's data that is stored."""
    if change.kind is Kind.GUILD:
        given = body_fields(change.data)
        return {name: raw for name, raw in given.items() if name not in NOT_IN_A_GUILD}
    if change.kind is Kind.MEMBER and change.mode is not Mode.REPLACE and draft.get(place) is not None:
        given = body_fields(change.data)
        user = given.get("user")
        # A partial user must not replace the complete one inside the stored member.
        if user is not None and not absent(user) and "username" not in fields(user, "member.user"):
            return {name: raw for name, raw in given.items() if name != "user"}
    return change.data


def _put_members(change: PutMembers, draft: IndexedDraft) -> None:
    members = schema.Members(change.guild)
    for person, body in zip(change.people, change.data, strict=True):
        draft.put((members, person), body, Mode.REPLACE)


def _put_users(change: PutUsers, draft: IndexedDraft) -> None:
    users = schema.Users()
    for person, body in zip(change.people, change.users, strict=True):
        draft.put((users, person), body, Mode.REPLACE)


def _put_presences(change: PutPresences, draft: IndexedDraft) -> None:
    for put in change.puts():
        _put(put, draft)


def _keep_members(change: KeepMembers, draft: IndexedDraft) -> Steps[None]:
    known = yield schema.Members(change.guild).fields()
    yield from drop_members(change.guild, set(known).difference(change.people), draft)


def _receive_chunk(change: ReceiveChunk, draft: IndexedDraft) -> Steps[None]:
    received = schema.ReceivedMembers(change.guild, change.request)
    people = complete_members(change, draft, received, (schema.Guilds(), change.guild))
    if people is not None:
        yield from _keep_members(KeepMembers(change.guild, list(people)), draft)


def _keep_presences(change: KeepPresences, draft: IndexedDraft) -> Steps[None]:
    gone = draft.listed(schema.PresenceIndex(change.guild)).difference(change.people)
    yield from hide(gone if change.among is None else gone.intersection(change.among), change.guild, draft)


def _drop(change: Drop, draft: IndexedDraft) -> Steps[None]:
    kind, ids = change.kind, change.ids
    match kind:
        case Kind.GUILD:
            yield from drop_guilds(ids[:1], draft)
        case Kind.CHANNEL:
            yield from drop_channel(DropChannel(*ids), draft)
        case Kind.THREAD:
            yield from drop_channels(ids[0], ids[1:], draft)
        case _ if kind in INLINE:
            put_item(in_guild(kind, ids, None), (schema.Guilds(), ids[0]), draft)
        case _:
            draft.drop(place_of(kind, ids))
            _unindex(kind, ids, draft)


def _unindex(kind: Kind, ids: Ids, draft: IndexedDraft) -> None:
    match kind:
        case Kind.MEMBER:
            drop_member(ids[0], ids[1], draft.listed(schema.PresenceGuilds(ids[1])), draft)
        case Kind.EMOJI:
            draft.remove(schema.EmojiIds(ids[0]), ids[1])
        case Kind.PRESENCE:
            # Discord sends the offline presence once for each guild that shows the user.
            draft.remove(schema.PresenceIndex(ids[0]), ids[1])
            draft.remove(schema.PresenceGuilds(ids[1]), ids[0])
        case Kind.MESSAGE:
            draft.unindex_message(*ids)
        case _:
            pass


def _replace_all(change: ReplaceAll, draft: IndexedDraft) -> Steps[None]:
    guild = change.guild
    listed = {put.ids[1]: put for put in change.puts}
    match change.kind:
        case Kind.CHANNEL:
            known = draft.listed(schema.ChannelIds(guild))
            yield from drop_channels(guild, sorted(known - listed.keys()), draft)
        case Kind.EMOJI:
            for emoji in sorted(draft.listed(schema.EmojiIds(guild)) - listed.keys()):
                yield from _drop(Drop(Kind.EMOJI, (guild, emoji)), draft)
        case kind if kind in INLINE:
            whole = [body_fields(put.data) for put in listed.values()]
            replace((schema.Guilds(), guild), INLINE[kind][0], whole, draft)
            return
        case kind:
            draft.erase(_OF_A_GUILD[kind](guild))
    for put in change.puts:
        _put(put, draft)


_OF_A_GUILD: dict[Kind, Callable[[str], Map[str, Any]]] = {
    Kind.ROLE: schema.Roles,
    Kind.VOICE_STATE: schema.VoiceStates,
    Kind.MEMBER: schema.Members,
}


def _count_member(change: CountMember, draft: IndexedDraft) -> None:
    guild, member, *departed = _needed(change, draft.now_ms)
    count_member(change, draft, guild, member, departed)


def _list_guild(change: ListGuild, draft: IndexedDraft) -> None:
    draft.add(schema.GuildIndex(), change.guild)


def _keep_guilds(change: KeepGuilds, draft: IndexedDraft) -> Steps[None]:
    listed, stored = yield gather(schema.GuildIndex().members(), schema.Guilds().fields())
    yield from drop_guilds(left_guilds(change, {*listed, *stored}), draft)


def _drop_guild(change: DropGuild, draft: IndexedDraft) -> Steps[None]:
    yield from drop_guilds([change.guild], draft)


def _sync_threads(change: SyncThreads, draft: IndexedDraft) -> Steps[None]:
    threads = yield schema.ThreadIndex(change.guild).all()
    yield from drop_channels(change.guild, unsynced(change, threads), draft)
    for put in change.puts:
        _put(put, draft)


def _put_item(change: PutItem, draft: IndexedDraft) -> None:
    put_item(change, (schema.Guilds(), change.guild), draft)


def _put_items(change: PutItems, draft: IndexedDraft) -> None:
    put_items(change, (schema.Guilds(), change.guild), draft)


_APPLY: dict[type[Change], Callable[[Any, IndexedDraft], Steps[None] | None]] = {
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
    KeepPresences: _keep_presences,
    ReceiveChunk: _receive_chunk,
    DropGuild: _drop_guild,
    DropChannel: drop_channel,
    SyncThreads: _sync_threads,
}
