"""Actions of the public log as pages, JSON and feed have them.

Text by users is text: without invisible characters, cut to a length, escaped where it is rendered. Links to
Reddit are made of ids; no address that somebody wrote becomes a link.
"""

from __future__ import annotations

import re
from datetime import datetime

import msgspec

from keywright_openmod.accounts import is_nobody, is_special
from keywright_openmod.actions import (
    ACTIONS,
    BanAction,
    CommentAction,
    LinkAction,
    ModActionType,
    MuteAction,
)
from keywright_openmod.platform import Account
from keywright_openmod.public_log import LoggedAction
from keywright_openmod.renderer import phrase_of, without_invisible
from keywright_openmod.schema import CachedComment
from keywright_openmod.service.local_platform import LOCAL
from keywright_openmod.service.log_filters import LONGEST_NAME

__all__ = ["LABELS", "LONGEST_TEXT", "ActionList", "ShownAction", "ShownPerson", "ShownText", "shown"]

SITE = "https://www.reddit.com"
LONGEST_EXCERPT = 280
LONGEST_TEXT = 10_000

LABELS: dict[ModActionType, tuple[str, str]] = {
    LinkAction.REMOVE_LINK: ("Post removed", "removal"),
    LinkAction.SPAM_LINK: ("Post marked as spam", "spam"),
    LinkAction.APPROVE_LINK: ("Post approved", "approval"),
    CommentAction.REMOVE_COMMENT: ("Comment removed", "removal"),
    CommentAction.SPAM_COMMENT: ("Comment marked as spam", "spam"),
    CommentAction.APPROVE_COMMENT: ("Comment approved", "approval"),
    BanAction.BAN_USER: ("User banned", "ban"),
    BanAction.UNBAN_USER: ("User unbanned", "approval"),
    MuteAction.MUTE_USER: ("User muted", "ban"),
    MuteAction.UNMUTE_USER: ("User unmuted", "approval"),
}

_is_id = re.compile(r"t[123]_[0-9a-z]{1,32}").fullmatch
_is_name = re.compile(r"[A-Za-z0-9_-]{2,24}").fullmatch


class ShownPerson(msgspec.Struct, frozen=True, omit_defaults=True):
    """A person in an answer."""

    name: str
    admin: bool = False
    search: str = ""
    """The value of a filter that finds them; empty for an account that is not known."""


class ShownText(msgspec.Struct, frozen=True, omit_defaults=True):
    """The recorded text of a submission, cut to a length."""

    title: str | None = None
    url: str | None = None
    body: str | None = None


class ShownAction(msgspec.Struct, frozen=True, omit_defaults=True):
    """An action in an answer: text is harmless, links are ours or lead to Reddit."""

    id: str
    link: str
    at: datetime
    subreddit: str
    action: str
    moderator: ShownPerson
    user: ShownPerson
    thing: str
    text: ShownText | None = None
    """The cached copy of the submission, while there is one."""
    thing_link: str | None = None
    extract_link: str | None = None

    @property
    def known(self) -> ModActionType:
        return ACTIONS[self.action]

    @property
    def label(self) -> str:
        return LABELS[self.known][0]

    @property
    def tone(self) -> str:
        return LABELS[self.known][1]

    @property
    def phrase(self) -> str:
        return phrase_of(self.known)

    @property
    def about_person(self) -> bool:
        return isinstance(self.known, BanAction | MuteAction)


class ActionList(msgspec.Struct, frozen=True):
    """A page of the log as JSON."""

    actions: list[ShownAction]
    next: str | None


def shown(action: LoggedAction, longest: int = LONGEST_EXCERPT) -> ShownAction:
    """Return an action as answers have it."""
    entry = action.entry
    return ShownAction(
        id=action.post,
        link=f"/entry/{action.post}",
        at=entry.at,
        subreddit=_cut(entry.subreddit, LONGEST_EXCERPT),
        action=entry.type,
        moderator=_person(action.moderator),
        user=_person(action.user),
        thing=entry.thing,
        text=_text(action, longest),
        thing_link=_link_to(action),
        # A post of a run without Reddit is in Redis only.
        extract_link=None if action.post.startswith(LOCAL) else _post_link(action.post),
    )


def _person(account: Account) -> ShownPerson:
    name = _cut(account.name, LONGEST_EXCERPT)
    if is_nobody(account.id) or len(account.name) > LONGEST_NAME:
        return ShownPerson(name, account.is_admin)
    return ShownPerson(name, account.is_admin, account.id if is_special(account.id) else account.name)


def _text(action: LoggedAction, longest: int) -> ShownText | None:
    content = action.content
    if content is None:
        return None
    body = _cut(content.body or "", longest) or None
    if isinstance(content, CachedComment):
        return ShownText(body=body)
    own = _is_own(content.url, action.entry.thing)
    return ShownText(_cut(content.title, longest), None if own else _cut(content.url, longest), body)


def _is_own(url: str, thing: str) -> bool:
    """Return whether a post links to itself, as a post of text does."""
    return f"/comments/{thing.removeprefix('t3_')}" in url


def _cut(text: str, longest: int) -> str:
    # Cut before anything else is done with it: it may be long.
    visible = without_invisible(text[: longest + 1].strip())
    return visible if len(text) <= longest else f"{visible[:longest]}…"


def _link_to(action: LoggedAction) -> str | None:
    """Return the address of what was moderated, made of ids."""
    entry = action.entry
    if entry.thing.startswith("t3_"):
        return _post_link(entry.thing)
    if entry.thing.startswith("t1_"):
        above = None if entry.parent is None else _post_link(entry.parent)
        return None if above is None or not _is_id(entry.thing) else f"{above}_/{entry.thing[3:]}/"
    return f"{SITE}/user/{action.user.name}/" if _is_name(action.user.name) else None


def _post_link(post: str) -> str | None:
    return f"{SITE}/comments/{post[3:]}/" if _is_id(post) else None
