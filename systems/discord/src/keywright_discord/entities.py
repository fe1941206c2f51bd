"""Discord's objects as entities: which are nested in each, and how they are normalised.

A child that can be found again from the parent's own ids is removed (the member of a message or a
thread); one that cannot is replaced by its id (author, mentions, the referenced message). A nested
entity becomes a change of its own. The decisions behind the rules are in docs/resolutions.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from keywright_discord.changes import (
    Change,
    Drop,
    Ids,
    KeepMembers,
    KeepPresences,
    Kind,
    ListGuild,
    Mode,
    Put,
    PutMembers,
    PutPresences,
    PutUsers,
    ReplaceAll,
    SyncThreads,
)
from keywright_discord.member_splitter import elements, placed_child, split_members, split_presences
from keywright_discord.raw_json import (
    Fields,
    PayloadError,
    Snowflakes,
    absent,
    body_fields,
    fields,
    id_of,
    identity,
    maybe_id,
    name_of,
    objects,
    one_id,
    scalar,
    written,
)

# The field of a stored message that keeps the author of a webhook message: docs/resolutions.md#a17.
WEBHOOK_AUTHOR = "webhook_author"

# The parts of a guild that have keys of their own: docs/resolutions.md#a59.
GUILD_CHILDREN = (
    "channels",
    "threads",
    "members",
    "roles",
    "emojis",
    "stickers",
    "voice_states",
    "presences",
    "stage_instances",
    "guild_scheduled_events",
    "welcome_screen",
)


class Nested(msgspec.Struct):
    """An entity with the changes of its nested entities."""

    put: Put
    children: list[Change]

    @property
    def normal(self) -> Fields:
        """The fields that normalisation changes."""
        fields_of = body_fields(self.put.normal)
        self.put.normal = fields_of
        return fields_of

    def changes(self, mode: Mode) -> Iterator[Change]:
        yield from self.children
        self.put.mode = mode
        yield self.put


def user(raw: msgspec.Raw, what: str) -> Put:
    """Return the put of a user; one without a name is partial and only merged into a stored user."""
    given = fields(raw, what)
    given.pop("member", None)  # mentions add it to their users
    identity = one_id(given, "id", what)
    return Put(Kind.USER, (identity,), given, given, Mode.REPLACE if "username" in given else Mode.PATCH)


def partial_user(raw: msgspec.Raw, what: str) -> Put:
    """Return the put of a presence's user, which never creates or replaces one: docs/resolutions.md#a54."""
    put = user(raw, what)
    put.mode = Mode.PATCH
    return put


def entity(kind: Kind, ids: Ids, given: Fields, people: Iterable[str] = ()) -> Nested:
    """Return an entity that has users in these fields, and no other nested entities."""
    return with_people(Put(kind, ids, given, given), people)


def with_people(put: Put, people: Iterable[str]) -> Nested:
    """Replace the users in these fields of a put by their ids."""
    children: list[Change] = []
    normal = body_fields(put.normal)
    for name in people:
        raw = normal.get(name)
        if raw is None or not _is_object(raw):
            continue
        person = user(raw, f"{put.kind.value}.{name}")
        children.append(person)
        normal = {**normal, name: written(person.ids[0])}
    put.normal = normal
    return Nested(put, children)


def member(given: Fields, guild: str, person: str | None, mode: Mode) -> Iterator[Change]:
    """Yield a guild member after its user; `person` is the user's id if the member has no user."""
    # Permissions are computed for one channel: docs/resolutions.md#a52.
    data = dict(given)
    data.pop("permissions", None)
    normal = data
    if not absent(data.get("user")):
        who = user(data["user"], "member.user")
        person = who.ids[0]
        normal = dict(data)
        del normal["user"]
        yield who
    if person is None:
        raise PayloadError("member.user", "a user", "nothing")
    yield Put(Kind.MEMBER, (guild, person), data, normal, mode)


def presence(given: Fields, guild: str) -> Iterator[Change]:
    """Yield a presence, or its removal if it is offline: docs/resolutions.md#a55."""
    if "user" not in given:
        raise PayloadError("presence.user", "a user", "nothing")
    person = partial_user(given["user"], "presence.user")
    if len(person.normal) > 1:
        yield person
    ids = (guild, person.ids[0])
    if not absent(given.get("status")) and scalar(given["status"], "presence.status") == "offline":
        yield Drop(Kind.PRESENCE, ids)
        return
    data = {"guild_id": written(guild), **given}
    yield Put(Kind.PRESENCE, ids, data, data | {"user": written(person.ids[0])})


