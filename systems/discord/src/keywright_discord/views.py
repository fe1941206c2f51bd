"""Typed views of documents, for programs that prefer attributes to dicts.

A view has the documented fields that programs use most; other fields are only in the document. All but
the id is optional, so a view fits a stored and a hydrated document: a reference is an id in the former
and a view in the latter. No view has a token.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from keywright.errors import UsageError
from keywright_discord.document_reads import Object

V = TypeVar("V", bound="View")


class View(msgspec.Struct, kw_only=True, frozen=True):
    """The base of all views."""


class UserView(View, frozen=True):
    """A user."""

    id: str
    username: str | None = None
    global_name: str | None = None
    discriminator: str | None = None
    avatar: str | None = None
    banner: str | None = None
    accent_color: int | None = None
    bot: bool = False
    system: bool = False
    public_flags: int = 0
    member: MemberView | None = None
    """The member of the guild, in the mentions of a hydrated message."""


class MemberView(View, frozen=True):
    """A member of a guild."""

    user: UserView | None = None
    """Only in a hydrated document: DRC stores members without their users."""
    guild_id: str | None = None
    """Only if the last event about the member had it."""
    nick: str | None = None
    avatar: str | None = None
    roles: list[str] = []
    joined_at: str | None = None
    premium_since: str | None = None
    communication_disabled_until: str | None = None
    deaf: bool = False
    mute: bool = False
    pending: bool = False
    flags: int = 0


class RoleView(View, frozen=True):
    """A role of a guild."""

    id: str
    name: str | None = None
    color: int = 0
    hoist: bool = False
    icon: str | None = None
    unicode_emoji: str | None = None
    position: int = 0
    permissions: str | None = None
    managed: bool = False
    mentionable: bool = False
    flags: int = 0


class EmojiView(View, frozen=True):
    """An emoji; one that is not custom has a name and no id."""

    id: str | None = None
    name: str | None = None
    roles: list[str] = []
    user: UserView | str | None = None
    """The user who added it."""
    require_colons: bool = True
    managed: bool = False
    animated: bool = False
    available: bool = True


class StickerView(View, frozen=True):
    """A custom sticker of a guild."""

    id: str
    name: str | None = None
    description: str | None = None
    tags: str | None = None
    type: int | None = None
    format_type: int | None = None
    guild_id: str | None = None
    user: UserView | str | None = None
    """The user who added it."""
    available: bool = True


class GuildView(View, frozen=True):
    """A guild without its parts that have keys of their own."""

    id: str
    name: str | None = None
    icon: str | None = None
    splash: str | None = None
    banner: str | None = None
    description: str | None = None
    owner_id: str | None = None
    afk_channel_id: str | None = None
    system_channel_id: str | None = None
    rules_channel_id: str | None = None
    features: list[str] = []
    verification_level: int | None = None
    premium_tier: int | None = None
    premium_subscription_count: int | None = None
    preferred_locale: str | None = None
    member_count: int | None = None
    joined_at: str | None = None
    large: bool = False
    unavailable: bool = False
    """Discord has an outage; the rest is as it was before."""


class ThreadMemberView(View, frozen=True):
    """A member of a thread."""

    id: str | None = None
    """The id of the thread."""
    user_id: str | None = None
    join_timestamp: str | None = None
    flags: int = 0
    member: MemberView | None = None


class OverwriteView(View, frozen=True):
    """The permissions of a role or a member in one channel."""

    id: str
    type: int | None = None
    """0 for a role, 1 for a member."""
    allow: str | None = None
    deny: str | None = None


class ThreadMetadataView(View, frozen=True):
    """The state of a thread."""

    archived: bool = False
    locked: bool = False
    archive_timestamp: str | None = None
    auto_archive_duration: int | None = None
    invitable: bool | None = None


class ChannelView(View, frozen=True):
    """A channel or a thread."""

    id: str
    type: int | None = None
    guild_id: str | None = None
    parent_id: str | None = None
    name: str | None = None
    topic: str | None = None
    position: int | None = None
    nsfw: bool = False
    last_message_id: str | None = None
    last_pin_timestamp: str | None = None
    rate_limit_per_user: int | None = None
    bitrate: int | None = None
    user_limit: int | None = None
    permission_overwrites: list[OverwriteView] = []
    owner_id: str | None = None
    message_count: int | None = None
    member_count: int | None = None
    thread_metadata: ThreadMetadataView | None = None
    member: ThreadMemberView | None = None
    """The bot's own membership, in a hydrated thread."""
    members: list[ThreadMemberView] = []
    """All known members, in a hydrated thread."""


class AttachmentView(View, frozen=True):
    """A file of a message."""

    id: str
    filename: str | None = None
    content_type: str | None = None
    size: int | None = None
    url: str | None = None
    width: int | None = None
    height: int | None = None


