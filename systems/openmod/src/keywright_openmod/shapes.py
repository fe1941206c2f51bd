"""What Open Mod stores: its enumerations, its ids, and the members of its hashes, v1 and v1.1."""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from keywright import EpochMs, Flag, OneOf, Prefixed

__all__ = [
    "AnyCached",
    "AnyExtract",
    "Audit",
    "BanAction",
    "BanExtract",
    "CachedComment",
    "CachedPost",
    "CachedUser",
    "CommentAction",
    "CommentExtract",
    "CommentId",
    "LinkAction",
    "LinkExtract",
    "ModActionType",
    "MuteAction",
    "MuteExtract",
    "PostId",
    "ThingId",
    "UserId",
    "action_of",
    "extract_of",
    "prefix_of",
    "thing_of",
]

CommentId = Annotated[str, Prefixed("t1_")]
UserId = Annotated[str, Prefixed("t2_")]
PostId = Annotated[str, Prefixed("t3_")]
ThingId = Annotated[str, OneOf(Prefixed("t1_"), Prefixed("t2_"), Prefixed("t3_"))]


class LinkAction(enum.StrEnum):
    """ModActionType, as far as it concerns posts."""

    REMOVE_LINK = "removelink"
    SPAM_LINK = "spamlink"
    APPROVE_LINK = "approvelink"


class CommentAction(enum.StrEnum):
    """ModActionType, as far as it concerns comments."""

    REMOVE_COMMENT = "removecomment"
    SPAM_COMMENT = "spamcomment"
    APPROVE_COMMENT = "approvecomment"


class BanAction(enum.StrEnum):
    """ModActionType, as far as it concerns bans."""

    BAN_USER = "banuser"
    UNBAN_USER = "unbanuser"


class MuteAction(enum.StrEnum):
    """ModActionType, as far as it concerns mutes."""

    MUTE_USER = "muteuser"
    UNMUTE_USER = "unmuteuser"


ModActionType = LinkAction | CommentAction | BanAction | MuteAction

_ACTIONS: dict[str, ModActionType] = {
    action.value: action for kind in (LinkAction, CommentAction, BanAction, MuteAction) for action in kind
}


def action_of(word: str) -> ModActionType | None:
    """The moderation action of this name, in any case; None for one that no version records."""
    return _ACTIONS.get(word.lower())


def prefix_of(action: ModActionType) -> str:
    """How the id of what such an action is about begins."""
    if isinstance(action, LinkAction):
        return "t3_"
    return "t1_" if isinstance(action, CommentAction) else "t2_"


class Audit(msgspec.Struct, frozen=True, rename={"thing_id": "thingId", "created_at": "createdAt"}):
    """v1: the data used to construct an extract. Its `thingId` tells it from every later shape."""

    type: Literal[
        "removelink",
        "spamlink",
        "approvelink",
        "removecomment",
        "spamcomment",
        "approvecomment",
        "banuser",
        "unbanuser",
        "muteuser",
        "unmuteuser",
    ]
    actor: str
    """The name of the moderator."""
    thing_id: ThingId
    permalink: str
    """Empty for actions on users."""
    created_at: Annotated[datetime, EpochMs]

    @property
    def action(self) -> ModActionType:
        return _ACTIONS[self.type]


class LinkExtract(msgspec.Struct, frozen=True):
    """v1.1: an action on a post."""

    type: LinkAction
    actor: UserId
    target: UserId
    link: PostId


class CommentExtract(msgspec.Struct, frozen=True):
    """v1.1: an action on a comment."""

    type: CommentAction
    actor: UserId
    target: UserId
    comment: CommentId


class BanExtract(msgspec.Struct, frozen=True):
    """v1.1: a ban or its end. Some writers add an empty `length`, which is ignored."""

    type: BanAction
    actor: UserId
    target: UserId


class MuteExtract(msgspec.Struct, frozen=True):
    """v1.1: a mute or its end. Some writers add an empty `length`, which is ignored."""

    type: MuteAction
    actor: UserId
    target: UserId


AnyExtract = LinkExtract | CommentExtract | BanExtract | MuteExtract


def extract_of(action: ModActionType, actor: str, target: str, thing: str) -> AnyExtract:
    """The extract of an action on a thing; of a ban or mute the thing is the person."""
    if isinstance(action, LinkAction):
        return LinkExtract(action, actor, target, thing)
    if isinstance(action, CommentAction):
        return CommentExtract(action, actor, target, thing)
    if isinstance(action, BanAction):
        return BanExtract(action, actor, thing)
    return MuteExtract(action, actor, thing)


def thing_of(extract: AnyExtract) -> str:
    """What was moderated: the post, the comment, or the person."""
    if isinstance(extract, LinkExtract):
        return extract.link
    return extract.comment if isinstance(extract, CommentExtract) else extract.target


class CachedComment(msgspec.Struct, frozen=True):
    """`author` is not in the document, but every version writes it and v1.1 needs it."""

    type: Literal["comment"]
    body: str
    permalink: str
    author: UserId | None = None


class CachedPost(msgspec.Struct, frozen=True, kw_only=True):
    """`author` is not in the document, but every version writes it and v1.1 needs it."""

    type: Literal["post"]
    title: str
    url: str
    body: str | None = None
    permalink: str
    author: UserId | None = None


class CachedUser(msgspec.Struct, frozen=True, rename={"is_admin": "isAdmin", "is_app": "isApp"}):
    """`isApp` is read, and written for an app: the document says that upstream never does."""

    type: Literal["user"]
    username: str
    is_admin: Annotated[bool, Flag("admin")] = False
    is_app: Annotated[bool, Flag("app")] = False


AnyCached = CachedComment | CachedPost | CachedUser