def presences(bodies: list[bytes], guild_id: str) -> Iterator[Change]:
    """Yield the presences of a list; those in the compact form together, since no user is in it twice."""
    split, others = split_presences(bodies, guild_id)
    if split.people:
        yield PutPresences(guild_id, split.people, split.bodies, split.normal)
    for body in others:
        yield from presence(fields(body, "presence"), guild_id)


def voice_state(given: Fields, guild: str) -> Iterator[Change]:
    """Yield a voice state, or its removal if it has no channel: docs/resolutions.md#a77."""
    person = one_id(given, "user_id", "voice state")
    normal = given
    if not absent(given.get("member")):
        yield from member(fields(given["member"], "voice state.member"), guild, person, Mode.MERGE)
        normal = {name: raw for name, raw in given.items() if name != "member"}
    if absent(given.get("channel_id")):
        yield Drop(Kind.VOICE_STATE, (guild, person))
        return
    place = {"guild_id": written(guild)}  # docs/resolutions.md#a68
    yield Put(Kind.VOICE_STATE, (guild, person), {**place, **given}, {**place, **normal})


def channel(given: Fields, guild: str, mode: Mode) -> Put:
    data = {"guild_id": written(guild), **given}  # docs/resolutions.md#a68
    return Put(Kind.CHANNEL, (guild, one_id(given, "id", "channel")), data, data, mode)


def thread(given: Fields, bot: str | None, mode: Mode) -> Nested:
    """Return a thread; its `member` is the bot's own: docs/resolutions.md#a36."""
    guild = one_id(given, "guild_id", "thread")
    identity = one_id(given, "id", "thread")
    maybe_id(given, "parent_id", "thread")  # layouts index it, so a malformed one is refused here
    children: list[Change] = []
    normal = given
    if not absent(given.get("member")):
        own = fields(given["member"], "thread.member")
        children += thread_member(own, identity, bot, guild)
    if "member" in given:
        normal = {name: raw for name, raw in given.items() if name != "member"}
    return Nested(Put(Kind.THREAD, (guild, identity), given, normal, mode), children)


def thread_member(
    given: Fields, thread_id: str | None, bot: str | None, guild: str | None
) -> Iterator[Change]:
    """Yield a thread member by its user (docs/resolutions.md#a40), after its guild member and presence."""
    thread_id = thread_id or one_id(given, "id", "thread member")
    person = maybe_id(given, "user_id", "thread member") or bot
    normal = {name: raw for name, raw in given.items() if name not in ("member", "presence")}
    if not absent(given.get("member")) and guild is not None:
        for change in member(fields(given["member"], "thread member.member"), guild, person, Mode.MERGE):
            person = change.ids[-1] if isinstance(change, Put) else person
            yield change
    if not absent(given.get("presence")) and guild is not None:
        yield from presence(fields(given["presence"], "thread member.presence"), guild)
    if person is None or guild is None:
        return  # the bot's own membership, before READY named the bot: docs/resolutions.md#a36
    placed = {"id": written(thread_id), "user_id": written(person)}
    yield Put(Kind.THREAD_MEMBER, (guild, thread_id, person), {**given, **placed}, {**normal, **placed})


def stage_instance(given: Fields, guild: str) -> Put:
    data = {"guild_id": written(guild), **given}
    return Put(Kind.STAGE_INSTANCE, (guild, one_id(given, "channel_id", "stage instance")), data, data)


def application(given: Fields) -> Nested:
    """Return an application; owner, bot and the users of its team become ids: docs/resolutions.md#a70."""
    nested = entity(Kind.APPLICATION, (one_id(given, "id", "application"),), given, ("owner", "bot"))
    raw = given.get("team")
    if raw is not None and _is_object(raw):
        team = _team(nested, fields(raw, "application.team"))
        nested.put.normal = {**nested.normal, "team": written(team)}
    for child in nested.children:
        if isinstance(child, Put) and child.mode is Mode.REPLACE:
            child.mode = Mode.MERGE  # these users have a name, but lack other fields
    return nested


def _team(nested: Nested, team: Fields) -> Fields:
    if "members" not in team:
        return team
    people = []
    for each in objects(team["members"], "application.team.members"):
        if "user" in each and _is_object(each["user"]):
            person = user(each["user"], "application.team.members.user")
            nested.children.append(person)
            each["user"] = written(person.ids[0])
        people.append(each)
    return {**team, "members": written(people)}


