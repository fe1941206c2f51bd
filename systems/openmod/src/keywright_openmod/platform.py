"""The interface to Reddit: the questions that the model asks, and the types of the answers.

Every answer is certain. None means that something does not exist, or does not exist any more. An
implementation raises PlatformTroubleError for everything else that kept it from answering, a rate limit as
well as an outage, because data that counts as deleted is purged and cannot be restored.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec

__all__ = ["Account", "Comment", "Platform", "Post", "Thing", "base36"]

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def base36(number: int) -> str:
    """Return a positive number in the digits of Reddit's ids."""
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits


class Account(msgspec.Struct, frozen=True):
    """An existing account of a person or an app that is not suspended."""

    id: str
    name: str
    is_admin: bool = False
    is_app: bool = False


class Post(msgspec.Struct, frozen=True, kw_only=True):
    """A link or text post that its author has not deleted. A moderator may have removed it."""

    id: str
    author: str | None
    """The t2 of its author; None if that account was deleted."""
    title: str
    url: str
    body: str | None = None
    permalink: str
    created_at: datetime


class Comment(msgspec.Struct, frozen=True, kw_only=True):
    """A comment that its author has not deleted. A moderator may have removed it."""

    id: str
    author: str | None
    """The t2 of its author; None if that account was deleted."""
    body: str
    permalink: str
    created_at: datetime


Thing = Post | Comment


class Platform(Protocol):
    """The calls to Reddit. PlatformTroubleError means that nothing is known: retry later."""

    async def me(self) -> Account:
        """Return the account that this program acts as. Also proves that the platform answers."""
        ...

    async def account(self, user: str) -> Account | None:
        """Return the account with this t2, or None if it does not exist, was deleted or is suspended."""
        ...

    async def account_named(self, name: str) -> Account | None:
        """Return the account with this name, in any case; None as for `account`."""
        ...

    async def thing(self, thing: str) -> Thing | None:
        """Return the post (t3) or comment (t1), or None if it does not exist or its author deleted it."""
        ...

    async def find_submission(self, subreddit: str, marker: str) -> str | None:
        """Return the t3 of the post in a subreddit that this program submitted with the marker in its body.

        Must see every post that `submit` made before, or fail: it prevents duplicate posts. The newest
        posts of the own account are sufficient; a search index is not.
        """
        ...

    async def submit(self, subreddit: str, title: str, body: str) -> str:
        """Make a text post and return its t3. After an error the post may exist all the same."""
        ...

    async def edit(self, post: str, body: str) -> bool:
        """Replace the body of an own post. Return False if the post no longer exists."""
        ...
