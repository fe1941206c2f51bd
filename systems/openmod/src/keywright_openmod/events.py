"""The events of the platform that Open Mod handles, decoded from JSON.

Only the fields that are used are declared; others are ignored. An event without a field that its type must
have raises MalformedEventError, which names the field.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar

import msgspec

from keywright_openmod.actions import (
    BanAction,
    CommentAction,
    LinkAction,
    ModActionType,
    MuteAction,
    action_of,
    prefix_of,
)
from keywright_openmod.errors import MalformedEventError

__all__ = [
    "CommentDelete",
    "CommentSubmit",
    "CommentUpdate",
    "DeleteEvent",
    "Event",
    "EventSource",
    "ModAction",
    "PersonRef",
    "PostDelete",
    "PostSubmit",
    "PostUpdate",
    "SubmitEvent",
    "SubredditRef",
    "TargetRef",
    "UpdateEvent",
    "decode_event",
]

Aware = Annotated[datetime, msgspec.Meta(tz=True)]
PostRef = Annotated[str, msgspec.Meta(pattern=r"^t3_[0-9a-z]+$")]
CommentRef = Annotated[str, msgspec.Meta(pattern=r"^t1_[0-9a-z]+$")]
UserRef = Annotated[str, msgspec.Meta(pattern=r"^(t2_[0-9a-z]+)?$")]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class EventSource(enum.IntEnum):
    """The origin of a deletion. Only deletions by the author fall under the content deletion policy."""

    UNKNOWN = 0
    USER = 1
    ADMIN = 2
    MODERATOR = 3


class PersonRef(msgspec.Struct, frozen=True):
    """A person in an event. A special account has a name and no id."""

    name: str = ""
    id: UserRef = ""


class SubredditRef(msgspec.Struct, frozen=True):
    """The subreddit in an event."""

    name: Annotated[str, msgspec.Meta(min_length=1)]


class TargetRef(msgspec.Struct, frozen=True):
    """A post or comment in a mod action. The id is empty if the action has another target."""

    id: str = ""


class _PostRef(msgspec.Struct, frozen=True):
    id: PostRef


class _CommentRef(msgspec.Struct, frozen=True):
    id: CommentRef


class ModAction(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type", rename="camel"):
    """An action of a moderator."""

    action: Annotated[str, msgspec.Meta(min_length=1)]
    actioned_at: Aware | int
    """An RFC 3339 time, or milliseconds since the epoch."""
    subreddit: SubredditRef
    moderator: PersonRef
    target_user: PersonRef
    target_post: TargetRef = TargetRef()
    target_comment: TargetRef = TargetRef()

    @property
    def known(self) -> ModActionType | None:
        """The action if extracts record it, else None."""
        return action_of(self.action)

    @property
    def at(self) -> datetime:
        if isinstance(self.actioned_at, int):
            return _EPOCH + self.actioned_at * _MILLISECOND
        return self.actioned_at.astimezone(UTC)

    @property
    def thing(self) -> str:
        """The id of the moderated post, comment or user; empty if the event does not have it."""
        action = self.known
        if isinstance(action, LinkAction):
            return self.target_post.id
        if isinstance(action, CommentAction):
            return self.target_comment.id
        return self.target_user.id if isinstance(action, BanAction | MuteAction) else ""

    @property
    def id(self) -> str:
        """A hash of action, time, subreddit, moderator and target: equal only for repeated deliveries."""
        facts = [
            self.action.lower(),
            (self.at - _EPOCH) // _MILLISECOND,
            self.subreddit.name.lower(),
            self.moderator.name.lower(),
            self.thing,
        ]
        return f"mod:{hashlib.sha256(msgspec.json.encode(facts)).hexdigest()}"


class _SubmissionEvent(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type", rename="camel"):
    """An event about one post or comment."""

    verb: ClassVar[str]

    @property
    def thing(self) -> str:
        raise NotImplementedError

    @property
    def id(self) -> str:
        return f"{self.verb}:{self.thing}"


class _PostEvent(_SubmissionEvent, frozen=True):
    post: _PostRef

    @property
    def thing(self) -> str:
        return self.post.id


class _CommentEvent(_SubmissionEvent, frozen=True):
    comment: _CommentRef

    @property
    def thing(self) -> str:
        return self.comment.id


class PostSubmit(_PostEvent, frozen=True):
    """A post was submitted."""

    verb = "submit"


class CommentSubmit(_CommentEvent, frozen=True):
    """A comment was submitted."""

    verb = "submit"


class PostUpdate(_PostEvent, frozen=True):
    """The author edited a post."""

    verb = "update"


class CommentUpdate(_CommentEvent, frozen=True):
    """The author edited a comment."""

    verb = "update"


class PostDelete(_SubmissionEvent, frozen=True, kw_only=True):
    """A post was deleted."""

    verb = "delete"
    post_id: PostRef
    source: int
    author: PersonRef = PersonRef()

    @property
    def thing(self) -> str:
        return self.post_id


class CommentDelete(_SubmissionEvent, frozen=True, kw_only=True):
    """A comment was deleted."""

    verb = "delete"
    comment_id: CommentRef
    source: int
    author: PersonRef = PersonRef()

    @property
    def thing(self) -> str:
        return self.comment_id


SubmitEvent = PostSubmit | CommentSubmit
UpdateEvent = PostUpdate | CommentUpdate
DeleteEvent = PostDelete | CommentDelete
Event = ModAction | SubmitEvent | UpdateEvent | DeleteEvent

_decode = msgspec.json.Decoder(Event).decode


def decode_event(raw: bytes | str | Mapping[str, Any]) -> Event:
    """Return the event of a JSON text or decoded object. Raise MalformedEventError if it is malformed."""
    try:
        if isinstance(raw, bytes | str):
            return _checked(_decode(raw))
        found: Event = msgspec.convert(raw, Event)
        return _checked(found)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        kind = raw.get("type") if isinstance(raw, Mapping) else None
        raise MalformedEventError(str(kind or "an event"), str(error)) from error


def _checked(event: Event) -> Event:
    if not isinstance(event, ModAction):
        return event
    try:
        _ = event.at
    except OverflowError as error:
        raise MalformedEventError("ModAction", "`actionedAt` is out of range") from error
    if event.known is None:
        return event
    if not (event.moderator.name or event.moderator.id):
        raise MalformedEventError("ModAction", "`moderator` has neither a name nor an id")
    prefix = prefix_of(event.known)
    if not re.fullmatch(f"{prefix}[0-9a-z]+", event.thing):
        raise MalformedEventError("ModAction", f"`{event.action}` needs a {prefix} id as its target")
    return event