def integration(given: Fields, guild: str) -> Nested:
    """Return an integration; its user and the bot of its application become ids: docs/resolutions.md#a72."""
    ids = (guild, one_id(given, "id", "integration"))
    nested = entity(Kind.INTEGRATION, ids, given, ("user",))
    raw = given.get("application")
    if raw is None or not _is_object(raw):
        return nested
    about = fields(raw, "integration.application")
    if "bot" in about and _is_object(about["bot"]):
        bot = user(about["bot"], "integration.application.bot")
        nested.children.append(bot)
        inner = written({**about, "bot": written(bot.ids[0])})
        nested.put.normal = {**nested.normal, "application": inner}
    return nested


def invite(given: Fields) -> Nested:
    return entity(Kind.INVITE, (invite_code(given),), given, ("inviter", "target_user"))


def invite_code(given: Fields) -> str:
    return name_of(given, "code", "invite", "a code")


def message(given: Fields, bot: str | None) -> Nested:
    """Return a message by the rules of the key reference: docs/resolutions.md#a17 and the following."""
    identity = one_id(given, "id", "message")
    place = one_id(given, "channel_id", "message")
    guild = maybe_id(given, "guild_id", "message")
    nested = Nested(Put(Kind.MESSAGE, (place, identity), given, dict(given)), [])
    _author(nested, given, guild)
    if "mentions" in given:
        _mentions(nested, given, guild)
    if "referenced_message" in given:
        _referenced(nested, given, guild, bot)
    for name in ("interaction", "interaction_metadata"):
        if name in given and not absent(given[name]):
            nested.normal[name] = _invoked(nested, fields(given[name], name), guild)
    if "thread" in given and not absent(given["thread"]):
        _started(nested, fields(given["thread"], "message.thread"), guild, bot)
    return nested


def _started(nested: Nested, inner: Fields, guild: str | None, bot: str | None) -> None:
    """Normalise the thread that a message started; without a guild it could not be found again, and stays."""
    if guild is not None:
        inner.setdefault("guild_id", written(guild))
    if absent(inner.get("guild_id")):
        return
    held = thread(inner, bot, Mode.MERGE)
    nested.children += held.changes(Mode.MERGE)
    nested.normal["thread"] = written(held.put.ids[-1])


def _author(nested: Nested, given: Fields, guild: str | None) -> None:
    normal = nested.normal
    person = None
    if not absent(given.get("author")):
        if absent(given.get("webhook_id")):
            who = user(given["author"], "message.author")
            person = who.ids[0]
            nested.children.append(who)
        else:
            # A webhook is not a user, and its name and avatar are of this message: docs/resolutions.md#a17.
            person = id_of(given["author"], "message.author")
            normal[WEBHOOK_AUTHOR] = given["author"]
        normal["author"] = written(person)
    if not absent(given.get("member")) and guild is not None and person is not None:
        inner = fields(given["member"], "message.member")
        nested.children += member(inner, guild, person, Mode.MERGE)
        del normal["member"]


def _mentions(nested: Nested, given: Fields, guild: str | None) -> None:
    if absent(given.get("mentions")):
        return
    named = []
    for each in objects(given["mentions"], "message.mentions"):
        inner = each.pop("member", None)
        person = one_id(each, "id", "message.mentions")
        mode = Mode.REPLACE if "username" in each else Mode.PATCH
        nested.children.append(Put(Kind.USER, (person,), each, each, mode))
        if inner is not None and not absent(inner) and guild is not None:
            about = fields(inner, "message.mentions.member")
            nested.children += member(about, guild, person, Mode.MERGE)
        named.append(person)
    nested.normal["mentions"] = written(named)


def _referenced(nested: Nested, given: Fields, guild: str | None, bot: str | None) -> None:
    if absent(given.get("referenced_message")):
        return  # null means that it was deleted, and stays: docs/resolutions.md#a23
    inner = fields(given["referenced_message"], "message.referenced_message")
    reference = given.get("message_reference")
    if guild is not None and reference is not None and not absent(reference):
        where = maybe_id(fields(reference, "message_reference"), "guild_id", "message_reference")
        if where == guild:
            inner.setdefault("guild_id", written(guild))  # docs/resolutions.md#a24
    held = message(inner, bot)
    nested.children += held.changes(Mode.MERGE)
    nested.normal["referenced_message"] = written(held.put.ids[-1])


