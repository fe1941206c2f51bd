"""The moderation actions that an extract can hold: `ModActionType` of the document, split by target."""

from __future__ import annotations

import enum

__all__ = [
    "ACTIONS",
    "BanAction",
    "CommentAction",
    "LinkAction",
    "ModActionType",
    "MuteAction",
    "action_of",
    "prefix_of",
]


class LinkAction(enum.StrEnum):
    """The actions on posts."""

    REMOVE_LINK = "removelink"
    SPAM_LINK = "spamlink"
    APPROVE_LINK = "approvelink"


class CommentAction(enum.StrEnum):
    """The actions on comments."""

    REMOVE_COMMENT = "removecomment"
    SPAM_COMMENT = "spamcomment"
    APPROVE_COMMENT = "approvecomment"


class BanAction(enum.StrEnum):
    """Bans and unbans."""

    BAN_USER = "banuser"
    UNBAN_USER = "unbanuser"


class MuteAction(enum.StrEnum):
    """Mutes and unmutes."""

    MUTE_USER = "muteuser"
    UNMUTE_USER = "unmuteuser"


ModActionType = LinkAction | CommentAction | BanAction | MuteAction

ACTIONS: dict[str, ModActionType] = {
    action.value: action for kind in (LinkAction, CommentAction, BanAction, MuteAction) for action in kind
}


def action_of(name: str) -> ModActionType | None:
    """Return the moderation action of this name, in any case, or None if extracts do not record it."""
    return ACTIONS.get(name.lower())


def prefix_of(action: ModActionType) -> str:
    """Return the prefix of the ids that this action applies to."""
    if isinstance(action, LinkAction):
        return "t3_"
    return "t1_" if isinstance(action, CommentAction) else "t2_"
