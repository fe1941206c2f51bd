"""Reddit as the Platform of the model.

Purged data cannot be restored, so a deletion needs proof. Every request about ids includes the id of
something that certainly exists: an id counts as deleted only if the reply has that one and lacks the other.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from asyncpraw import models
from asyncprawcore.exceptions import Forbidden, NotFound, Redirect

from keywright_openmod.platform import Account, Comment, Post, Thing
from keywright_openmod.service.batcher import LookupBatcher
from keywright_openmod.service.connection import REDDIT, RedditConnection
from keywright_service.errors import PlatformRefusedError, PlatformTroubleError

__all__ = ["RedditPlatform", "utc_time"]

DELETED = "[deleted]"
MOST_IDS = 99
"""Ids in one request, besides the one that proves the reply."""
PAGE = 100
LOOKS_BACK = timedelta(days=2)
"""The age of own posts that are searched; an interrupted submission is retried far sooner."""

_possible_name = re.compile(r"[A-Za-z0-9_-]{1,30}").fullmatch


class RedditPlatform:
    """Gives certain answers, or raises. Watches one subreddit."""

    def __init__(self, connection: RedditConnection, subreddit: str) -> None:
        self._connection = connection
        self._reddit = connection.reddit
        self.subreddit = subreddit
        self._me: Account | None = None
        self._proof: str | None = None
        self._names = LookupBatcher(self._request_names, batch_size=MOST_IDS)
        self._things = LookupBatcher(self._request_things, batch_size=MOST_IDS)
        self._own_posts: dict[str, tuple[str, str]] = {}
        self._own_posts_lock = asyncio.Lock()

    async def me(self) -> Account:
        async with self._connection.asking("who we are"):
            found: Any = await self._reddit.user.me(use_cache=False)
            self._me = Account(f"t2_{found.id}", found.name, is_app=True)
            return self._me

    async def check_subreddit(self, name: str, setting: str) -> None:
        """Raise PlatformRefusedError, which names the setting, if a subreddit does not exist."""
        async with self._connection.asking(f"r/{name}"):
            try:
                await self._reddit.subreddit(name, fetch=True)
            except (NotFound, Redirect) as error:  # Reddit redirects to a search
                raise PlatformRefusedError(
                    REDDIT, f"r/{name}", "this subreddit does not exist", f"Correct {setting}."
                ) from error

    async def account(self, user: str) -> Account | None:
        name = await self._names.get(user)
        return None if name is None else await self.account_named(name)

    async def account_named(self, name: str) -> Account | None:
        if not _possible_name(name):
            return None
        async with self._connection.asking(f"u/{name}"):
            try:
                found: Any = await self._reddit.redditor(name, fetch=True)
            except NotFound:
                await self._prove_that_accounts_are_found(name)
                return None
            if getattr(found, "is_suspended", False):
                return None
            return Account(f"t2_{found.id}", found.name, is_admin=bool(getattr(found, "is_employee", False)))

    async def thing(self, thing: str) -> Thing | None:
        return await self._things.get(thing)

    async def things(self, names: list[str]) -> dict[str, Thing | None]:
        """Return several things, a hundred in a request."""
        found = await asyncio.gather(*(self.thing(name) for name in names))
        return dict(zip(names, found, strict=True))

    async def find_submission(self, subreddit: str, marker: str) -> str | None:
        async with self._own_posts_lock, self._connection.asking("our own posts"):
            await self._read_own_posts()
        wanted = subreddit.lower()
        posts = self._own_posts.items()
        matches = (post for post, (where, body) in posts if where == wanted and marker in body)
        return next(matches, None)

    async def _read_own_posts(self) -> None:
        """Read the newest own posts: at least a page, and on until a known post or one that is too old."""
        oldest = datetime.now(UTC) - LOOKS_BACK
        own: Any = await self._reddit.redditor(await self._own_name())
        reached, number = False, 0
        async for post in own.submissions.new(limit=None):
            found: Any = post
            reached = reached or found.fullname in self._own_posts or utc_time(found.created_utc) < oldest
            self._own_posts[found.fullname] = (str(found.subreddit).lower(), str(found.selftext))
            number += 1
            if number % PAGE == 0 and reached:
                break
        while len(self._own_posts) > 20 * PAGE:
            self._own_posts.pop(next(iter(self._own_posts)))

    async def submit(self, subreddit: str, title: str, body: str) -> str:
        async with self._connection.asking(f"a post in r/{subreddit}"):
            target = await self._reddit.subreddit(subreddit)
            made: Any = await target.submit(title, selftext=body, send_replies=False)
            return f"t3_{made.id}"

    async def edit(self, post: str, body: str) -> bool:
        async with self._connection.asking(f"an edit of {post}"):
            own: Any = await self._reddit.submission(post.removeprefix("t3_"), fetch=False)
            try:
                await own.edit(body)
            except (Forbidden, NotFound) as error:
                if await self.thing(post) is None:
                    return False
                raise PlatformRefusedError(
                    REDDIT, f"an edit of {post}", str(error), "Check that this account made the post."
                ) from error
            return True

    async def _own_name(self) -> str:
        return (self._me or await self.me()).name

    async def _prove_that_accounts_are_found(self, name: str) -> None:
        try:
            await self._reddit.redditor(await self._own_name(), fetch=True)
        except NotFound as error:
            raise PlatformTroubleError(
                REDDIT, f"u/{name}", "Reddit does not find the account of this program either"
            ) from error

    async def _request_names(self, users: list[str]) -> Mapping[str, str]:
        own = (self._me or await self.me()).id
        async with self._connection.asking(f"{len(users)} accounts"):
            asked = self._reddit.redditors.partial_redditors([*users, own])
            found = {each.fullname: str(each.name) async for each in asked}
        if own not in found:
            raise PlatformTroubleError(
                REDDIT, f"{len(users)} accounts", "the reply lacks the account of this program"
            )
        return found

    async def _request_things(self, things: list[str]) -> Mapping[str, Thing]:
        proof = await self._known_subreddit()
        async with self._connection.asking(f"{len(things)} submissions"):
            asked = self._reddit.info(fullnames=[*things, proof])
            found: dict[str, Any] = {each.fullname: each async for each in asked}
            if proof not in found:
                raise PlatformTroubleError(
                    REDDIT, f"{len(things)} submissions", "the reply lacks the subreddit"
                )
            read = {name: _to_thing(found[name]) for name in things if name in found}
        return {name: thing for name, thing in read.items() if thing is not None}

    async def _known_subreddit(self) -> str:
        if self._proof is None:
            async with self._connection.asking(f"r/{self.subreddit}"):
                found: Any = await self._reddit.subreddit(self.subreddit, fetch=True)
                self._proof = str(found.fullname)
        return self._proof


def _to_thing(found: Any) -> Thing | None:
    """Return the post or comment of an asyncpraw object, or None if its author deleted it."""
    author = getattr(found, "author_fullname", None)
    created = utc_time(found.created_utc)
    if isinstance(found, models.Submission):
        # The posts of a deleted account stay, and lack an author too.
        removed_by = getattr(found, "removed_by_category", None)
        if author is None and (found.selftext == DELETED or removed_by == "deleted"):
            return None
        return Post(
            id=found.fullname,
            author=author,
            title=found.title,
            url=found.url,
            body=found.selftext or None,
            permalink=found.permalink,
            created_at=created,
        )
    if author is None and found.body == DELETED:
        return None
    return Comment(
        id=found.fullname, author=author, body=found.body, permalink=found.permalink, created_at=created
    )


def utc_time(seconds: float) -> datetime:
    """Return the time of seconds since the epoch."""
    return datetime.fromtimestamp(seconds, UTC)
