"""Every key of the DRC key reference, in its order. Names are `<prefix>:v1json:<resource>`.

Braces in the reference mark variables. They are not hash tags and are never written
(docs/resolutions.md#a7), so keys of one guild do not share a slot. Expiries are defaults that `bind`
overrides; `None` means no expiry.

A reference stands under the later of the two keys that it joins. A cache may lack anything that it never
received, so most references are not required. What is written together is required: a listed member has
its key and its user, and a member is listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from keywright import (
    U64,
    Binding,
    Expiry,
    Key,
    Keyspace,
    Map,
    RestOfName,
    Set,
    SnowflakeStr,
    Value,
    expires_at,
    expires_in,
    refers,
)
from keywright.errors import UsageError
from keywright_discord.cache_session import FilledBy
from keywright_discord.raw_json import Document, PayloadError, fields, reference, scalar

drc = Keyspace(
    "drc",
    "The Discord Redis Cache: what a bot sees of Discord, normalised; nested objects are ids.",
    prefix="keywright",
    version="v1json",
)
private = Keyspace(
    "drc-private",
    "Indexes that find the keys of a guild again; outside the names of the specification.",
    prefix="keywright",
    version="v1json-private",
)


def end_of_invite(invite: Mapping[str, Any] | bytes) -> datetime | None:
    """`max_age` seconds after it was received, if the invite has one; Discord sends no event when it ends."""
    seconds = _max_age(invite)
    if type(seconds) is not int or not 0 < seconds <= LONGEST_INVITE:
        return None
    return datetime.now(UTC) + timedelta(seconds=seconds)


def _max_age(invite: Mapping[str, Any] | bytes) -> object:
    if not isinstance(invite, bytes):
        return invite.get("max_age")
    raw = fields(invite, "invite").get("max_age")
    try:
        return None if raw is None else scalar(raw, "invite.max_age")
    except PayloadError:
        return None  # an array or an object is not a time


def _ids(document: Mapping[str, Any], *names: str) -> Iterator[str]:
    """Yield the ids in these fields of a document: each may be an id, a list of ids, or missing."""
    for name in names:
        value = document.get(name)
        for each in value if isinstance(value, list) else (value,):
            identity = reference(each)
            if identity is not None:
                yield identity


def _ids_in_guild(document: Mapping[str, Any], *names: str) -> Iterator[tuple[str, str]]:
    """Yield the same ids after the guild of the document; none if it has no guild."""
    for guild in _ids(document, "guild_id"):
        yield from ((guild, each) for each in _ids(document, *names))


def _ids_of_all(documents: Mapping[str, Mapping[str, Any]], *names: str) -> Iterator[str]:
    return (each for document in documents.values() for each in _ids(document, *names))


# The reference gives one expiry, that of interactions: docs/resolutions.md#a13.
INTERACTION_EXPIRY = expires_in(timedelta(minutes=15))
MESSAGE_EXPIRY = expires_in(timedelta(minutes=10))
INVITE_EXPIRY = expires_at(end_of_invite)
REQUEST_EXPIRY = expires_in(timedelta(minutes=10))
DEPARTED_EXPIRY = expires_in(timedelta(hours=2))
HOUR_MS = 60 * 60 * 1000
LONGEST_INVITE = 10 * 365 * 24 * 60 * 60


class Commands(Map[SnowflakeStr, Document], key="commands:<application>", space=drc):
    """The created commands of an application, by command id. No gateway event carries them."""

    application: SnowflakeStr


class Interaction(Value[Document], key="interactions:<interaction>", space=drc, expiry=INTERACTION_EXPIRY):
    """An interaction. Its `token` is a credential for the 15 minutes that the key lives."""

    interaction: SnowflakeStr
    hides = ("token",)


class Application(Value[Document], key="applications:<application>", space=drc):
    """An application; its owner, bot and team are user ids."""

    application: SnowflakeStr


class AutomodRules(Map[SnowflakeStr, Document], key="automod-rules:<guild>", space=drc):
    """The auto moderation rules of a guild, by rule id."""

    guild: SnowflakeStr


class Channels(Map[SnowflakeStr, Document], key="channels:<guild>", space=drc):
    """The channels of a guild, by channel id. Threads have keys of their own."""

    guild: SnowflakeStr


class Message(Value[Document], key="messages:<message>", space=drc, expiry=MESSAGE_EXPIRY):
    """A message; author, mentions, referenced message and thread are ids."""

    message: SnowflakeStr


refers(Message, Channels, lambda _, found: _ids_in_guild(found, "channel_id"), name="channel", required=False)
refers(
    Message,
    Message,
    lambda _, found: _ids(found, "referenced_message"),
    name="answered message",
    required=False,
)
refers(
    Channels,
    Message,
    lambda _, found: _ids_of_all(found, "last_message_id"),
    name="last messages",
    required=False,
)


class Thread(Value[Document], key="threads:<thread>", space=drc):
    """A thread."""

    thread: SnowflakeStr


refers(Message, Thread, lambda _, found: _ids(found, "thread"), name="thread", required=False)
refers(Thread, Channels, lambda _, found: _ids_in_guild(found, "parent_id"), name="parent", required=False)


class ThreadMembers(Map[SnowflakeStr, Document], key="thread-members:<thread>", space=drc):
    """The known members of a thread, by user id."""

    thread: SnowflakeStr


refers(ThreadMembers, Thread, lambda key, _: [key.thread], name="thread", required=False)


class Reactions(Set[str], key="reactions:<message>", space=drc, expiry=MESSAGE_EXPIRY):
    """The emojis that a message was reacted to with: a custom emoji's id, else its characters."""

    message: SnowflakeStr


