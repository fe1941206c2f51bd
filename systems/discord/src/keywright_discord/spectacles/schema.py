"""Every row of the Spectacles caching table, in its order, and the indexes that it cannot do without.

The table's column "Field Naming pattern" is the Redis key, its "Key Naming pattern" the hash field.
Names have no prefix unless `bind` gives one. Names without a hash tag spread over a cluster; a prefix
that is one (`{bot}`) keeps the whole cache in one slot, and every event atomic there too.
"""

from __future__ import annotations

from datetime import timedelta

from keywright import Binding, Keyspace, Map, Set, SnowflakeStr, SortedSet, Value, expires_in
from keywright_discord.documents import Document, Reference

spectacles = Keyspace(
    "spectacles",
    "The Spectacles cache: what a bot sees of Discord, each object as it was received.",
)
private = Keyspace(
    "spectacles-private",
    "What the cache needs to find again all that goes with a guild, a channel or a thread; not for readers.",
    version="spectacles-private",
)

MESSAGE_TTL = timedelta(minutes=10)
MESSAGE_EXPIRY = expires_in(MESSAGE_TTL)


class Users(Map[SnowflakeStr, Document], key="USERS", space=spectacles):
    """Users, by user id. They are never removed."""


class Guilds(Map[SnowflakeStr, Document], key="GUILDS", space=spectacles):
    """Guilds, by guild id, without what has keys of its own; one with `unavailable` true has an outage."""


class Members(Map[SnowflakeStr, Document], key="MEMBERS:<guild>", space=spectacles):
    """The known members of a guild, by user id, each with its user where it came with one."""

    guild: SnowflakeStr


class VoiceStates(Map[SnowflakeStr, Document], key="VOICE_STATES:<guild>", space=spectacles):
    """The voice states of a guild, by user id."""

    guild: SnowflakeStr


class Presence(Map[SnowflakeStr, Document], key="PRESENCES:<user>", space=spectacles):
    """The presence of a user, under the user id once more; none means offline, or out of sight."""

    user: SnowflakeStr


class Channels(Map[SnowflakeStr, Document], key="CHANNELS", space=spectacles):
    """The channels of all guilds, threads among them, by channel id."""


class ChannelIds(Set[SnowflakeStr], key="CHANNELS:<guild>", space=spectacles):
    """The channels and threads of a guild."""

    guild: SnowflakeStr


class Roles(Map[SnowflakeStr, Document], key="ROLES:<guild>", space=spectacles):
    """The roles of a guild, by role id. The table's `ROLES` is, by its type, a hash per guild."""

    guild: SnowflakeStr


class Emojis(Map[SnowflakeStr, Document], key="EMOJIS", space=spectacles):
    """The custom emojis of all guilds, by emoji id."""


class EmojiIds(Set[SnowflakeStr], key="EMOJIS:<guild>", space=spectacles):
    """The custom emojis of a guild. Not in the table, which could not replace a guild's emojis without it."""

    guild: SnowflakeStr


class Message(Value[Document], key="MESSAGES:<channel>:<message>", space=spectacles, expiry=MESSAGE_EXPIRY):
    """A message of a channel."""

    channel: SnowflakeStr
    message: SnowflakeStr


class KnownGuilds(Set[SnowflakeStr], key="guilds", space=private):
    """The guilds that the bot is a member of, known or not: a new session tells which of them were left."""


class ThreadIndex(Map[SnowflakeStr, Reference], key="threads:<guild>", space=private):
    """Which channels of a guild are threads, each with its parent channel."""

    guild: SnowflakeStr


class PresenceIndex(Set[SnowflakeStr], key="presences:<guild>", space=private):
    """Whose presence a guild has shown."""

    guild: SnowflakeStr


class PresenceGuilds(Set[SnowflakeStr], key="presence-guilds:<user>", space=private):
    """The guilds that show a user's presence, which goes with the last of them."""

    user: SnowflakeStr


class MessageIndex(
    SortedSet[SnowflakeStr, int], key="messages:<channel>", space=private, expiry=MESSAGE_EXPIRY
):
    """The messages of a channel by when they were written (ms); what must have expired is left out."""

    channel: SnowflakeStr


class MessageChannels(
    Set[SnowflakeStr], key="message-channels:<guild>", space=private, expiry=MESSAGE_EXPIRY
):
    """The channels of a guild that have messages, whether the channel itself is known or not."""

    guild: SnowflakeStr


def bind(prefix: str | None = None, message_ttl: timedelta | None = MESSAGE_TTL) -> tuple[Binding, Binding]:
    """The cache as one database has it; pass both bindings to `connect`. No `message_ttl`: for ever."""
    expiry = None if message_ttl is None else expires_in(message_ttl)
    return (
        spectacles.bind(prefix=prefix, expiry={Message: expiry}),
        private.bind(prefix=prefix, expiry={MessageIndex: expiry, MessageChannels: expiry}),
    )