def _invoked(nested: Nested, given: Fields, guild: str | None) -> msgspec.Raw:
    """Return the interaction that a message answers: its users become ids, its member is stored apart."""
    normal = dict(given)
    person = None
    for name in ("user", "target_user"):
        if not absent(given.get(name)):
            who = user(given[name], f"interaction.{name}")
            nested.children.append(who)
            normal[name] = written(who.ids[0])
            person = who.ids[0] if name == "user" else person
    if not absent(given.get("member")) and guild is not None and person is not None:
        about = fields(given["member"], "interaction.member")
        nested.children += member(about, guild, person, Mode.MERGE)
        del normal["member"]
    if not absent(given.get("triggering_interaction_metadata")):
        inner = fields(given["triggering_interaction_metadata"], "triggering_interaction_metadata")
        normal["triggering_interaction_metadata"] = _invoked(nested, inner, guild)
    return written(normal)


def interaction(given: Fields, bot: str | None) -> Nested:
    """Return an interaction; the key reference has no rules for it: docs/resolutions.md#a69."""
    identity = one_id(given, "id", "interaction")
    guild = maybe_id(given, "guild_id", "interaction")
    nested = entity(Kind.INTERACTION, (identity,), given, ("user",))
    normal = nested.put.normal = dict(nested.normal)
    if not absent(given.get("member")) and guild is not None:
        changes = list(member(fields(given["member"], "interaction.member"), guild, None, Mode.MERGE))
        nested.children += changes
        del normal["member"]
        normal["user"] = written(last_id(changes))
    if not absent(given.get("message")):
        inner = fields(given["message"], "interaction.message")
        if guild is not None:
            inner.setdefault("guild_id", written(guild))
        held = message(inner, bot)
        nested.children += held.changes(Mode.MERGE)
        normal["message"] = written(held.put.ids[-1])
    if not absent(given.get("data")):
        normal["data"] = _resolved(nested, fields(given["data"], "interaction.data"), guild)
    return nested


def last_id(changes: list[Change]) -> str:
    """Return the last id of the last of some changes."""
    last = changes[-1]
    assert isinstance(last, Put)
    return last.ids[-1]


def _resolved(nested: Nested, data: Fields, guild: str | None) -> msgspec.Raw:
    """Return the data of an interaction; the users and members of its options become arrays of ids."""
    if absent(data.get("resolved")):
        return written(data)
    resolved = fields(data["resolved"], "interaction.data.resolved")
    if not absent(resolved.get("users")):
        people = fields(resolved["users"], "resolved.users")
        nested.children += [user(raw, "resolved.users") for raw in people.values()]
        resolved["users"] = written(list(people))
    # Without its guild a member cannot be stored: docs/resolutions.md#a22.
    if not absent(resolved.get("members")) and guild is not None:
        about = fields(resolved["members"], "resolved.members")
        for person, raw in about.items():
            who = identity(person, "resolved.members")
            nested.children += member(fields(raw, "resolved.members"), guild, who, Mode.MERGE)
        resolved["members"] = written(list(about))
    return written({**data, "resolved": resolved})


def guild(given: Fields, identity: str, bot: str | None, mode: Mode = Mode.REPLACE) -> Iterator[Change]:
    """Yield a guild and its parts. Complete lists replace, others add: docs/resolutions.md#a60.

    The list of members is complete if it has `member_count` members. Then it replaces too: members who left
    while the bot was away are removed, and `member_count` and the members agree again. Presences, threads and
    thread members that are not listed are out of date, or out of sight, so they are removed.
    """
    yield ListGuild(identity)
    kept = {name: raw for name, raw in given.items() if name not in GUILD_CHILDREN}
    # No layout stores members in a guild, and they may have been cut out already.
    alone = {name: raw for name, raw in given.items() if name != "members"}
    yield Put(Kind.GUILD, (identity,), alone, kept, mode)
    if not absent(given.get("welcome_screen")):
        screen = fields(given["welcome_screen"], "guild.welcome_screen")
        yield Put(Kind.WELCOME_SCREEN, (identity,), screen, screen)
    total = scalar(given["member_count"], "guild.member_count") if "member_count" in given else None
    yield from _guild_children(given, identity)
    yield from whole_members(given, identity, total)
    if "presences" in given:
        shown = list(presences(elements(given["presences"], "guild.presences"), identity))
        yield KeepPresences(identity, people_of(Kind.PRESENCE, shown))
        yield from shown
    if "threads" in given or "channels" in given:
        yield from synced_threads(objects(given.get("threads"), "guild.threads"), identity, None, bot)
    if "stage_instances" in given:
        stages = objects(given["stage_instances"], "guild.stage_instances")
        yield ReplaceAll(Kind.STAGE_INSTANCE, identity, [stage_instance(each, identity) for each in stages])


