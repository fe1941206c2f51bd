"""Removal of guilds, channels, threads and members from DRC with everything that belongs to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from keywright import Key, gather_list
from keywright.operations import Steps
from keywright_discord.changes import Drop, DropChannel, DropGuild, Kind, Unreact
from keywright_discord.draft import Draft
from keywright_discord.drc import schema
from keywright_discord.drc.places import MAPS, place_of
from keywright_discord.drc.reactions import unreact
from keywright_discord.raw_json import Fields, absent, fields, maybe_id

OF_ONE_GUILD: tuple[Callable[[str], Key], ...] = (
    schema.Guild,
    schema.Widget,
    schema.WelcomeScreen,
    schema.Members,
    schema.PresenceIndex,
    schema.StageIndex,
    schema.ThreadIndex,
    schema.WebhookIndex,
    schema.InviteIndex,
)


def drop(change: Drop, draft: Draft) -> Steps[None] | None:
    """Remove an entity with its parts and its entries in indexes; return the steps of one whose parts must be
    read first."""
    ids = change.ids
    match change.kind:
        case Kind.MEMBER:
            threads = schema.MemberThreads(ids[0], ids[1])
            _drop_member(ids[0], ids[1], draft.listed(threads), draft)
        case Kind.PRESENCE:
            drop_presence(ids[0], ids[1], draft)
        case Kind.STAGE_INSTANCE:
            _drop_stage_instance(ids[0], ids[1], draft)
        case Kind.THREAD:
            return drop_threads(ids[0], ids[1:], draft)
        case Kind.THREAD_MEMBER:
            draft.drop(place_of(change.kind, ids))
            draft.remove(schema.MemberThreads(ids[0], ids[2]), ids[1])
        case Kind.MESSAGE:
            draft.drop(place_of(change.kind, ids))
            unreact(Unreact(ids[1]), draft)
        case Kind.WEBHOOK | Kind.INVITE:
            _drop_of_channel(change, draft)
        case _:
            draft.drop(place_of(change.kind, ids))
    return None


def drop_presence(guild: str, user: str, draft: Draft) -> None:
    draft.drop(place_of(Kind.PRESENCE, (guild, user)))
    draft.remove(schema.PresenceIndex(guild), user)


def _drop_stage_instance(guild: str, channel: str, draft: Draft) -> None:
    draft.drop(place_of(Kind.STAGE_INSTANCE, (guild, channel)))
    draft.remove(schema.StageIndex(guild), channel)


def drop_members(guild: str, people: list[str], draft: Draft) -> Steps[None]:
    """Remove members with their presence, voice state and thread memberships."""
    joined = yield gather_list([schema.MemberThreads(guild, user).members() for user in people])
    for user, threads in zip(people, joined, strict=True):
        _drop_member(guild, user, threads, draft)


def _drop_member(guild: str, user: str, threads: Iterable[str], draft: Draft) -> None:
    draft.drop(place_of(Kind.MEMBER, (guild, user)))
    draft.remove(schema.Members(guild), user)
    drop_presence(guild, user, draft)
    draft.drop(place_of(Kind.VOICE_STATE, (guild, user)))
    for thread in sorted(threads):
        draft.drop((schema.ThreadMembers(thread), user))
        draft.remove(schema.MemberThreads(guild, user), thread)


def drop_threads(guild: str, threads: Iterable[str], draft: Draft) -> Steps[None]:
    """Remove threads with their members."""
    gone = list(threads)
    members = yield gather_list([schema.ThreadMembers(thread).fields() for thread in gone])
    for thread, users in zip(gone, members, strict=True):
        draft.erase(schema.Thread(thread))
        draft.erase(schema.ThreadMembers(thread))
        draft.drop((schema.ThreadIndex(guild), thread))
        for user in users:
            draft.remove(schema.MemberThreads(guild, user), thread)


def drop_channel(change: DropChannel, draft: Draft) -> Steps[None]:
    """Remove a channel with its stage instance, threads, webhooks and permanent invites."""
    threads = draft.listed(schema.ThreadIndex(change.guild))
    draft.drop(place_of(Kind.CHANNEL, (change.guild, change.channel)))
    _drop_stage_instance(change.guild, change.channel, draft)
    yield from drop_threads(
        change.guild, [each for each, parent in threads.items() if parent == change.channel], draft
    )
    _drop_where(change.guild, lambda channel: channel == change.channel, draft)


def drop_missing_channels(guild: str, channels: set[str], draft: Draft) -> None:
    """Remove the webhooks and permanent invites of channels that are not among these."""
    _drop_where(guild, lambda channel: channel not in channels, draft)


def _drop_where(guild: str, is_gone: Callable[[str], bool], draft: Draft) -> None:
    for index, key in (
        (schema.WebhookIndex(guild), schema.Webhook),
        (schema.InviteIndex(guild), schema.Invite),
    ):
        for each, channel in draft.listed(index).items():
            if is_gone(channel):
                draft.erase(key(each))
                draft.drop((index, each))


def _drop_of_channel(change: Drop, draft: Draft) -> None:
    """Remove a webhook or an invite; the stored object names the guild that lists it."""
    place = place_of(change.kind, change.ids)
    guild, _ = home_of(draft.fields(place) or {})
    draft.drop(place)
    if guild is not None:
        draft.drop((index_of(change.kind, guild), change.ids[0]))


def index_of(kind: Kind, guild: str) -> schema.WebhookIndex | schema.InviteIndex:
    """Return the index of the webhooks of a guild, or of its invites without an expiry."""
    return schema.WebhookIndex(guild) if kind is Kind.WEBHOOK else schema.InviteIndex(guild)


def home_of(given: Fields) -> tuple[str | None, str | None]:
    """Return guild and channel of a webhook or an invite, which has their ids or the objects."""
    guild, channel = (_id_in(given, name) for name in ("guild", "channel"))
    return guild, channel


def _id_in(given: Fields, name: str) -> str | None:
    direct = maybe_id(given, f"{name}_id", "object")
    if direct is not None or absent(given.get(name)):
        return direct
    return maybe_id(fields(given[name], name), "id", name)


def drop_guild(change: DropGuild, draft: Draft) -> Steps[None]:
    """Remove every key of a guild (docs/resolutions.md#a66), those in private indexes included."""
    guild = change.guild
    members, present, staged, threads, webhooks, invites = yield gather_list(
        [
            schema.Members(guild).members(),
            schema.PresenceIndex(guild).members(),
            schema.StageIndex(guild).members(),
            schema.ThreadIndex(guild).fields(),
            schema.WebhookIndex(guild).fields(),
            schema.InviteIndex(guild).fields(),
        ]
    )
    joined = yield gather_list([schema.ThreadMembers(thread).fields() for thread in threads])
    gone: list[Key] = [schema.Member(guild, user) for user in members]
    gone += [schema.Presence(guild, user) for user in {*present, *members}]
    gone += [schema.StageInstance(channel) for channel in staged]
    gone += [key for thread in threads for key in (schema.Thread(thread), schema.ThreadMembers(thread))]
    gone += [schema.MemberThreads(guild, user) for user in {user for users in joined for user in users}]
    gone += [schema.Webhook(webhook) for webhook in webhooks]
    gone += [schema.Invite(code) for code in invites]
    gone += [make(guild) for kind, make in MAPS.items() if kind is not Kind.COMMAND]
    gone += [make(guild) for make in OF_ONE_GUILD]
    gone += schema.departed(guild, draft.now_ms)
    for key in gone:
        draft.erase(key)
    draft.remove(schema.Guilds(), guild)
