"""The renderer of public extracts: a title, and a body in Markdown.

Text by users is shown literally: every character with a meaning in Markdown is escaped, so a mention notifies
nobody and a link is only text. Data that must not be shown for an update reason is omitted here, whatever
the caller passes.
"""

from __future__ import annotations

import enum
import re

import msgspec

from keywright_openmod.accounts import DELETED, is_special
from keywright_openmod.actions import BanAction, CommentAction, LinkAction, ModActionType, MuteAction
from keywright_openmod.platform import Account
from keywright_openmod.schema import CachedComment, CachedPost

__all__ = [
    "Disclosure",
    "ExtractUpdateReason",
    "as_text",
    "phrase_of",
    "render_body",
    "render_title",
    "without_invisible",
]

SITE = "https://reddit.com"
LONGEST_TITLE = 300
LONGEST_CONTENT = 10_000
"""Characters of content. Escaping at most doubles them, and a body may have 40,000."""
MOST_LINES = 1_000
"""Lines of content. Each costs five more characters."""


class ExtractUpdateReason(enum.StrEnum):
    """Why an extract is rendered."""

    NEW = "new"
    UPDATED = "updated"
    CONTENT_DELETED = "content-deleted"
    USER_DELETED = "user-deleted"
    MODERATOR_DELETED = "moderator-deleted"


_PAST_SIMPLE: dict[ModActionType, str] = {
    LinkAction.REMOVE_LINK: "removed a post from",
    LinkAction.SPAM_LINK: "marked a post as spam in",
    LinkAction.APPROVE_LINK: "approved a post in",
    CommentAction.REMOVE_COMMENT: "removed a comment from",
    CommentAction.SPAM_COMMENT: "marked a comment as spam in",
    CommentAction.APPROVE_COMMENT: "approved a comment in",
    BanAction.BAN_USER: "banned a user from",
    BanAction.UNBAN_USER: "unbanned a user from",
    MuteAction.MUTE_USER: "muted a user in",
    MuteAction.UNMUTE_USER: "unmuted a user in",
}

_NOTICES = {
    ExtractUpdateReason.UPDATED: "The submission was updated after this extract was made.",
    ExtractUpdateReason.CONTENT_DELETED: (
        "The author deleted this submission. Identifying data was removed from this extract."
    ),
    ExtractUpdateReason.USER_DELETED: (
        "This user deleted their account or was suspended. Identifying data was removed."
    ),
    ExtractUpdateReason.MODERATOR_DELETED: (
        "The moderator deleted their account or was suspended. Their name was removed."
    ),
}


class Disclosure(msgspec.Struct, frozen=True, kw_only=True):
    """The content of an extract: the action, the moderator, and the submission or user concerned."""

    action: ModActionType
    moderator: Account
    author: Account
    """The author, or the user who was banned or muted."""
    content: CachedPost | CachedComment | None = None


def phrase_of(action: ModActionType) -> str:
    """Return what a moderator did, before the name of the subreddit, as in `removed a post from`."""
    return _PAST_SIMPLE[action]


def render_title(action: ModActionType, moderator: Account, subreddit: str) -> str:
    """Return the title. Reddit cannot change it later, so it names nobody but the moderator."""
    name = moderator.name if is_special(moderator.id) else f"u/{moderator.name}"
    return f"{name} {phrase_of(action)} r/{subreddit}"[:LONGEST_TITLE]


def render_body(
    disclosure: Disclosure | None, reason: ExtractUpdateReason, *, marker: str | None = None
) -> str:
    """Return the body. Without a disclosure it has only the notice of the reason.

    If the content was deleted, content and author are omitted; if the account was, the author and the link.
    The marker identifies the post if its submission is interrupted.
    """
    parts = [f"**{_NOTICES[reason]}**"] if reason in _NOTICES else []
    if disclosure is not None:
        parts += _facts(disclosure, reason)
    if marker is not None:
        parts.append(f"Reference: `{marker}`")
    return "\n\n".join(parts)


def _facts(disclosure: Disclosure, reason: ExtractUpdateReason) -> list[str]:
    gone = reason in (ExtractUpdateReason.CONTENT_DELETED, ExtractUpdateReason.USER_DELETED)
    content = None if reason is ExtractUpdateReason.CONTENT_DELETED else disclosure.content
    role = "User" if isinstance(disclosure.action, BanAction | MuteAction) else "Author"
    facts = [
        f"* Action: `{disclosure.action.value}`",
        f"* Moderator: {_person(disclosure.moderator)}",
        f"* {role}: {_person(DELETED if gone else disclosure.author)}",
    ]
    if content is not None and not gone:
        facts.append(f"* Link: {_address(content.permalink)}")
    return ["\n".join(facts), *(_quoted(content) if content is not None else [])]


def _person(account: Account) -> str:
    """Return a name that notifies nobody: Reddit treats `u/name` as a mention, but not a link."""
    admin = " (Admin)" if account.is_admin else ""
    if is_special(account.id):
        return as_text(account.name) + admin
    return f"[{as_text(account.name)}]({SITE}/user/{_in_address(account.name)}){admin}"


def _address(permalink: str) -> str:
    path = permalink.removeprefix("https://www.reddit.com").removeprefix(SITE)
    path = f"/{path.removeprefix('/')}"
    return f"[{as_text(path)}]({SITE}{_in_address(path)})"


def _in_address(path: str) -> str:
    return re.sub(r"[^A-Za-z0-9/_.~-]", lambda found: "".join(f"%{b:02X}" for b in found[0].encode()), path)


def _quoted(content: CachedPost | CachedComment) -> list[str]:
    if isinstance(content, CachedComment):
        parts = [content.body]
    else:
        link = [] if content.permalink in content.url else [content.url]
        parts = [content.title, *link, content.body or ""]
    return [f"> {quoted}" for quoted in map(_lines, parts) if quoted]


def _lines(text: str) -> str:
    whole = text.strip()
    lines = whole[:LONGEST_CONTENT].splitlines()
    shown = [_line(line) for line in lines[:MOST_LINES]]
    more = "…" if len(whole) > LONGEST_CONTENT or len(lines) > MOST_LINES else ""
    # Two spaces keep the line break; a blank line in a quotation is a lone `>`.
    return "  \n> ".join(shown) + more


def _line(line: str) -> str:
    indented = "\u00a0" * (len(line) - len(line.lstrip())) + as_text(line.strip())
    # A line of `=` makes a heading of the line before. Not every Markdown can escape this sign.
    return re.sub(r"^=(?==*$)", "&#61;", indented)


_ESCAPED = re.compile(r"([\\`*_{}\[\]()#+\-.!|&<>/^~:@])")
# Control characters, marks and overrides of the writing direction, zero widths, tags, and what XML refuses.
_UNSEEN = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    r"\U000e0000-\U000e0fff]"
)


def without_invisible(text: str) -> str:
    """Return a text without characters that nobody sees; line breaks stay."""
    return _UNSEEN.sub("", text)


def as_text(text: str) -> str:
    """Return a line of Markdown that shows exactly this text, without invisible characters."""
    return _ESCAPED.sub(r"\\\1", without_invisible(text).replace("\n", ""))