def whole_members(given: Fields, guild_id: str, total: object = None) -> Iterator[Change]:
    """Yield the members that a payload lists: each is complete, so it replaces the stored one."""
    split, others = split_members(given, "guild.members")
    single: list[Change] = []
    for body in others:
        single += member(fields(body, "guild.members"), guild_id, None, Mode.REPLACE)
    count = len(split.people) + len(others)
    if count and count == total:
        alone = people_of(Kind.MEMBER, single)
        yield KeepMembers(guild_id, [*split.people, *alone] if alone else split.people)
    if split.people:
        people = Snowflakes.of(split.people)
        yield PutUsers(people, split.users)
        yield PutMembers(guild_id, people, split.users, split.rests)
    yield from single


def people_of(kind: Kind, changes: Iterable[Change]) -> list[str]:
    """Return the users of the members or presences among some changes."""
    people: list[str] = []
    for change in changes:
        if isinstance(change, PutMembers | PutPresences):
            people += change.people
        elif isinstance(change, Put) and change.kind is kind:
            people.append(change.ids[1])
    return people


def synced_threads(
    given: Iterable[Fields], guild_id: str, channels: list[str] | None, bot: str | None
) -> Iterator[Change]:
    """Yield the complete list of active threads of a guild, or of some channels."""
    held = [thread({"guild_id": written(guild_id), **each}, bot, Mode.REPLACE) for each in given]
    yield SyncThreads(guild_id, channels, [each.put for each in held])
    for each in held:
        yield from each.children


def _child(kind: Kind, body: bytes, guild_id: str, people: Iterable[str]) -> Nested:
    placed = placed_child(body, guild_id, with_guild=kind is Kind.CHANNEL)
    if placed is not None and not any(b'"%b"' % name.encode() in body for name in people):
        return Nested(Put(kind, (guild_id, placed[0]), placed[1], placed[1]), [])
    given = fields(body, f"guild.{kind.value}")
    if kind is Kind.CHANNEL:
        return Nested(channel(given, guild_id, Mode.REPLACE), [])
    return entity(kind, (guild_id, one_id(given, "id", kind.value)), given, people)


def _guild_children(given: Fields, identity: str) -> Iterator[Change]:
    for field, kind, people in (
        ("roles", Kind.ROLE, ()),
        ("emojis", Kind.EMOJI, ("user",)),
        ("stickers", Kind.STICKER, ("user",)),
        ("guild_scheduled_events", Kind.SCHEDULED_EVENT, ("creator",)),
        ("channels", Kind.CHANNEL, ()),
    ):
        if field in given:
            held = [_child(kind, body, identity, people) for body in elements(given[field], f"guild.{field}")]
            for each_held in held:
                yield from each_held.children
            yield ReplaceAll(kind, identity, [each_held.put for each_held in held])
    if "voice_states" in given:
        yield from _voice_states(given, identity)


def _voice_states(given: Fields, identity: str) -> Iterator[Change]:
    states = []
    for each in objects(given["voice_states"], "guild.voice_states"):
        for change in voice_state(each, identity):
            if isinstance(change, Put) and change.kind is Kind.VOICE_STATE:
                states.append(change)
            else:
                yield change
    yield ReplaceAll(Kind.VOICE_STATE, identity, states)


def emoji_token(given: Fields) -> str:
    """Return the id of a custom emoji, else its characters: docs/resolutions.md#a31."""
    if absent(given.get("emoji")):
        raise PayloadError("reaction.emoji", "an emoji", "nothing")
    found = fields(given["emoji"], "reaction.emoji")
    identity = maybe_id(found, "id", "reaction.emoji")
    if identity is not None:
        return identity
    return name_of(found, "name", "reaction.emoji", "an emoji")


def _is_object(raw: msgspec.Raw) -> bool:
    return bytes(raw).lstrip()[:1] == b"{"
