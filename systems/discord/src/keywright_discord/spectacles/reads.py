"""Reads of the Spectacles cache: every entity by its ids, every listing, and both hydrated.

Objects are stored as they came, so most have their users in them; hydration adds what an event omits: the
user of a partial member, the member of a mention, the complete user of a presence.
"""

from __future__ import annotations

from collections.abc import Iterable

from keywright import Call
from keywright_discord.document_reads import Entities, Entity, Object, living
from keywright_discord.draft import Place
from keywright_discord.references import References
from keywright_discord.spectacles import schema

# PUBLIC_THREAD and its two siblings, which the layout keeps among the channels.
THREAD_TYPES = (10, 11, 12)


class SpectaclesPlaces:
    """The places in Spectacles of the documents that others refer to."""

    def user(self, user: str) -> Place:
        return schema.Users(), user

    def member(self, guild: str, user: str) -> Place:
        return schema.Members(guild), user

    def message(self, channel: str, message: str) -> Place:
        return schema.Message(channel, message), None

    def thread(self, thread: str) -> Place:
        return schema.Channels(), thread

    def thread_member(self, thread: str, user: str) -> Place | None:
        return None


def entities() -> dict[str, Entity]:
    """Return every entity of Spectacles by name, for reads by id."""
    at = SpectaclesPlaces()
    to = References(at)
    return {
        "channel": Entity(("channel",), at.thread),
        "emoji": Entity(("emoji",), _emoji, lambda _, d: to.of_people(d, "user")),
        "guild": Entity(("guild",), lambda guild: (schema.Guilds(), guild)),
        "member": Entity(("guild", "user"), at.member, lambda ids, d: to.of_member(ids[1], d)),
        "message": Entity(("channel", "message"), at.message, lambda _, d: to.of_message(d)),
        "presence": Entity(
            ("user",), lambda user: (schema.Presence(user), user), lambda _, d: to.of_presence(d)
        ),
        "role": Entity(("guild", "role"), lambda guild, role: (schema.Roles(guild), role)),
        "user": Entity(("user",), at.user),
        "voice-state": Entity(
            ("guild", "user"),
            lambda guild, user: (schema.VoiceStates(guild), user),
            lambda ids, d: to.of_voice_state(ids[0], ids[1], d),
        ),
    }


class SpectaclesReads:
    """Entities of Spectacles as they are stored. Each call returns None for one that is not stored."""

    def __init__(self) -> None:
        self._known = Entities(entities())

    def get(self, entity: str, *ids: str) -> Call[Object | None]:
        """Return any entity by its name, as in `get("member", guild, user)`. Raise UsageError if the entity
        is unknown or has other ids."""
        return self._known.get(entity, *ids)

    def channel(self, channel: str) -> Call[Object | None]:
        """Return a channel or a thread."""
        return self._known.get("channel", channel)

    def emoji(self, emoji: str) -> Call[Object | None]:
        return self._known.get("emoji", emoji)

    def guild(self, guild: str) -> Call[Object | None]:
        return self._known.get("guild", guild)

    def member(self, guild: str, user: str) -> Call[Object | None]:
        return self._known.get("member", guild, user)

    def message(self, channel: str, message: str) -> Call[Object | None]:
        return self._known.get("message", channel, message)

    def presence(self, user: str) -> Call[Object | None]:
        return self._known.get("presence", user)

    def role(self, guild: str, role: str) -> Call[Object | None]:
        return self._known.get("role", guild, role)

    def user(self, user: str) -> Call[Object | None]:
        return self._known.get("user", user)

    def voice_state(self, guild: str, user: str) -> Call[Object | None]:
        return self._known.get("voice-state", guild, user)


class SpectaclesListings:
    """Entities of Spectacles that belong together, by id, as they are stored. Users and messages are not
    listed."""

    def guilds(self) -> Call[dict[str, Object]]:
        return schema.Guilds().all()

    def members(self, guild: str) -> Call[dict[str, Object]]:
        return schema.Members(guild).all()

    def voice_states(self, guild: str) -> Call[dict[str, Object]]:
        """Return the voice states of a guild by user id."""
        return schema.VoiceStates(guild).all()

    def roles(self, guild: str) -> Call[dict[str, Object]]:
        return schema.Roles(guild).all()

    def channels(self, guild: str) -> Call[dict[str, Object]]:
        """Return the channels of a guild, threads among them."""
        return living(schema.ChannelIds(guild), lambda channel: (schema.Channels(), channel))

    def threads(self, guild: str) -> Call[dict[str, Object]]:
        return self.channels(guild).map(
            lambda found: {each: body for each, body in found.items() if body.get("type") in THREAD_TYPES}
        )

    def emojis(self, guild: str) -> Call[dict[str, Object]]:
        return living(schema.EmojiIds(guild), _emoji)


class SpectaclesHydrated:
    """Entities of Spectacles with those that they refer to."""

    def __init__(self) -> None:
        self._known = Entities(entities())
        self._listings = SpectaclesListings()

    def get(self, entity: str, *ids: str) -> Call[Object | None]:
        """Return any entity by its name, as in `get("member", guild, user)`. Raise UsageError if the entity
        is unknown or has other ids."""
        return self._known.hydrate(entity, *ids)

    def messages(self, messages: Iterable[tuple[str, str]]) -> Call[list[Object | None]]:
        """Return messages by channel and id, in at most three round trips for any number."""
        return self._known.hydrate_many("message", messages)

    def message(self, channel: str, message: str) -> Call[Object | None]:
        return self._known.hydrate("message", channel, message)

    def member(self, guild: str, user: str) -> Call[Object | None]:
        """Return a member with its user."""
        return self._known.hydrate("member", guild, user)

    def members(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("member", self._listings.members(guild), guild)

    def voice_state(self, guild: str, user: str) -> Call[Object | None]:
        """Return a voice state with its member, and the member's user."""
        return self._known.hydrate("voice-state", guild, user)

    def voice_states(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("voice-state", self._listings.voice_states(guild), guild)

    def emoji(self, emoji: str) -> Call[Object | None]:
        """Return an emoji with the user who added it."""
        return self._known.hydrate("emoji", emoji)

    def emojis(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("emoji", self._listings.emojis(guild))

    def presence(self, user: str) -> Call[Object | None]:
        """Return a presence with its complete user."""
        return self._known.hydrate("presence", user)


def _emoji(emoji: str) -> Place:
    return schema.Emojis(), emoji
