"""Typed views of documents, for those who want attributes instead of dicts.

A view has the documented fields that programs use most; what Discord adds to them is in the document
and not in the view. All but the id is optional, so a view fits what is stored and what is hydrated:
a reference is the id before and the view of it after. Tokens are in no view.
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


class User(View, frozen=True):
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
    member: Member | None = None
    """What a mention adds to its user."""


class Member(View, frozen=True):
    """A member, whose user is there when it was hydrated."""

    user: User | None = None
    guild_id: str | None = None
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


class Role(View, frozen=True):
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


class Emoji(View, frozen=True):
    """An emoji; one that is no custom one has a name and no id."""

    id: str | None = None
    name: str | None = None
    roles: list[str] = []
    user: User | str | None = None
    require_colons: bool = True
    managed: bool = False
    animated: bool = False
    available: bool = True


class Sticker(View, frozen=True):
    id: str
    name: str | None = None
    description: str | None = None
    tags: str | None = None
    type: int | None = None
    format_type: int | None = None
    guild_id: str | None = None
    user: User | str | None = None
    available: bool = True


class Guild(View, frozen=True):
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


class ThreadMember(View, frozen=True):
    """Who is in a thread; `id` is the thread's."""

    id: str | None = None
    user_id: str | None = None
    join_timestamp: str | None = None
    flags: int = 0
    member: Member | None = None


class Overwrite(View, frozen=True):
    """What a role (type 0) or a member (type 1) may do in one channel."""

    id: str
    type: int | None = None
    allow: str | None = None
    deny: str | None = None


class ThreadMetadata(View, frozen=True):
    archived: bool = False
    locked: bool = False
    archive_timestamp: str | None = None
    auto_archive_duration: int | None = None
    invitable: bool | None = None


class Channel(View, frozen=True):
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
    permission_overwrites: list[Overwrite] = []
    owner_id: str | None = None
    message_count: int | None = None
    member_count: int | None = None
    thread_metadata: ThreadMetadata | None = None
    member: ThreadMember | None = None
    members: list[ThreadMember] = []


class Attachment(View, frozen=True):
    id: str
    filename: str | None = None
    content_type: str | None = None
    size: int | None = None
    url: str | None = None
    width: int | None = None
    height: int | None = None


class Reaction(View, frozen=True):
    """How many reacted with an emoji when the message was received."""

    emoji: Emoji | None = None
    count: int | None = None
    me: bool = False


class MessageReference(View, frozen=True):
    type: int | None = None
    message_id: str | None = None
    channel_id: str | None = None
    guild_id: str | None = None


class Message(View, frozen=True):
    id: str
    channel_id: str | None = None
    guild_id: str | None = None
    author: User | str | None = None
    member: Member | None = None
    content: str | None = None
    timestamp: str | None = None
    edited_timestamp: str | None = None
    type: int | None = None
    flags: int = 0
    tts: bool = False
    pinned: bool = False
    mention_everyone: bool = False
    mentions: list[User | str] = []
    mention_roles: list[str] = []
    attachments: list[Attachment] = []
    embeds: list[dict[str, Any]] = []
    reactions: list[Reaction] = []
    webhook_id: str | None = None
    application_id: str | None = None
    message_reference: MessageReference | None = None
    referenced_message: Message | str | None = None
    thread: Channel | str | None = None


class VoiceState(View, frozen=True):
    user_id: str
    guild_id: str | None = None
    channel_id: str | None = None
    member: Member | None = None
    deaf: bool = False
    mute: bool = False
    self_deaf: bool = False
    self_mute: bool = False
    self_stream: bool = False
    self_video: bool = False
    suppress: bool = False
    request_to_speak_timestamp: str | None = None


class Presence(View, frozen=True):
    user: User | str
    guild_id: str | None = None
    status: str | None = None
    activities: list[dict[str, Any]] = []
    client_status: dict[str, str] = {}


class ScheduledEvent(View, frozen=True):
    id: str
    guild_id: str | None = None
    channel_id: str | None = None
    creator_id: str | None = None
    creator: User | str | None = None
    name: str | None = None
    description: str | None = None
    scheduled_start_time: str | None = None
    scheduled_end_time: str | None = None
    status: int | None = None
    entity_type: int | None = None
    user_count: int | None = None


class StageInstance(View, frozen=True):
    id: str
    guild_id: str | None = None
    channel_id: str | None = None
    topic: str | None = None
    privacy_level: int | None = None
    guild_scheduled_event_id: str | None = None


class Invite(View, frozen=True):
    code: str
    guild_id: str | None = None
    channel_id: str | None = None
    inviter: User | str | None = None
    target_user: User | str | None = None
    created_at: str | None = None
    expires_at: str | None = None
    max_age: int | None = None
    max_uses: int | None = None
    uses: int | None = None
    temporary: bool = False


def view(kind: type[V], document: Object) -> V:
    """A document as a view; UsageError names the field that is of another type.

    What a writer that encodes with Lua's cjson leaves behind (A10) is read as what was meant: `{}` for
    an empty list, floats for integers; so are ids that are numbers, and null where a field has a default.
    """
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError:
        pass  # rare, so looked at again with more patience
    try:
        return msgspec.convert(_mended(inspect.type_info(kind), document), kind, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"this document is no {kind.__name__}: {error}. Read it as the dict that it is."
        ) from error


def _mended(expected: inspect.Type, value: Any) -> Any:
    """The value as its type would have it."""
    options = expected.types if isinstance(expected, inspect.UnionType) else (expected,)
    for option in options:
        if isinstance(option, inspect.ListType) and (isinstance(value, list) or value == {}):
            return [_mended(option.item_type, each) for each in value]
        if isinstance(option, inspect.StructType) and isinstance(value, dict):
            return _mended_fields(option, value)
        if isinstance(option, inspect.StrType) and type(value) is int:
            return str(value)
    return value


def _mended_fields(expected: inspect.StructType, value: Object) -> Object:
    fields = {field.encode_name: field for field in expected.fields}
    return {
        name: _mended(fields[name].type, each)
        for name, each in value.items()
        if name in fields and (each is not None or fields[name].required)
    }
