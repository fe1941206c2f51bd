"""Reddit as the model's Platform.

What is purged does not come back, so "it is gone" needs proof. Every question about ids carries the id of
something that is known to be there: only a reply that has that one, and lacks the other, counts.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from asyncpraw import models
from asyncprawcore.exceptions import Forbidden, NotFound

from keywright_openmod.platform import Account, Comment, Post, Thing
from keywright_openmod.service.batcher import Together
from keywright_openmod.service.connection import REDDIT, RedditConnection
from keywright_service.errors import PlatformRefusedError, PlatformTroubleError

__all__ = ["RedditPlatform", "moment", "thing_of"]

DELETED = "[deleted]"
MOST_IDS = 99
"""In one request, beside the one that proves the reply."""
PAGE = 100
LOOKS_BACK = timedelta(days=2)
"""How old an own post may be that an interrupted submission left; a restart goes on far sooner."""

_possible_name = re.compile(r"[A-Za-z0-9_-]{1,30}").fullmatch


class RedditPlatform:
    """Answers with certainty or not at all; watches one subreddit."""

    def __init__(self, connection: RedditConnection, subreddit: str) -> None:
        self._connection = connection
        self._reddit = connection.reddit
        self._subreddit = subreddit
        self._me: Account | None = None
        self._proof: str | None = None
        self._names = Together(self._ask_names, most=MOST_IDS)
        self._things = Together(self._ask_things, most=MOST_IDS)
        self._own = _OwnPosts(self)

    async def me(self) -> Account:
        async with self._connection.asking("who we are"):
            found: Any = await self._reddit.user.me(use_cache=False)
            self._me = Account(f"t2_{found.id}", found.name, is_app=True)
            return self._me

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
        """Several things, a hundred to a request."""
        found = await asyncio.gather(*(self.thing(name) for name in names))
        return dict(zip(names, found, strict=True))

    async def find_submission(self, subreddit: str, marker: str) -> str | None:
        return await self._own.find(subreddit, marker)

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
                    REDDIT, f"an edit of {post}", str(error), "See whether this account made the post."
                ) from error
            return True

    async def own_name(self) -> str:
        return (self._me or await self.me()).name

    async def newest_own(self) -> models.ListingGenerator:
        own: Any = await self._reddit.redditor(await self.own_name())
        found: models.ListingGenerator = own.submissions.new(limit=None)
        return found

    async def _prove_that_accounts_are_found(self, name: str) -> None:
        try:
            await self._reddit.redditor(await self.own_name(), fetch=True)
        except NotFound as error:
            raise PlatformTroubleError(
                REDDIT, f"u/{name}", "it does not find this program's own account either"
            ) from error

    async def _ask_names(self, users: list[str]) -> Mapping[str, str]:
        own = (self._me or await self.me()).id
        async with self._connection.asking(f"{len(users)} accounts"):
            asked = self._reddit.redditors.partial_redditors([*users, own])
            found = {each.fullname: str(each.name) async for each in asked}
        if own not in found:
            raise PlatformTroubleError(REDDIT, f"{len(users)} accounts", "the reply lacks our own account")
        return found

    async def _ask_things(self, things: list[str]) -> Mapping[str, Thing]:
        proof = await self._known_subreddit()
        async with self._connection.asking(f"{len(things)} submissions"):
            asked = self._reddit.info(fullnames=[*things, proof])
            found: dict[str, Any] = {each.fullname: each async for each in asked}
            if proof not in found:
                raise PlatformTroubleError(
                    REDDIT, f"{len(things)} submissions", "the reply lacks the subreddit"
                )
            read = {name: thing_of(found[name]) for name in things if name in found}
        return {name: thing for name, thing in read.items() if thing is not None}

    async def _known_subreddit(self) -> str:
        if self._proof is None:
            async with self._connection.asking(f"r/{self._subreddit}"):
                found: Any = await self._reddit.subreddit(self._subreddit, fetch=True)
                self._proof = str(found.fullname)
        return self._proof


class _OwnPosts:
    """The newest posts of the own account, read on from where they are known."""

    def __init__(self, platform: RedditPlatform) -> None:
        self._platform = platform
        self._known: dict[str, tuple[str, str]] = {}
        self._reading = asyncio.Lock()

    async def find(self, subreddit: str, marker: str) -> str | None:
        async with self._reading, self._platform._connection.asking("our own posts"):
            await self._read_on()
        wanted = subreddit.lower()
        matches = (post for post, (where, body) in self._known.items() if where == wanted and marker in body)
        return next(matches, None)

    async def _read_on(self) -> None:
        """A page at least, and on until one has a post that is known, or is too old to matter."""
        oldest = datetime.now(UTC) - LOOKS_BACK
        reached, number = False, 0
        async for post in await self._platform.newest_own():
            found: Any = post
            reached = reached or found.fullname in self._known or moment(found.created_utc) < oldest
            self._known[found.fullname] = (str(found.subreddit).lower(), str(found.selftext))
            number += 1
            if number % PAGE == 0 and reached:
                break
        while len(self._known) > 20 * PAGE:
            self._known.pop(next(iter(self._known)))


def thing_of(found: Any) -> Thing | None:
    """A post or comment as asyncpraw has it; None when its author deleted it."""
    author = getattr(found, "author_fullname", None)
    created = moment(found.created_utc)
    if isinstance(found, models.Submission):
        if author is None and _post_deleted(found):
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


def _post_deleted(post: Any) -> bool:
    """Of a deleted account the posts stay, and look alike but for this."""
    return bool(post.selftext == DELETED or getattr(post, "removed_by_category", None) == "deleted")


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
