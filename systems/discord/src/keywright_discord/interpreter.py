"""Gateway events interpreted as changes of entities: the one place that knows Discord's events.

Pure: bytes in, changes out, nothing stored. An event is interpreted completely before anything of it
is applied, so a malformed one changes nothing. Events that concern no cache, and events that are not
known yet, mean no change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from zlib import crc32

import msgspec

from keywright_discord.changes import (
    Change,
    CountMember,
    Drop,
    DropChannel,
    DropGuild,
    KeepGuilds,
    KeepPresences,
    Kind,
    ListGuild,
    Mode,
    Put,
    PutItem,
    PutItems,
    React,
    ReceiveChunk,
    ReplaceAll,
    Unreact,
)
from keywright_discord.entities import (
    Nested,
    application,
    channel,
    emoji_token,
    entity,
    guild,
    integration,
    interaction,
    invite,
    invite_code,
    last_id,
    member,
    message,
    people_of,
    presence,
    presences,
    stage_instance,
    synced_threads,
    thread,
    thread_member,
    user,
    voice_state,
    whole_members,
)
from keywright_discord.member_splitter import elements, lift_members
from keywright_discord.raw_json import (
    Fields,
    PayloadError,
    absent,
    body_fields,
    check_text,
    fields,
    ids,
    maybe_id,
    objects,
    one_id,
    scalar,
    written,
)

Changes = Iterator[Change]


class BotSession(msgspec.Struct):
    """The gateway session that events come by: its bot and its shard. READY sets them."""

    bot: str | None = None
    shard: int = 0
    shards: int = 1


Interpreter = Callable[[Fields, BotSession], Changes]
# The entities in an interaction that stay until an event of their guild removes them.
OF_A_GUILD = (Kind.MEMBER, Kind.THREAD, Kind.THREAD_MEMBER)
# Fields of a voice channel that its own events lack, and other events have.
SENT_APART = ("status", "voice_start_time")
# The list of a guild's soundboard sounds, which no layout keeps apart: docs/resolutions.md#a86.
SOUNDS = "soundboard_sounds"
WITH_MEMBERS = ("GUILD_CREATE", "GUILD_MEMBERS_CHUNK")


def interpret(event: str, data: bytes, session: BotSession) -> list[Change]:
    """Return the changes of one dispatch (`t`, `d`). Raise PayloadError if it is malformed."""
    interpreter = EVENTS.get(event)
    if interpreter is None:
        return []
    check_text(data, event)
    lifted = lift_members(data) if event in WITH_MEMBERS else None
    return list(interpreter(fields(data, event) if lifted is None else lifted, session))


def _ready(d: Fields, session: BotSession) -> Changes:
    own = fields(d["user"], "READY.user") if "user" in d else {}
    own.pop("email", None)  # personal data that no other event carries: docs/resolutions.md#a58
    bot = one_id(own, "id", "READY.user")
    shard, shards = (session.shard, session.shards) if absent(d.get("shard")) else _shard(d["shard"])
    if absent(d.get("guilds")):  # otherwise all stored guilds would be removed
        raise PayloadError("READY.guilds", "an array of guilds", "nothing")
    listed = [one_id(each, "id", "READY.guilds") for each in objects(d["guilds"], "READY.guilds")]
    yield Put(Kind.USER, (bot,), own, own)
    yield KeepGuilds(shard, shards, listed)
    for each in listed:
        yield ListGuild(each)
    if not absent(d.get("application")):
        nested = application(fields(d["application"], "READY.application"))
        yield from nested.changes(Mode.MERGE)
    session.bot, session.shard, session.shards = bot, shard, shards


def _shard(raw: msgspec.Raw) -> tuple[int, int]:
    try:
        shard, shards = msgspec.json.decode(raw, type=tuple[int, int])
    except msgspec.MsgspecError as error:
        raise PayloadError("READY.shard", "a shard and how many there are", bytes(raw)) from error
    if not 0 <= shard < shards:
        raise PayloadError("READY.shard", "a shard and how many there are", bytes(raw))
    return shard, shards


def _user_update(d: Fields, session: BotSession) -> Changes:
    own = {name: raw for name, raw in d.items() if name != "email"}
    yield Put(Kind.USER, (one_id(d, "id", "USER_UPDATE"),), own, own)


def _guild_create(d: Fields, session: BotSession) -> Changes:
    identity = one_id(d, "id", "GUILD_CREATE")
    if _unavailable(d):
        yield ListGuild(identity)  # what is stored of it stays: docs/resolutions.md#a61
        return
    yield from guild(d, identity, session.bot)


def _guild_update(d: Fields, session: BotSession) -> Changes:
    identity = one_id(d, "id", "GUILD_UPDATE")
    yield from guild(d, identity, session.bot, mode=Mode.MERGE)


def _guild_delete(d: Fields, session: BotSession) -> Changes:
    identity = one_id(d, "id", "GUILD_DELETE")
    if _unavailable(d):
        mark = {"unavailable": written(True)}
        yield Put(Kind.GUILD, (identity,), mark, mark, Mode.PATCH)
        return
    yield DropGuild(identity)


def _unavailable(d: Fields) -> bool:
    return "unavailable" in d and scalar(d["unavailable"], "unavailable") is True


def _channel_create(d: Fields, session: BotSession) -> Changes:
    where = maybe_id(d, "guild_id", "channel")
    if where is not None:  # channels without a guild have no key: docs/resolutions.md#a81
        yield channel(d, where, Mode.REPLACE)


def _channel_update(d: Fields, session: BotSession) -> Changes:
    for put in _channel_create(d, session):
        assert isinstance(put, Put)
        put.carried = SENT_APART
        yield put


def _channel_delete(d: Fields, session: BotSession) -> Changes:
    where = maybe_id(d, "guild_id", "channel")
    if where is not None:
        yield DropChannel(where, one_id(d, "id", "channel"))


def _channel_pins(d: Fields, session: BotSession) -> Changes:
    where = maybe_id(d, "guild_id", "CHANNEL_PINS_UPDATE")
    if where is None:
        return
    identity = one_id(d, "channel_id", "CHANNEL_PINS_UPDATE")
    pinned = {"last_pin_timestamp": d.get("last_pin_timestamp", written(None))}
    yield from _on_channel(where, identity, pinned)


def _channel_info(d: Fields, session: BotSession) -> Changes:
    where = one_id(d, "guild_id", "CHANNEL_INFO")
    for each in objects(d.get("channels"), "CHANNEL_INFO.channels"):
        yield from _on_voice_channel(where, each)


def _voice_channel(d: Fields, session: BotSession) -> Changes:
    where = maybe_id(d, "guild_id", "channel")
    if where is not None:
        yield from _on_voice_channel(where, d)


def _on_voice_channel(where: str, about: Fields) -> Changes:
    """Yield the fields of a voice channel that Discord does not send with the channel itself."""
    changed = {name: raw for name, raw in about.items() if name in SENT_APART}
    yield from _on_channel(where, one_id(about, "id", "channel"), changed)


def _on_channel(where: str, identity: str, changed: Fields) -> Changes:
    """Patch both a channel and a thread: the event does not say which it is, and only one of them exists."""
    yield Put(Kind.CHANNEL, (where, identity), changed, changed, Mode.PATCH)
    yield Put(Kind.THREAD, (where, identity), changed, changed, Mode.PATCH)


def _thread_write(d: Fields, session: BotSession) -> Changes:
    yield from thread(d, session.bot, Mode.MERGE).changes(Mode.MERGE)


def _thread_delete(d: Fields, session: BotSession) -> Changes:
    where = one_id(d, "guild_id", "THREAD_DELETE")
    yield Drop(Kind.THREAD, (where, one_id(d, "id", "THREAD_DELETE")))


def _thread_list_sync(d: Fields, session: BotSession) -> Changes:
    where = one_id(d, "guild_id", "THREAD_LIST_SYNC")
    channels = None if absent(d.get("channel_ids")) else ids(d["channel_ids"], "THREAD_LIST_SYNC.channel_ids")
    listed = objects(d.get("threads"), "THREAD_LIST_SYNC.threads")
    yield from synced_threads(listed, where, channels, session.bot)
    for each_member in objects(d.get("members"), "THREAD_LIST_SYNC.members"):
        yield from thread_member(each_member, None, session.bot, where)


def _thread_member_update(d: Fields, session: BotSession) -> Changes:
    where = maybe_id(d, "guild_id", "THREAD_MEMBER_UPDATE")
    yield from thread_member(d, None, session.bot, where)


def _thread_members_update(d: Fields, session: BotSession) -> Changes:
    identity = one_id(d, "id", "THREAD_MEMBERS_UPDATE")
    where = one_id(d, "guild_id", "THREAD_MEMBERS_UPDATE")
    for each in objects(d.get("added_members"), "THREAD_MEMBERS_UPDATE.added_members"):
        yield from thread_member(each, identity, session.bot, where)
    for gone in ids(d.get("removed_member_ids"), "THREAD_MEMBERS_UPDATE.removed_member_ids"):
        yield Drop(Kind.THREAD_MEMBER, (where, identity, gone))
    if "member_count" in d:
        count = {"member_count": d["member_count"]}
        yield Put(Kind.THREAD, (where, identity), count, count, Mode.PATCH)


def _member_add(d: Fields, session: BotSession) -> Changes:
    where = one_id(d, "guild_id", "GUILD_MEMBER_ADD")
    changes = list(member(d, where, None, Mode.REPLACE))
    joined = d.get("joined_at")
    yield CountMember(where, last_id(changes), 1, None if joined is None else bytes(joined))
    yield from changes


def _member_update(d: Fields, session: BotSession) -> Changes:
    yield from member(d, one_id(d, "guild_id", "GUILD_MEMBER_UPDATE"), None, Mode.MERGE)


def _member_remove(d: Fields, session: BotSession) -> Changes:
    where = one_id(d, "guild_id", "GUILD_MEMBER_REMOVE")
    if "user" not in d:
        raise PayloadError("GUILD_MEMBER_REMOVE.user", "a user", "nothing")
    person = user(d["user"], "GUILD_MEMBER_REMOVE.user")
    yield person
    yield CountMember(where, person.ids[0], -1)
    yield Drop(Kind.MEMBER, (where, *person.ids))


def _members_chunk(d: Fields, session: BotSession) -> Changes:
    where = one_id(d, "guild_id", "GUILD_MEMBERS_CHUNK")
    members = list(whole_members(d, where))
    people = people_of(Kind.MEMBER, members)
    index, count = (scalar(d[name], name) if name in d else None for name in ("chunk_index", "chunk_count"))
    if type(index) is int and type(count) is int and 0 <= index < count:
        # A request is known by its nonce, which may be any text, so its checksum is in the name of a key.
        yield ReceiveChunk(where, crc32(d.get("nonce", b"")), index, count, people)
    yield from members
    if "presences" in d:
        shown = list(presences(elements(d["presences"], "GUILD_MEMBERS_CHUNK.presences"), where))
        yield KeepPresences(where, people_of(Kind.PRESENCE, shown), people)  # the others are offline
        yield from shown


def _people(*names: str) -> Interpreter:
    """Return the interpreter of an event of which only the users are stored."""

    def interpret_people(d: Fields, session: BotSession) -> Changes:
        for name in names:
            if not absent(d.get(name)):
                yield user(d[name], name)

    return interpret_people


def _child(kind: Kind, inner: str | None = None, *people: str) -> Interpreter:
    """Return the interpreter of an event that is a complete child of a guild, or has it in a field."""

    def interpret_child(d: Fields, session: BotSession) -> Changes:
        where = one_id(d, "guild_id", kind.value)
        given = d if inner is None else fields(d[inner], inner) if inner in d else {}
        nested = entity(kind, (where, one_id(given, "id", kind.value)), given, people)
        yield from nested.changes(Mode.REPLACE)

    return interpret_child


def _integration(d: Fields, session: BotSession) -> Changes:
    # The gateway omits the user, so the one that REST returned stays: docs/resolutions.md#a72.
    yield from integration(d, one_id(d, "guild_id", "integration")).changes(Mode.MERGE)


def _child_gone(kind: Kind, field: str = "id") -> Interpreter:
    def interpret_gone(d: Fields, session: BotSession) -> Changes:
        yield Drop(kind, (one_id(d, "guild_id", kind.value), one_id(d, field, kind.value)))

    return interpret_gone


def _children(kind: Kind, field: str) -> Interpreter:
    """Return the interpreter of an event that carries all children of one kind."""

    def interpret_children(d: Fields, session: BotSession) -> Changes:
        where = one_id(d, "guild_id", kind.value)
        nested = [
            entity(kind, (where, one_id(each, "id", kind.value)), each, ("user",))
            for each in objects(d.get(field), field)
        ]
        yield from _replaced(kind, where, nested)

    return interpret_children


def _replaced(kind: Kind, where: str, nested: list[Nested]) -> Changes:
    for each in nested:
        yield from each.children
    yield ReplaceAll(kind, where, [each.put for each in nested])


def _sound_write(d: Fields, session: BotSession) -> Changes:
    yield PutItem(one_id(d, "guild_id", "sound"), SOUNDS, "sound_id", one_id(d, "sound_id", "sound"), d)


def _sound_delete(d: Fields, session: BotSession) -> Changes:
    yield PutItem(one_id(d, "guild_id", "sound"), SOUNDS, "sound_id", one_id(d, "sound_id", "sound"), None)


def _sounds(d: Fields, session: BotSession) -> Changes:
    for each in objects(d.get(SOUNDS), SOUNDS):
        one_id(each, "sound_id", "sound")
    if absent(d.get(SOUNDS)):
        raise PayloadError(SOUNDS, "an array of objects", "nothing")
    yield PutItems(one_id(d, "guild_id", "sounds"), SOUNDS, d[SOUNDS])


def _invite_create(d: Fields, session: BotSession) -> Changes:
    yield from invite(d).changes(Mode.REPLACE)


def _invite_delete(d: Fields, session: BotSession) -> Changes:
    yield Drop(Kind.INVITE, (invite_code(d),))


def _message_create(d: Fields, session: BotSession) -> Changes:
    nested = message(d, session.bot)
    yield from nested.changes(Mode.REPLACE)
    where = maybe_id(d, "guild_id", "MESSAGE_CREATE")
    if where is not None:
        yield from _on_channel(where, nested.put.ids[0], {"last_message_id": d["id"]})


def _message_update(d: Fields, session: BotSession) -> Changes:
    # Without an author it is partial, and only merged into a stored message: docs/resolutions.md#a19.
    mode = Mode.PATCH if absent(d.get("author")) else Mode.MERGE
    yield from message(d, session.bot).changes(mode)


def _message_delete(d: Fields, session: BotSession) -> Changes:
    where = one_id(d, "channel_id", "MESSAGE_DELETE")
    yield Drop(Kind.MESSAGE, (where, one_id(d, "id", "MESSAGE_DELETE")))


def _message_delete_bulk(d: Fields, session: BotSession) -> Changes:
    where = one_id(d, "channel_id", "MESSAGE_DELETE_BULK")
    for each in ids(d.get("ids"), "MESSAGE_DELETE_BULK.ids"):
        yield Drop(Kind.MESSAGE, (where, each))


def _reaction_add(d: Fields, session: BotSession) -> Changes:
    where = maybe_id(d, "guild_id", "MESSAGE_REACTION_ADD")
    if where is not None and not absent(d.get("member")):
        yield from member(fields(d["member"], "member"), where, None, Mode.MERGE)
    yield React(*_reaction(d))


def _reaction_remove(d: Fields, session: BotSession) -> Changes:
    yield Unreact(*_reaction(d))


def _reaction(d: Fields) -> tuple[str, str, str, bool]:
    """Return message, emoji and user of a reaction, and whether it is a super reaction."""
    burst = "burst" in d and scalar(d["burst"], "reaction.burst") is True
    return one_id(d, "message_id", "reaction"), emoji_token(d), one_id(d, "user_id", "reaction"), burst


def _reaction_remove_emoji(d: Fields, session: BotSession) -> Changes:
    yield Unreact(one_id(d, "message_id", "reaction"), emoji_token(d))


def _reaction_remove_all(d: Fields, session: BotSession) -> Changes:
    yield Unreact(one_id(d, "message_id", "reaction"))


def _presence_update(d: Fields, session: BotSession) -> Changes:
    where = maybe_id(d, "guild_id", "PRESENCE_UPDATE")
    if where is not None:
        yield from presence(d, where)


def _voice_state_update(d: Fields, session: BotSession) -> Changes:
    where = maybe_id(d, "guild_id", "VOICE_STATE_UPDATE")
    if where is not None:
        yield from voice_state(d, where)


def _stage_write(d: Fields, session: BotSession) -> Changes:
    yield stage_instance(d, one_id(d, "guild_id", "stage instance"))


def _interaction_create(d: Fields, session: BotSession) -> Changes:
    """Yield an interaction. Those of an app that a user installed come from guilds that the bot is not in, of
    which nothing may stay: no event would ever remove it (docs/resolutions.md#a87)."""
    where = maybe_id(d, "guild_id", "interaction")
    for change in interaction(d, session.bot).changes(Mode.REPLACE):
        if isinstance(change, Put) and change.kind in OF_A_GUILD:
            change.only_in = change.ids[0]
        elif isinstance(change, Put) and change.kind is Kind.INTERACTION and where is not None:
            inline = {name: raw for name, raw in d.items() if name in ("member", "data")}
            change.only_in, change.elsewhere = where, {**body_fields(change.normal), **inline}
        yield change


def _typing_start(d: Fields, session: BotSession) -> Changes:
    where = maybe_id(d, "guild_id", "TYPING_START")
    if where is not None and not absent(d.get("member")):
        person = one_id(d, "user_id", "TYPING_START")
        yield from member(fields(d["member"], "member"), where, person, Mode.MERGE)


EVENTS: dict[str, Interpreter] = {
    "READY": _ready,
    "USER_UPDATE": _user_update,
    "GUILD_CREATE": _guild_create,
    "GUILD_UPDATE": _guild_update,
    "GUILD_DELETE": _guild_delete,
    "CHANNEL_CREATE": _channel_create,
    "CHANNEL_UPDATE": _channel_update,
    "CHANNEL_DELETE": _channel_delete,
    "CHANNEL_PINS_UPDATE": _channel_pins,
    "CHANNEL_INFO": _channel_info,
    "VOICE_CHANNEL_STATUS_UPDATE": _voice_channel,
    "VOICE_CHANNEL_START_TIME_UPDATE": _voice_channel,
    "THREAD_CREATE": _thread_write,
    "THREAD_UPDATE": _thread_write,
    "THREAD_DELETE": _thread_delete,
    "THREAD_LIST_SYNC": _thread_list_sync,
    "THREAD_MEMBER_UPDATE": _thread_member_update,
    "THREAD_MEMBERS_UPDATE": _thread_members_update,
    "GUILD_MEMBER_ADD": _member_add,
    "GUILD_MEMBER_UPDATE": _member_update,
    "GUILD_MEMBER_REMOVE": _member_remove,
    "GUILD_MEMBERS_CHUNK": _members_chunk,
    "GUILD_BAN_ADD": _people("user"),
    "GUILD_BAN_REMOVE": _people("user"),
    "GUILD_ROLE_CREATE": _child(Kind.ROLE, "role"),
    "GUILD_ROLE_UPDATE": _child(Kind.ROLE, "role"),
    "GUILD_ROLE_DELETE": _child_gone(Kind.ROLE, "role_id"),
    "GUILD_EMOJIS_UPDATE": _children(Kind.EMOJI, "emojis"),
    "GUILD_STICKERS_UPDATE": _children(Kind.STICKER, "stickers"),
    "GUILD_SOUNDBOARD_SOUND_CREATE": _sound_write,
    "GUILD_SOUNDBOARD_SOUND_UPDATE": _sound_write,
    "GUILD_SOUNDBOARD_SOUND_DELETE": _sound_delete,
    "GUILD_SOUNDBOARD_SOUNDS_UPDATE": _sounds,
    "SOUNDBOARD_SOUNDS": _sounds,
    "INTEGRATION_CREATE": _integration,
    "INTEGRATION_UPDATE": _integration,
    "INTEGRATION_DELETE": _child_gone(Kind.INTEGRATION),
    "INVITE_CREATE": _invite_create,
    "INVITE_DELETE": _invite_delete,
    "MESSAGE_CREATE": _message_create,
    "MESSAGE_UPDATE": _message_update,
    "MESSAGE_DELETE": _message_delete,
    "MESSAGE_DELETE_BULK": _message_delete_bulk,
    "MESSAGE_REACTION_ADD": _reaction_add,
    "MESSAGE_REACTION_REMOVE": _reaction_remove,
    "MESSAGE_REACTION_REMOVE_EMOJI": _reaction_remove_emoji,
    "MESSAGE_REACTION_REMOVE_ALL": _reaction_remove_all,
    "PRESENCE_UPDATE": _presence_update,
    "VOICE_STATE_UPDATE": _voice_state_update,
    "STAGE_INSTANCE_CREATE": _stage_write,
    "STAGE_INSTANCE_UPDATE": _stage_write,
    "STAGE_INSTANCE_DELETE": _child_gone(Kind.STAGE_INSTANCE, "channel_id"),
    "GUILD_SCHEDULED_EVENT_CREATE": _child(Kind.SCHEDULED_EVENT, None, "creator"),
    "GUILD_SCHEDULED_EVENT_UPDATE": _child(Kind.SCHEDULED_EVENT, None, "creator"),
    "GUILD_SCHEDULED_EVENT_DELETE": _child_gone(Kind.SCHEDULED_EVENT),
    "AUTO_MODERATION_RULE_CREATE": _child(Kind.AUTOMOD_RULE),
    "AUTO_MODERATION_RULE_UPDATE": _child(Kind.AUTOMOD_RULE),
    "AUTO_MODERATION_RULE_DELETE": _child_gone(Kind.AUTOMOD_RULE),
    "INTERACTION_CREATE": _interaction_create,
    "TYPING_START": _typing_start,
}
