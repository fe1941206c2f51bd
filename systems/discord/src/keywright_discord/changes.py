"""Changes of the entities of a cache, whatever its layout.

The interpreter makes changes of gateway events; a layout stores them. Ids are decimal strings. The
`data` of an entity is the object as received, with the few fields that its event omits; `normal` is the
same with nested entities replaced by their ids or removed, as DRC stores it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

import msgspec

from keywright_discord.raw_json import Body, Fields

Ids = tuple[str, ...]


class Kind(enum.Enum):
    """The entities of Discord; the comment lists their ids."""

    APPLICATION = "application"  # application
    COMMAND = "command"  # application, command
    INTERACTION = "interaction"  # interaction
    AUTOMOD_RULE = "automod-rule"  # guild, rule
    CHANNEL = "channel"  # guild, channel
    MESSAGE = "message"  # channel, message
    THREAD = "thread"  # guild, thread
    THREAD_MEMBER = "thread-member"  # guild, thread, user
    EMOJI = "emoji"  # guild, emoji
    GUILD = "guild"  # guild
    WIDGET = "widget"  # guild
    MEMBER = "member"  # guild, user
    INTEGRATION = "integration"  # guild, integration
    WELCOME_SCREEN = "welcome-screen"  # guild
    SCHEDULED_EVENT = "scheduled-event"  # guild, event
    ROLE = "role"  # guild, role
    TEMPLATE = "template"  # guild, code
    INVITE = "invite"  # code
    STAGE_INSTANCE = "stage-instance"  # guild, channel
    STICKER = "sticker"  # guild, sticker
    USER = "user"  # user
    VOICE_STATE = "voice-state"  # guild, user
    PRESENCE = "presence"  # guild, user
    WEBHOOK = "webhook"  # webhook
    REACTION = "reaction"  # message, emoji, user

    # Enum's own is written in Python; kinds are looked up ten times an event.
    __hash__ = object.__hash__


class Mode(enum.Enum):
    """How a put treats the stored object."""

    REPLACE = "the object is complete and replaces the stored one"
    MERGE = "its fields are merged into the stored object, or become a new one"
    PATCH = "its fields are merged into the stored object; without one nothing happens"


for _member in (*Kind, *Mode):
    # Python 3.11 has a property in Python for each member, 0.1 µs a read; 3.12 keeps the members like this.
    type.__setattr__(type(_member), _member.name, _member)


class Change(msgspec.Struct, gc=False):
    """The base of all changes."""


class Put(Change):
    """Write an entity. Discord sends the `carried` fields apart: a put without them keeps the stored ones."""

    kind: Kind
    ids: Ids
    data: Body
    normal: Body
    mode: Mode = Mode.REPLACE
    carried: tuple[str, ...] = ()
    only_in: str | None = None
    """The guild that the bot must be in; if it is not, `elsewhere` is stored, or nothing."""
    elsewhere: Body | None = None

    @property
    def needs_stored(self) -> bool:
        """Whether the result depends on the stored object."""
        return self.mode is not Mode.REPLACE or bool(self.carried)


class PutUsers(Change):
    """Write many complete users, in parallel lists, in REPLACE mode."""

    people: list[str]
    users: list[bytes]


class PutMembers(Change):
    """Write many complete members of a guild, in parallel lists, in REPLACE mode; users are put apart."""

    guild: str
    people: list[str]
    users: list[bytes]
    normal: list[bytes]
    with_users: bool = True

    @property
    def data(self) -> list[bytes]:
        """Return the members as received, the user first; composed only for a layout that stores them so."""
        if not self.with_users:
            return self.normal
        pairs = zip(self.users, self.normal, strict=True)
        return [b'{"user":%b%b%b' % (user, b"," * (rest != b"{}"), rest[1:]) for user, rest in pairs]


class PutPresences(Change):
    """Write many presences in a guild, in parallel lists, in REPLACE mode."""

    guild: str
    people: list[str]
    bodies: list[bytes]
    normal: list[bytes]

    def puts(self) -> Iterator[Put]:
        """Yield the same presences as single puts."""
        lead = b'{"guild_id":"%b",' % self.guild.encode()
        for person, body, normal in zip(self.people, self.bodies, self.normal, strict=True):
            yield Put(Kind.PRESENCE, (self.guild, person), lead + body[1:], normal)


class KeepMembers(Change):
    """Remove the stored members of a guild that are not in this complete list."""

    guild: str
    people: list[str]


class ReceiveChunk(Change):
    """Note the members of one chunk of a request; it precedes the members themselves.

    With the last chunk, if the request has returned as many members as the guild has, the others are removed.
    """

    guild: str
    request: int
    index: int
    count: int
    people: list[str]

    @property
    def is_last(self) -> bool:
        return self.index == self.count - 1


class KeepPresences(Change):
    """Remove the stored presences in a guild that are not in this list: of all users, or `among` some."""

    guild: str
    people: list[str]
    among: list[str] | None = None


class Drop(Change):
    """Remove an entity with its parts: the reactions of a message, the members of a thread; with a member its
    presence, voice state and thread memberships."""

    kind: Kind
    ids: Ids


class ReplaceAll(Change):
    """Make these the only entities of one kind in a guild; each put is in REPLACE mode.

    Channels that are gone take along the webhooks and invites of them.
    """

    kind: Kind
    guild: str
    puts: list[Put]


class PutItem(Change):
    """Write an element of a list inside a guild's document; without an `item`, remove it."""

    guild: str
    field: str
    by: str
    identity: str
    item: Fields | None


class PutItems(Change):
    """Replace a list inside a guild's document."""

    guild: str
    field: str
    items: msgspec.Raw


class CountMember(Change):
    """Add to the `member_count` of a guild that has one (docs/resolutions.md#a65).

    It precedes the change of the member itself, since a repeated event must not count twice. `joined_at` is
    that of an added member.
    """

    guild: str
    user: str
    by: int
    joined_at: bytes | None = None


class ListGuild(Change):
    """Add a guild to the index of guilds; nothing else may be known of it."""

    guild: str


class DropGuild(Change):
    """Remove a guild and everything that belongs to it: the bot left."""

    guild: str


class KeepGuilds(Change):
    """Remove the stored guilds of a shard that are not in the list with which its session began."""

    shard: int
    shards: int
    guilds: list[str]


class DropChannel(Change):
    """Remove a channel with its stage instance, threads, webhooks and permanent invites."""

    guild: str
    channel: str


class SyncThreads(Change):
    """Make these the only threads of some channels, or of the guild when `channels` is None.

    Who else is a member of them may have changed meanwhile, so the known thread members are removed.
    """

    guild: str
    channels: list[str] | None
    puts: list[Put]


class React(Change):
    """Add a user's reaction to a message; `burst` is a super reaction."""

    message: str
    emoji: str
    user: str
    burst: bool = False


class Unreact(Change):
    """Remove reactions: one of a user, all of an emoji, or all of the message."""

    message: str
    emoji: str | None = None
    user: str | None = None
    burst: bool = False
