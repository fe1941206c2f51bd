"""Reads of the Spectacles cache: every entity by its ids, and every list.

Objects are stored as they came, so most have their users in them; hydration adds what an event omits: the
user of a partial member, the member of a mention, the complete user of a presence.
"""

from __future__ import annotations

from collections.abc import Iterable

from keywright import Call
from keywright.operations import Steps, procedure
from keywright_discord.document_reads import Address, Entity, Id, Object, living, snowflake
from keywright_discord.reader import Reader
from keywright_discord.references import References
from keywright_discord.spectacles import schema

# PUBLIC_THREAD and its two siblings, which the layout keeps among the channels.
THREAD_TYPES = (10, 11, 12)


class SpectaclesAddresses:
    """The addresses in Spectacles of the documents that others refer to."""

    def user(self, user: str) -> Address:
        return schema.Users(), user

    def member(self, guild: str, user: str) -> Address:
        return schema.Members(guild), user

    def message(self, channel: str, message: str) -> Address:
        return (schema.Message, channel), message

    def thread(self, thread: str) -> Address:
        return schema.Channels(), thread

    def thread_member(self, thread: str, user: str) -> Address | None:
        return None


def entities() -> dict[str, Entity]:
    """Return every entity of Spectacles by name, for reads by id."""
    at = SpectaclesAddresses()
    to = References(at)
    return {
        "channel": Entity(("channel",), at.thread),
        "emoji": Entity(("emoji",), _emoji, lambda _, d, holes: to.of_people(d, holes, "user")),
        "guild": Entity(("guild",), lambda guild: (schema.Guilds(), guild)),
        "member": Entity(("guild", "user"), at.member, lambda ids, d, holes: to.of_member(ids[1], d, holes)),
        "message": Entity(("channel", "message"), at.message, lambda _, d, holes: to.of_message(d, holes)),
        "presence": Entity(
            ("user",),
            lambda user: (schema.Presence(user), user),
            lambda _, d, holes: to.of_presence(d, holes),
        ),
        "role": Entity(("guild", "role"), lambda guild, role: (schema.Roles(guild), role)),
        "user": Entity(("user",), at.user),
        "voice-state": Entity(
            ("guild", "user"),
            lambda guild, user: (schema.VoiceStates(guild), user),
            lambda ids, d, holes: to.of_voice_state(ids[0], ids[1], d, holes),
        ),
    }


class SpectaclesReader(Reader):
    """Reads of a Spectacles cache. It has no list of users."""

    def __init__(self, *, hydrate: bool = True) -> None:
        super().__init__(entities(), hydrate=hydrate)

    def guilds(self) -> Call[dict[str, Object]]:
        """Return the stored guilds."""
        return schema.Guilds().all()

    def channels(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the channels of a guild; threads are not among them."""
        return self._channels(guild, threads=False)

    def channel(self, guild: Id | None, channel: Id) -> Call[Object | None]:
        """Return a channel or a thread, by its own id."""
        return self._one("channel", channel)

    def threads(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the threads of a guild."""
        return self._channels(guild, threads=True)

    def thread(self, thread: Id) -> Call[Object | None]:
        """Return a thread; None for a channel that is not one."""
        found = self._one("channel", thread)
        return found.map(lambda body: body if body is not None and _is_thread(body) else None)

    def roles(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the roles of a guild."""
        return schema.Roles(snowflake("guild", guild)).all()

    def emojis(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the custom emojis of a guild, each with the user who added it."""
        return self._all("emoji", living(schema.EmojiIds(snowflake("guild", guild)), _emoji))

    def emoji(self, guild: Id, emoji: Id) -> Call[Object | None]:
        """Return a custom emoji with the user who added it, by its own id."""
        return self._one("emoji", emoji)

    def members(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the known members of a guild by user id, each with its user."""
        identity = snowflake("guild", guild)
        return self._all("member", schema.Members(identity).all(), identity)

    @procedure
    def presences(self, guild: Id) -> Steps[dict[str, Object]]:
        """Return the presences of the users that a guild shows, by user id.

        There is one for each user, with the last `guild_id` that it came from.
        """
        people = sorted((yield schema.PresenceIndex(snowflake("guild", guild)).members()), key=int)
        found = yield self._many("presence", [(each,) for each in people])
        return {each: body for each, body in zip(people, found, strict=True) if body is not None}

    def presence(self, guild: Id, user: Id) -> Call[Object | None]:
        """Return the presence of a user with the user, whichever guild shows it. None means offline."""
        return self._one("presence", user)

    def voice_states(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the voice states of a guild by user id, each with its member."""
        identity = snowflake("guild", guild)
        return self._all("voice-state", schema.VoiceStates(identity).all(), identity)

    def messages(self, messages: Iterable[tuple[Id, Id]]) -> Call[list[Object | None]]:
        """Return many messages by channel and id, in their order, in at most three round trips."""
        return self._many("message", messages)

    @procedure
    def recent_messages(self, channel: Id) -> Steps[dict[str, Object]]:
        """Return the stored messages of a channel, those written last at the end."""
        identity = snowflake("channel", channel)
        ids = yield schema.MessageIndex(identity).members()
        found = yield self._many("message", [(identity, each) for each in ids])
        return {each: body for each, body in zip(ids, found, strict=True) if body is not None}

    def _guild_index(self) -> schema.GuildIndex:
        return schema.GuildIndex()

    def _channels(self, guild: Id, *, threads: bool) -> Call[dict[str, Object]]:
        index = schema.ChannelIds(snowflake("guild", guild))
        return living(index, lambda channel: (schema.Channels(), channel)).map(
            lambda found: {each: body for each, body in found.items() if _is_thread(body) is threads}
        )


def _is_thread(channel: Object) -> bool:
    return channel.get("type") in THREAD_TYPES


def _emoji(emoji: str) -> Address:
    return schema.Emojis(), emoji
