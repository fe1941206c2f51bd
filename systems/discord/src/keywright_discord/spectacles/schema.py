"""Every row of the Spectacles caching table, in its order, and the indexes that removals need.

The table's column "Field Naming pattern" is the Redis key, its "Key Naming pattern" the hash field
(docs/resolutions.md#s1). Names have no prefix unless `bind` gets one. Names without a hash tag spread
over a cluster; a prefix that is one (`{bot}`) keeps the whole cache in one slot, and every event atomic
there too.

A reference stands under the later of the two keys that it joins. Objects are stored as they came, so most
hold what they mention. What is written together is required: an id in a guild's set of channels or emojis
is in the hash of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from keywright import U64, Binding, Keyspace, Map, Set, SnowflakeStr, SortedSet, Value, expires_in, refers
from keywright_discord.cache_session import FilledBy
from keywright_discord.raw_json import Document, reference

spectacles = Keyspace(
    "spectacles",
    "The Spectacles cache: what a bot sees of Discord, each object as it was received.",
)
private = Keyspace(
    "spectacles-private",
    "Indexes that find the keys of a guild, a channel or a thread again; not for readers.",
    version="spectacles-private",
)

MESSAGE_TTL = timedelta(minutes=10)
MESSAGE_EXPIRY = expires_in(MESSAGE_TTL)
REQUEST_EXPIRY = expires_in(timedelta(minutes=10))
DEPARTED_EXPIRY = expires_in(timedelta(hours=2))
HOUR_MS = 60 * 60 * 1000


class Users(Map[SnowflakeStr, Document], key="USERS", space=spectacles):
    """Users, by user id. They are never removed."""


class Guilds(Map[SnowflakeStr, Document], key="GUILDS", space=spectacles):
    """Guilds, by guild id, without the parts that have keys of their own; `unavailable` marks an outage."""


class Members(Map[SnowflakeStr, Document], key="MEMBERS:<guild>", space=spectacles):
    """The known members of a guild, by user id, each with its user where it came with one."""

    guild: SnowflakeStr


refers(Members, Users, lambda _, found: (((), user) for user in found), name="users", required=False)


class VoiceStates(Map[SnowflakeStr, Document], key="VOICE_STATES:<guild>", space=spectacles):
    """The voice states of a guild, by user id."""

    guild: SnowflakeStr


refers(VoiceStates, Users, lambda _, found: (((), user) for user in found), name="users", required=False)


class Presence(Map[SnowflakeStr, Document], key="PRESENCES:<user>", space=spectacles):
    """The presence of a user, under the user id once more; none means offline, or out of sight."""

    user: SnowflakeStr


refers(Presence, Users, lambda key, _: [((), key.user)], name="user", required=False)


class Channels(Map[SnowflakeStr, Document], key="CHANNELS", space=spectacles):
    """The channels of all guilds, threads among them, by channel id."""


class ChannelIds(Set[SnowflakeStr], key="CHANNELS:<guild>", space=spectacles):
    """The channels and threads of a guild."""

    guild: SnowflakeStr


refers(
    Guilds,
    ChannelIds,
    lambda _, found: ((guild, None) for guild in found),
    name="channels of each",
    required=False,
)
refers(ChannelIds, Channels, lambda _, ids: (((), each) for each in ids), name="channels")


class Roles(Map[SnowflakeStr, Document], key="ROLES:<guild>", space=spectacles):
    """The roles of a guild, by role id. The table's `ROLES` is, by its type, a hash per guild."""

    guild: SnowflakeStr