refers(Reactions, Message, lambda key, _: [key.message], name="message", required=False)


class ReactionUsers(Set[SnowflakeStr], key="reactions:<message>:<emoji>", space=drc, expiry=MESSAGE_EXPIRY):
    """The users seen to react with one emoji."""

    message: SnowflakeStr
    emoji: RestOfName


class Emojis(Map[SnowflakeStr, Document], key="emojis:<guild>", space=drc):
    """The custom emojis of a guild, by emoji id."""

    guild: SnowflakeStr


class Guilds(Set[SnowflakeStr], key="guilds", space=drc):
    """The guilds that the bot is a member of."""


class Guild(Value[Document], key="guilds:<guild>", space=drc):
    """A guild without its parts that have keys of their own."""

    guild: SnowflakeStr


refers(Guilds, Guild, lambda _, guilds: guilds, name="guilds", required=False)
refers(
    Guild,
    Channels,
    lambda key, found: (
        (key.guild, channel)
        for channel in _ids(found, "afk_channel_id", "system_channel_id", "rules_channel_id")
    ),
    name="channels",
    required=False,
)
refers(Message, Guild, lambda _, found: _ids(found, "guild_id"), name="guild", required=False)


class Widget(Value[Document], key="widget:<guild>", space=drc):
    """A guild's widget, whose members Discord makes anonymous. No gateway event carries it."""

    guild: SnowflakeStr


class Members(Set[SnowflakeStr], key="members:<guild>", space=drc):
    """The known members of a guild."""

    guild: SnowflakeStr


class Member(Value[Document], key="members:<guild>:<user>", space=drc):
    """A member of a guild, without its user."""

    guild: SnowflakeStr
    user: SnowflakeStr


refers(Members, Member, lambda key, users: ((key.guild, user) for user in users), name="members")
refers(Member, Members, lambda key, _: [(key.guild, key.user)], name="listed among the members")
refers(Message, Member, lambda _, found: _ids_in_guild(found, "author"), name="member", required=False)


class Integrations(Map[SnowflakeStr, Document], key="integrations:<guild>", space=drc):
    """The integrations of a guild, by integration id."""

    guild: SnowflakeStr


class WelcomeScreen(Value[Document], key="welcome-screen:<guild>", space=drc):
    """A guild's welcome screen."""

    guild: SnowflakeStr


class ScheduledEvents(Map[SnowflakeStr, Document], key="scheduled-events:<guild>", space=drc):
    """The scheduled events of a guild, by event id."""

    guild: SnowflakeStr


class Roles(Map[SnowflakeStr, Document], key="roles:<guild>", space=drc):
    """The roles of a guild, by role id."""

    guild: SnowflakeStr


refers(
    Member,
    Roles,
    lambda key, found: ((key.guild, role) for role in _ids(found, "roles")),
    name="roles",
    required=False,
)


class Templates(Map[str, Document], key="templates:<guild>", space=drc):
    """The templates of a guild, by code. No gateway event carries them."""

    guild: SnowflakeStr


class Invite(Value[Document], key="invites:<code>", space=drc, expiry=INVITE_EXPIRY):
    """An invite; inviter and target are user ids. It expires after its `max_age`, where it has one."""

    code: RestOfName


class StageInstance(Value[Document], key="stage-instances:<channel>", space=drc):
    """The stage instance of a stage channel."""

    channel: SnowflakeStr


class Stickers(Map[SnowflakeStr, Document], key="stickers:<guild>", space=drc):
    """The custom stickers of a guild, by sticker id."""

    guild: SnowflakeStr


class User(Value[Document], key="users:<user>", space=drc):
    """A user."""

    user: SnowflakeStr


refers(Member, User, lambda key, _: [key.user], name="user")
refers(Guild, User, lambda _, found: _ids(found, "owner_id"), name="owner", required=False)
refers(
    Message,
    User,
    lambda _, found: _ids(found, "author", "mentions"),
    name="author and mentions",
    required=False,
)
refers(ReactionUsers, User, lambda _, users: users, name="users", required=False)
refers(ThreadMembers, User, lambda _, found: found.keys(), name="users", required=False)
refers(Emojis, User, lambda _, found: _ids_of_all(found, "user"), name="users", required=False)
refers(Stickers, User, lambda _, found: _ids_of_all(found, "user"), name="users", required=False)
refers(ScheduledEvents, User, lambda _, found: _ids_of_all(found, "creator"), name="creators", required=False)
refers(
    Invite,
    User,
    lambda _, found: _ids(found, "inviter", "target_user"),
    name="inviter and target",
    required=False,
)


