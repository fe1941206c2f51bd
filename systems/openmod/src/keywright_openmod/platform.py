"""The seam to Reddit: what the model asks of the platform, and the shapes of its answers.

Every answer is certain. None says that something does not exist (any more); whoever implements the
protocol raises PlatformTroubleError for anything else that kept it from answering, a rate limit as much
as an outage, because what is taken for deleted is purged and does not come back.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec

__all__ = ["Account", "Comment", "Platform", "Post", "Thing"]


class Account(msgspec.Struct, frozen=True):
    """A person, or an app, that has an account and is not suspended."""

    id: str
    name: str
    is_admin: bool = False
    is_app: bool = False


class Post(msgspec.Struct, frozen=True, kw_only=True):
    """A link or text post that its author has not deleted. Removed by a moderator it is still one."""

    id: str
    author: str | None
    """The t2 of its author; None once that account is gone."""
    title: str
    url: str
    body: str | None = None
    permalink: str
    created_at: datetime


class Comment(msgspec.Struct, frozen=True, kw_only=True):
    """A comment that its author has not deleted. Removed by a moderator it is still one."""

    id: str
    author: str | None
    """The t2 of its author; None once that account is gone."""
    body: str
    permalink: str
    created_at: datetime


Thing = Post | Comment


class Platform(Protocol):
    """What Reddit must answer. PlatformTroubleError: nothing is known, ask again later."""

    async def me(self) -> Account:
        """The account that this program acts as; also the proof that the platform answers at all."""
        ...

    async def account(self, user: str) -> Account | None:
        """The account with this t2; None when there is none, it was deleted, or it is suspended."""
        ...

    async def account_named(self, name: str) -> Account | None:
        """The account with this name, in any case; None as for `account`."""
        ...

    async def thing(self, thing: str) -> Thing | None:
        """The post (t3) or comment (t1); None when there is none or its author deleted it."""
        ...

    async def find_submission(self, subreddit: str, marker: str) -> str | None:
        """The t3 of a post that this program submitted to a subreddit with the marker in its body.

        Must see every post that `submit` made before, or fail: it is what keeps a post from being
        made twice. The newest posts of the own account are enough; a search index is not.
        """
        ...

    async def submit(self, subreddit: str, title: str, body: str) -> str:
        """Make a text post and return its t3. After an error it may have been made all the same."""
        ...

    async def edit(self, post: str, body: str) -> bool:
        """Replace the body of an own post; False when that post is gone."""
        ...
