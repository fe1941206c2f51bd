"""What the platform tells: the triggers that Open Mod listens to, as the JSON they arrive in.

Only what is needed is declared; fields that are not known are let through. An event that lacks what
its kind must have is refused with MalformedEventError, which names the field.
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
    "Deletion",
    "Event",
    "EventSource",
    "ModAction",
    "Party",
    "PostDelete",
    "PostSubmit",
    "PostUpdate",
    "Submission",
    "Subreddit",
    "Target",
    "Update",
    "decode_event",
]

Aware = Annotated[datetime, msgspec.Meta(tz=True)]
PostRef = Annotated[str, msgspec.Meta(pattern=r"^t3_[0-9a-z]+$")]
CommentRef = Annotated[str, msgspec.Meta(pattern=r"^t1_[0-9a-z]+$")]
UserRef = Annotated[str, msgspec.Meta(pattern=r"^(t2_[0-9a-z]+)?$")]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class EventSource(enum.IntEnum):
    """Who deleted something. Only what its author deleted falls under the content deletion policy."""

    UNKNOWN = 0
    USER = 1
    ADMIN = 2
    MODERATOR = 3


class Party(msgspec.Struct, frozen=True):
    """A person as an event names them; a special account has a name and no id."""

    name: str = ""
    id: UserRef = ""


class Subreddit(msgspec.Struct, frozen=True):
    name: Annotated[str, msgspec.Meta(min_length=1)]


class Target(msgspec.Struct, frozen=True):
    """A post or comment as a mod action names it; all empty where the action is about something else."""

    id: str = ""


class _PostRef(msgspec.Struct, frozen=True):
    id: PostRef


class _CommentRef(msgspec.Struct, frozen=True):
    id: CommentRef


class ModAction(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type", rename="camel"):
    """A moderator did something."""

    action: Annotated[str, msgspec.Meta(min_length=1)]
    actioned_at: Aware | int
    """An RFC 3339 time, or milliseconds since 1970."""
    subreddit: Subreddit
    moderator: Party
    target_user: Party
    target_post: Target = Target()
    target_comment: Target = Target()

    @property
    def known(self) -> ModActionType | None:
        """The action, if it is one that is recorded."""
        return action_of(self.action)

    @property
    def at(self) -> datetime:
        if isinstance(self.actioned_at, int):
            return _EPOCH + self.actioned_at * _MILLISECOND
        return self.actioned_at.astimezone(UTC)

    @property
    def thing(self) -> str:
        """What was moderated, empty where the event does not say: the id that the action is about."""
        action = self.known
        if isinstance(action, LinkAction):
            return self.target_post.id
        if isinstance(action, CommentAction):
            return self.target_comment.id
        return self.target_user.id if isinstance(action, BanAction | MuteAction) else ""

    @property
    def id(self) -> str:
        """Two actions differ in what, when, where, by whom or on what; a repeated delivery in none."""
        facts = [
            self.action.lower(),
            (self.at - _EPOCH) // _MILLISECOND,
            self.subreddit.name.lower(),
            self.moderator.name.lower(),
            self.thing,
        ]
        return f"mod:{hashlib.sha256(msgspec.json.encode(facts)).hexdigest()}"


class _Happening(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type", rename="camel"):
    """Something happened to a post or a comment; the subclass says what, and to which."""

    verb: ClassVar[str]

    @property
    def thing(self) -> str:
        raise NotImplementedError

    @property
    def id(self) -> str:
        return f"{self.verb}:{self.thing}"


class _ToPost(_Happening, frozen=True):
    post: _PostRef

    @property
    def thing(self) -> str:
        return self.post.id


class _ToComment(_Happening, frozen=True):
    comment: _CommentRef

    @property
    def thing(self) -> str:
        return self.comment.id


class PostSubmit(_ToPost, frozen=True):
    """Someone made a post."""

    verb = "submit"


class CommentSubmit(_ToComment, frozen=True):
    """Someone made a comment."""

    verb = "submit"


class PostUpdate(_ToPost, frozen=True):
    """An author changed a post."""

    verb = "update"


class CommentUpdate(_ToComment, frozen=True):
    """An author changed a comment."""

    verb = "update"


class PostDelete(_Happening, frozen=True, kw_only=True):
    """A post was deleted."""

    verb = "delete"
    post_id: PostRef
    source: int
    author: Party = Party()

    @property
    def thing(self) -> str:
        return self.post_id


class CommentDelete(_Happening, frozen=True, kw_only=True):
    """A comment was deleted."""

    verb = "delete"
    comment_id: CommentRef
    source: int
    author: Party = Party()

    @property
    def thing(self) -> str:
        return self.comment_id


Submission = PostSubmit | CommentSubmit
Update = PostUpdate | CommentUpdate
Deletion = PostDelete | CommentDelete
Event = ModAction | Submission | Update | Deletion

_decode = msgspec.json.Decoder(Event).decode


def decode_event(raw: bytes | str | Mapping[str, Any]) -> Event:
    """An event from its JSON, or from the object that JSON stands for."""
    try:
        if isinstance(raw, bytes | str):
            return _checked(_decode(raw))
        found: Event = msgspec.convert(raw, Event)
        return _checked(found)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedEventError(_named(raw), str(error)) from error


def _checked(event: Event) -> Event:
    if not isinstance(event, ModAction):
        return event
    try:
        _ = event.at
    except OverflowError as error:
        raise MalformedEventError("ModAction", "`actionedAt` is no time that there is") from error
    if event.known is None:
        return event
    if not (event.moderator.name or event.moderator.id):
        raise MalformedEventError("ModAction", "`moderator` has neither a name nor an id")
    prefix = prefix_of(event.known)
    if not re.fullmatch(f"{prefix}[0-9a-z]+", event.thing):
        raise MalformedEventError("ModAction", f"`{event.action}` without the {prefix} id that it is about")
    return event


def _named(raw: object) -> str:
    kind = raw.get("type") if isinstance(raw, Mapping) else None
    return str(kind) if kind else "an event"
