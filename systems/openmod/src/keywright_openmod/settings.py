"""The settings of an installation: where extracts are published, and which actions are recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from keywright.errors import UsageError
from keywright_openmod.accounts import special_named
from keywright_openmod.actions import (
    ACTIONS,
    BanAction,
    CommentAction,
    LinkAction,
    ModActionType,
    MuteAction,
    action_of,
)
from keywright_openmod.events import ModAction
from keywright_openmod.platform import Account

__all__ = ["OpenModSettings", "subreddit_name"]

DEFAULT_ACTIONS: frozenset[ModActionType] = frozenset(
    {
        LinkAction.REMOVE_LINK,
        LinkAction.SPAM_LINK,
        CommentAction.REMOVE_COMMENT,
        CommentAction.SPAM_COMMENT,
        BanAction.BAN_USER,
        MuteAction.MUTE_USER,
    }
)
AUTO_MODERATOR = "automoderator"

# Selectable in some version of Open Mod, but extracts of v1.1 cannot hold them.
_NOT_RECORDED = frozenset(
    {
        "lock",
        "unlock",
        "addmoderator",
        "invitemoderator",
        "acceptmoderatorinvite",
        "removemoderator",
        "addcontributor",
        "removecontributor",
    }
)
_NAME = re.compile(r"[A-Za-z0-9_-]{3,20}").fullmatch
_SUBREDDIT = re.compile(r"(?:r/)?([A-Za-z0-9_]{2,24})").fullmatch


class OpenModSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one installation. Names are stored in lower case, as Reddit ignores their case."""

    target_subreddit: str
    record_admin_actions: bool = True
    record_auto_moderator_actions: bool = False
    moderation_actions: frozenset[ModActionType] = DEFAULT_ACTIONS
    excluded_moderators: frozenset[str] = frozenset()
    excluded_users: frozenset[str] = frozenset()

    @classmethod
    def read(cls, stored: Mapping[str, object]) -> OpenModSettings:
        """Return the settings stored under the names that installations use. Missing ones have defaults.

        Raise UsageError if one is invalid.
        """
        return cls(
            target_subreddit=subreddit_name(
                "targetSubredit", stored.get("targetSubredit") or stored.get("targetSubreddit")
            ),
            record_admin_actions=_choice(stored, "recordAdminActions", default=True),
            record_auto_moderator_actions=_choice(stored, "recordAutoModeratorActions", default=False),
            moderation_actions=_actions(stored.get("moderationActions")),
            excluded_moderators=_names("excludedModerators", stored.get("excludedModerators")),
            excluded_users=_names("excludedUsers", stored.get("excludedUsers")),
        )

    def leaves_out(self, event: ModAction) -> str | None:
        """Return why an action is not recorded, as far as the event shows, or None if it is."""
        target = event.target_user.name.lower()
        if event.known is None:
            return f"{event.action} cannot be recorded"
        if event.known not in self.moderation_actions:
            return f"{event.action} is not selected"
        special = special_named(event.moderator.name)
        excluded = self.leaves_out_actor(special or Account(event.moderator.id, event.moderator.name))
        if excluded is not None:
            return excluded
        if target in self.excluded_users:
            return "this user is excluded"
        if target == f"{event.subreddit.name.lower()}-modteam":
            return "actions on the moderation team are not recorded"
        return None

    def leaves_out_actor(self, moderator: Account) -> str | None:
        """Return why the actions of a moderator are not recorded, or None if they are."""
        name = moderator.name.lower()
        if not self.record_admin_actions and moderator.is_admin:
            return "actions of admins are not recorded"
        if not self.record_auto_moderator_actions and name == AUTO_MODERATOR:
            return "actions of AutoModerator are not recorded"
        return "this moderator is excluded" if name in self.excluded_moderators else None

    def excludes(self, moderator: str, user: str) -> bool:
        """Return whether one of these people is on a list of people not to be named."""
        return moderator.lower() in self.excluded_moderators or user.lower() in self.excluded_users


def subreddit_name(setting: str, stored: object) -> str:
    """Return the name of a subreddit without `r/`. Raise UsageError if it is invalid."""
    match = _SUBREDDIT(stored.strip()) if isinstance(stored, str) else None
    if match is None:
        raise UsageError(f"{setting} must be the name of a subreddit, as in 'mysub', got {stored!r}.")
    return match[1]


def _choice(stored: Mapping[str, object], name: str, *, default: bool) -> bool:
    found = stored.get(name)
    if found is None:
        return default
    if not isinstance(found, bool):
        raise UsageError(f"{name} must be true or false, got {found!r}.")
    return found


def _actions(stored: object) -> frozenset[ModActionType]:
    if stored is None:
        return DEFAULT_ACTIONS
    words = stored if isinstance(stored, Iterable) and not isinstance(stored, str | bytes) else [stored]
    chosen = [_action(word) for word in words]
    if not chosen:
        raise UsageError("moderationActions is empty, so nothing would be recorded. Select an action.")
    return frozenset(action for action in chosen if action is not None)


def _action(word: object) -> ModActionType | None:
    """Ignore the case: upstream spells one option `approveComment` (docs/resolutions.md#mistake-8)."""
    action = action_of(word) if isinstance(word, str) else None
    if action is None and not (isinstance(word, str) and word.lower() in _NOT_RECORDED):
        names = ", ".join(ACTIONS)
        raise UsageError(f"moderationActions must be moderation actions ({names}), got {word!r}.")
    return action


def _names(setting: str, stored: object) -> frozenset[str]:
    if stored is None:
        return frozenset()
    if not isinstance(stored, str):
        raise UsageError(f"{setting} must be a comma-separated list of names, got {stored!r}.")
    names = [name.strip() for name in stored.split(",") if name.strip()]
    for name in names:
        if not _NAME(name):
            raise UsageError(
                f"{setting} must be names of accounts, of 3 to 20 letters, digits, _ and -, got {name!r}."
            )
    return frozenset(name.lower() for name in names)
