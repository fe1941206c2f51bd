"""What an event does to the entities of a cache, whatever the layout.

The interpreter makes changes out of gateway events; a layout stores them. Ids are decimal strings.
An entity's `data` is the object as received (the few fields that its event leaves out added);
`normal` is the same with nested entities replaced by their ids or removed, as DRC has it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

import msgspec

from keywright import SnowflakeText
from keywright_discord.raw_json import Fields, encode, fields

Ids = tuple[str, ...]
Body = Fields | bytes
"""An object as its fields, or as the bytes of the whole of it."""


class Snowflakes(list[str]):
    """Many ids, checked and encoded once, however many names and members they become."""

    __slots__ = ("texts",)

    def __init__(self, ids: list[str]) -> None:
        super().__init__(ids)
        self.texts = SnowflakeText().render_all(self)

    @classmethod
    def of(cls, ids: list[str]) -> Snowflakes:
        """The ids themselves where they have been checked already."""
        return ids if isinstance(ids, cls) else cls(ids)


class Kind(enum.Enum):
    """The entities of Discord, and what their ids are."""

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
    """What a put does with what is there."""

    REPLACE = "the object is whole: it takes the place of the old one"
    MERGE = "its fields are laid over the old one, which may be missing"
    PATCH = "its fields are laid over the old one, and nothing happens when there is none"


class Change(msgspec.Struct, gc=False):
    """The base of all changes."""


class Put(Change):
    """Write an entity."""

    kind: Kind
    ids: Ids
    data: Body
    normal: Body
    mode: Mode = Mode.REPLACE


def body_bytes(body: Body) -> bytes:
    """An object as it is stored."""
    return body if isinstance(body, bytes) else encode(body)


def body_fields(body: Body) -> Fields:
    """An object's fields, to be laid over another's."""
    return fields(body, "a stored object") if isinstance(body, bytes) else body


class PutUsers(Change):
    """Whole users, many at once: parallel lists, in REPLACE mode."""

    people: list[str]
    users: list[bytes]


class PutMembers(Change):
    """Whole members of a guild, many at once: parallel lists, in REPLACE mode. Their users are put apart."""

    guild: str
    people: list[str]
    users: list[bytes]
    normal: list[bytes]
    with_users: bool = True

    @property
    def data(self) -> list[bytes]:
        """The members as received, the user first; composed only for a layout that keeps them so."""
        if not self.with_users:
            return self.normal
        pairs = zip(self.users, self.normal, strict=True)
        return [b'{"user":%b%b%b' % (user, b"," * (rest != b"{}"), rest[1:]) for user, rest in pairs]


class PutPresences(Change):
    """Presences in a guild, many at once: parallel lists, in REPLACE mode."""

    guild: str
    people: list[str]
    bodies: list[bytes]
    normal: list[bytes]

    def puts(self) -> Iterator[Put]:
        """The same one by one."""
        lead = b'{"guild_id":"%b",' % self.guild.encode()
        for person, body, normal in zip(self.people, self.bodies, self.normal, strict=True):
            yield Put(Kind.PRESENCE, (self.guild, person), lead + body[1:], normal)


class KeepMembers(Change):
    """A guild told all of its members: of those that are known only these are left."""

    guild: str
    people: list[str]


class Drop(Change):
    """Remove an entity, with what only it holds: a message's reactions, a thread's members."""

    kind: Kind
    ids: Ids


class ReplaceAll(Change):
    """Make these the only entities of one kind in a guild; each put is in REPLACE mode."""

    kind: Kind
    guild: str
    puts: list[Put]


class CountMember(Change):
    """A member came or went: the guild's `member_count` follows, where the guild has one (A65).

    It is counted only if the cache did not know of it yet, since Discord repeats these events (A50);
    so it stands before the change of the member itself.
    """

    guild: str
    user: str
    by: int


class ListGuild(Change):
    """The bot is a member of this guild, of which nothing else may be known."""

    guild: str


class DropGuild(Change):
    """The bot left a guild: all that is of the guild goes."""

    guild: str


class KeepGuilds(Change):
    """A session began: of this shard's guilds only these are left, the others were left while offline."""

    shard: int
    shards: int
    guilds: list[str]


class DropChannel(Change):
    """A channel goes, with its stage instance and its threads."""

    guild: str
    channel: str


class SyncThreads(Change):
    """Make these the only threads of some channels, or of the guild when `channels` is None."""

    guild: str
    channels: list[str] | None
    puts: list[Put]


class React(Change):
    """A user reacted to a message."""

    message: str
    emoji: str
    user: str


class Unreact(Change):
    """Reactions go: one user's, all of an emoji, or all of the message."""

    message: str
    emoji: str | None = None
    user: str | None = None