class VoiceStates(Map[SnowflakeStr, Document], key="voice-states:<guild>", space=drc):
    """The voice states of a guild, by user id."""

    guild: SnowflakeStr


refers(VoiceStates, User, lambda _, found: found.keys(), name="users", required=False)


class Presence(Value[Document], key="presence:<guild>:<user>", space=drc):
    """The presence of a user in a guild; none means offline."""

    guild: SnowflakeStr
    user: SnowflakeStr


refers(Presence, User, lambda key, _: [key.user], name="user", required=False)


class Webhook(Value[Document], key="webhooks:<webhook>", space=drc):
    """A webhook, whose `token` is a secret of the bot's. No gateway event carries it."""

    webhook: SnowflakeStr
    hides = ("token", "url")  # the url ends with the token


class CacheSession(Value[FilledBy], key="session:<shards>:<shard>", space=private):
    """The session that fills the cache as this shard. The gateway fills a cache without it again."""

    shards: U64
    shard: U64


class SuperReactions(
    Map[SnowflakeStr, int], key="super-reactions:<message>:<emoji>", space=private, expiry=MESSAGE_EXPIRY
):
    """The users of super reactions with one emoji: 1, or 2 for those who also reacted in the normal way."""

    message: SnowflakeStr
    emoji: RestOfName


class ThreadIndex(Map[SnowflakeStr, SnowflakeStr], key="threads:<guild>", space=private):
    """The threads of a guild, each with its parent channel, so that they can be removed with either."""

    guild: SnowflakeStr


class MemberThreads(Set[SnowflakeStr], key="member-threads:<guild>:<user>", space=private):
    """The threads of a guild that a user is a known member of, who leaves them with the guild."""

    guild: SnowflakeStr
    user: SnowflakeStr


refers(
    MemberThreads,
    ThreadMembers,
    lambda key, threads: ((thread, key.user) for thread in threads),
    name="thread members",
    required=False,
)


class PresenceIndex(Set[SnowflakeStr], key="presences:<guild>", space=private):
    """The users whose presence is known in a guild; they need not be known members."""

    guild: SnowflakeStr


refers(
    PresenceIndex,
    Presence,
    lambda key, users: ((key.guild, user) for user in users),
    name="presences",
    required=False,
)


class StageIndex(Set[SnowflakeStr], key="stage-instances:<guild>", space=private):
    """The channels of a guild that have a stage instance."""

    guild: SnowflakeStr


refers(StageIndex, StageInstance, lambda _, channels: channels, name="stage instances", required=False)


class WebhookIndex(Map[SnowflakeStr, SnowflakeStr], key="webhooks:<guild>", space=private):
    """The stored webhooks of a guild, each with its channel, so that their tokens go with either."""

    guild: SnowflakeStr


refers(WebhookIndex, Webhook, lambda _, webhooks: webhooks, name="webhooks", required=False)


class InviteIndex(Map[str, SnowflakeStr], key="invites:<guild>", space=private):
    """The invites of a guild that have no expiry, each with its channel, so that they go with either."""

    guild: SnowflakeStr


refers(InviteIndex, Invite, lambda _, codes: codes, name="invites", required=False)


class ReceivedMembers(
    Set[SnowflakeStr], key="received-members:<guild>:<request>", space=private, expiry=REQUEST_EXPIRY
):
    """The members that the chunks of one request have returned so far; the last chunk removes it."""

    guild: SnowflakeStr
    request: int


class Departed(Map[SnowflakeStr, int], key="departed:<guild>:<hour>", space=private, expiry=DEPARTED_EXPIRY):
    """The users whose leaving was counted in one hour: a repeated removal of one is not counted.

    A new `member_count` of the guild removes them."""

    guild: SnowflakeStr
    hour: int


def departed(guild: str, now_ms: int) -> tuple[Departed, Departed]:
    """Return the keys of those who left a guild in this hour and in the last."""
    hour = now_ms // HOUR_MS
    return Departed(guild, hour), Departed(guild, hour - 1)


_VERSION = re.compile(r"v(?P<major>[0-9]+)(?P<encoding>[A-Za-z_+-]*)")


def bind(
    prefix: str | None = None,
    version: str = "v1json",
    expiry: Mapping[type[Key], Expiry | None] | None = None,
) -> tuple[Binding, Binding]:
    """Return the bindings of one cache; pass both to `connect`.

    Raise UsageError if the prefix is empty; it may contain colons. Raise it too for a version or an encoding
    other than v1 and json, as the specification demands.
    """
    prefix = drc.prefix if prefix is None else prefix
    if not prefix:
        raise UsageError("a DRC prefix must not be empty. Name the bot, or leave the default.")
    found = _VERSION.fullmatch(version)
    if found is None or found["major"] != "1" or found["encoding"] != "json":
        raise UsageError(f"DRC version {version!r} is not supported. Use 'v1json'.")
    return drc.bind(prefix=prefix, version=version, expiry=expiry), private.bind(prefix=prefix)