def _roles_of_members(key: Members, members: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for member in members.values():
        roles = member.get("roles")
        for role in roles if isinstance(roles, list) else ():
            if reference(role) is not None:
                yield key.guild, role


refers(Members, Roles, _roles_of_members, name="roles", required=False)


class Emojis(Map[SnowflakeStr, Document], key="EMOJIS", space=spectacles):
    """The custom emojis of all guilds, by emoji id."""


class EmojiIds(Set[SnowflakeStr], key="EMOJIS:<guild>", space=spectacles):
    """The custom emojis of a guild. Not in the table, which could not replace a guild's emojis without it."""

    guild: SnowflakeStr


refers(EmojiIds, Emojis, lambda _, ids: (((), each) for each in ids), name="emojis")


class Message(Value[Document], key="MESSAGES:<channel>:<message>", space=spectacles, expiry=MESSAGE_EXPIRY):
    """A message of a channel."""

    channel: SnowflakeStr
    message: SnowflakeStr


def _id_in(document: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield the id in a field of a document, or of the object in it, if it has one."""
    value = document.get(name)
    identity = reference(value.get("id") if isinstance(value, dict) else value)
    if identity is not None:
        yield identity


refers(
    Message,
    Users,
    lambda _, found: (((), user) for user in _id_in(found, "author")),
    name="author",
    required=False,
)
refers(Message, Channels, lambda key, _: [((), key.channel)], name="channel", required=False)
refers(
    Channels,
    Message,
    lambda _, found: (
        (channel, message) for channel, each in found.items() for message in _id_in(each, "last_message_id")
    ),
    name="last messages",
    required=False,
)


class CacheSession(Value[FilledBy], key="session:<shards>:<shard>", space=private):
    """The session that fills the cache as this shard. The gateway fills a cache without it again."""

    shards: U64
    shard: U64


class GuildIndex(Set[SnowflakeStr], key="guilds", space=private):
    """The guilds that the bot is a member of, stored or not: a new session shows which of them were left."""


class ThreadIndex(Map[SnowflakeStr, SnowflakeStr], key="threads:<guild>", space=private):
    """The channels of a guild that are threads, each with its parent channel."""

    guild: SnowflakeStr


class PresenceIndex(Set[SnowflakeStr], key="presences:<guild>", space=private):
    """The users whose presence a guild has shown."""

    guild: SnowflakeStr


class PresenceGuilds(Set[SnowflakeStr], key="presence-guilds:<user>", space=private):
    """The guilds that show a user's presence, which is removed with the last of them."""

    user: SnowflakeStr


class ReceivedMembers(
    Set[SnowflakeStr], key="received-members:<guild>:<request>", space=private, expiry=REQUEST_EXPIRY
):
    """The members that the chunks of one request have returned so far; the last chunk removes it."""

    guild: SnowflakeStr
    request: int


class MessageIndex(
    SortedSet[SnowflakeStr, int], key="messages:<channel>", space=private, expiry=MESSAGE_EXPIRY
):
    """The messages of a channel by when they were written (ms); those that must have expired are left out."""

    channel: SnowflakeStr


refers(
    MessageIndex,
    Message,
    lambda key, messages: ((key.channel, message) for message, _ in messages),
    name="messages",
    required=False,
)


class MessageChannels(
    Set[SnowflakeStr], key="message-channels:<guild>", space=private, expiry=MESSAGE_EXPIRY
):
    """The channels of a guild that have messages, whether the channel itself is stored or not."""

    guild: SnowflakeStr


class Departed(Map[SnowflakeStr, int], key="departed:<guild>:<hour>", space=private, expiry=DEPARTED_EXPIRY):
    """The users whose leaving was counted in one hour: a repeated removal of one is not counted.

    A new `member_count` of the guild removes them."""

    guild: SnowflakeStr
    hour: int


def departed(guild: str, now_ms: int) -> tuple[Departed, Departed]:
    """Return the keys of those who left a guild in this hour and in the last."""
    hour = now_ms // HOUR_MS
    return Departed(guild, hour), Departed(guild, hour - 1)


def bind(prefix: str | None = None, message_ttl: timedelta | None = MESSAGE_TTL) -> tuple[Binding, Binding]:
    """Return the bindings of one cache; pass both to `connect`. `message_ttl` None means no expiry."""
    expiry = None if message_ttl is None else expires_in(message_ttl)
    return (
        spectacles.bind(prefix=prefix, expiry={Message: expiry}),
        private.bind(prefix=prefix, expiry={MessageIndex: expiry, MessageChannels: expiry}),
    )