class ReactionView(View, frozen=True):
    """The reactions with one emoji, as counted when the message was received."""

    emoji: EmojiView | None = None
    count: int | None = None
    me: bool = False


class MessageReferenceView(View, frozen=True):
    """The ids of the message that a message answers or forwards."""

    type: int | None = None
    message_id: str | None = None
    channel_id: str | None = None
    guild_id: str | None = None


class MessageView(View, frozen=True):
    """A message."""

    id: str
    channel_id: str | None = None
    guild_id: str | None = None
    author: UserView | str | None = None
    """A user, or the id of a webhook, which is not a user."""
    member: MemberView | None = None
    """The author as a member of the guild, in a hydrated message."""
    content: str | None = None
    timestamp: str | None = None
    edited_timestamp: str | None = None
    type: int | None = None
    flags: int = 0
    tts: bool = False
    pinned: bool = False
    mention_everyone: bool = False
    mentions: list[UserView | str] = []
    mention_roles: list[str] = []
    attachments: list[AttachmentView] = []
    embeds: list[dict[str, Any]] = []
    reactions: list[ReactionView] = []
    """Counts as received; the users are in the keys of reactions."""
    webhook_id: str | None = None
    application_id: str | None = None
    message_reference: MessageReferenceView | None = None
    referenced_message: MessageView | str | None = None
    """The message that this one answers; None also if it was deleted."""
    thread: ChannelView | str | None = None
    """The thread that began with this message."""


class VoiceStateView(View, frozen=True):
    """A user's connection to a voice channel."""

    user_id: str
    guild_id: str | None = None
    channel_id: str | None = None
    member: MemberView | None = None
    deaf: bool = False
    mute: bool = False
    self_deaf: bool = False
    self_mute: bool = False
    self_stream: bool = False
    self_video: bool = False
    suppress: bool = False
    request_to_speak_timestamp: str | None = None


class PresenceView(View, frozen=True):
    """The status and activities of a user."""

    user: UserView | str
    guild_id: str | None = None
    status: str | None = None
    activities: list[dict[str, Any]] = []
    client_status: dict[str, str] = {}


class ScheduledEventView(View, frozen=True):
    """A scheduled event of a guild."""

    id: str
    guild_id: str | None = None
    channel_id: str | None = None
    creator_id: str | None = None
    creator: UserView | str | None = None
    name: str | None = None
    description: str | None = None
    scheduled_start_time: str | None = None
    scheduled_end_time: str | None = None
    status: int | None = None
    entity_type: int | None = None
    user_count: int | None = None


class StageInstanceView(View, frozen=True):
    """A live stage of a stage channel."""

    id: str
    guild_id: str | None = None
    channel_id: str | None = None
    topic: str | None = None
    privacy_level: int | None = None
    guild_scheduled_event_id: str | None = None


class InviteView(View, frozen=True):
    """An invite to a guild."""

    code: str
    guild_id: str | None = None
    channel_id: str | None = None
    inviter: UserView | str | None = None
    target_user: UserView | str | None = None
    """The user whose stream the invite shows."""
    created_at: str | None = None
    expires_at: str | None = None
    max_age: int | None = None
    """Seconds until it expires; 0 means no expiry."""
    max_uses: int | None = None
    uses: int | None = None
    temporary: bool = False


def view(kind: type[V], document: Object) -> V:
    """Return a document as a view. Raise UsageError if a field has another type.

    The output of a writer with Lua's cjson is accepted (docs/resolutions.md#a10): `{}` for an empty list,
    floats for integers. So are numbers as ids, and null for a field that has a default.
    """
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError:
        pass  # rare, so only then the slower and more tolerant conversion
    try:
        return msgspec.convert(_tolerant(inspect.type_info(kind), document), kind, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"the document does not fit {kind.__name__}: {error}. Use the document itself."
        ) from error


def _tolerant(expected: inspect.Type, value: Any) -> Any:
    """Return the value in the form that its type expects."""
    options = expected.types if isinstance(expected, inspect.UnionType) else (expected,)
    for option in options:
        if isinstance(option, inspect.ListType) and (isinstance(value, list) or value == {}):
            return [_tolerant(option.item_type, each) for each in value]
        if isinstance(option, inspect.StructType) and isinstance(value, dict):
            return _tolerant_fields(option, value)
        if isinstance(option, inspect.StrType) and type(value) is int:
            return str(value)
    return value


def _tolerant_fields(expected: inspect.StructType, value: Object) -> Object:
    fields = {field.encode_name: field for field in expected.fields}
    return {
        name: _tolerant(fields[name].type, each)
        for name, each in value.items()
        if name in fields and (each is not None or fields[name].required)
    }
