"""A Platform without Reddit: answers from events and stored data, and stores the public posts.

It never answers that something was deleted, because it cannot know. It refuses questions about people and
submissions that no event described.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from keywright import AsyncDatabase
from keywright.operations import commit
from keywright_openmod.extracts import account_of
from keywright_openmod.platform import Account, Comment, Post, Thing, base36
from keywright_openmod.schema import CachedComment, CachedPost, CacheHash, TrackingSet
from keywright_openmod.service.schema import LocalMarker, LocalPost, LocalPostCount, PublishedPost
from keywright_service.errors import PlatformRefusedError

__all__ = ["LOCAL", "LocalPlatform"]

HERE = "this machine"
LOCAL = "t3_local"
_LAST_MS = 253_402_300_800_000  # the year 10000
_marker = re.compile(r"openmod-([0-9a-f]{64})")


class LocalPlatform:
    """Call `learn` with an event before it is handled. Posts get local ids, as in `t3_local1`."""

    def __init__(self, db: AsyncDatabase) -> None:
        self._db = db
        self._accounts: dict[str, Account] = {}
        self._things: dict[str, Thing] = {}

    def learn(self, event: Mapping[str, Any]) -> None:
        """Replace the people and submissions of the previous event by those of this one."""
        people = [_object(event, name) for name in ("author", "moderator", "targetUser")]
        known = [Account(_text(each, "id"), _text(each, "name")) for each in people]
        self._accounts = {each.id: each for each in known if each.id}
        author = known[0].id or known[2].id or None
        acted_at = _time(event.get("actionedAt"))
        submissions = [_object(event, name) for name in ("post", "targetPost", "comment", "targetComment")]
        self._things = {
            each["id"]: _thing(each, author, acted_at) for each in submissions if _text(each, "id")
        }

    async def me(self) -> Account:
        return Account("t2_local", "openmod", is_app=True)

    async def account(self, user: str) -> Account | None:
        account = self._accounts.get(user)
        if account is not None and account.name:
            return account
        known = account_of(user, await self._db.run(CacheHash(user).get()))
        if known is None:
            raise _unknown(user, "no event has the name of this account")
        return known

    async def account_named(self, name: str) -> Account | None:
        for account in self._accounts.values():
            if account.name.lower() == name.lower():
                return account
        raise _unknown(f"u/{name}", "the event does not have the id of this account")

    async def thing(self, thing: str) -> Thing | None:
        described = self._things.get(thing)
        if described is not None and (described.title if isinstance(described, Post) else described.body):
            return described
        found = await self._stored(thing) or described
        if found is None:
            raise _unknown(thing, "no event has the content of this submission")
        return found

    async def find_submission(self, subreddit: str, marker: str) -> str | None:
        match = _marker.fullmatch(marker)
        return None if match is None else await self._db.run(LocalMarker(match[1]).get())

    async def submit(self, subreddit: str, title: str, body: str) -> str:
        post = f"{LOCAL}{base36(await self._db.run(LocalPostCount().add()))}"
        # The last marker is that of the model: text by users comes before it.
        marked = [LocalMarker(marker).set(post) for marker in _marker.findall(body)[-1:]]
        kept = LocalPost(post).put(PublishedPost(subreddit, title, body))
        await self._db.run(commit("post", [], [kept, *marked], subject=post))
        return post

    async def edit(self, post: str, body: str) -> bool:
        found = await self._db.run(LocalPost(post).get())
        if found is None:
            return False
        await self._db.run(LocalPost(post).put(PublishedPost(found.subreddit, found.title, body)))
        return True

    async def _stored(self, thing: str) -> Thing | None:
        cached = await self._db.run(CacheHash(thing).get())
        if not isinstance(cached, CachedPost | CachedComment):
            return None
        author = cached.author or None
        tracked = None if author is None else await self._db.run(TrackingSet(author).score(thing))
        created = tracked or self._db.context.now()
        if isinstance(cached, CachedComment):
            return Comment(
                id=thing, author=author, body=cached.body, permalink=cached.permalink, created_at=created
            )
        return Post(
            id=thing,
            author=author,
            title=cached.title,
            url=cached.url,
            body=cached.body,
            permalink=cached.permalink,
            created_at=created,
        )


def _unknown(asked: str, reason: str) -> PlatformRefusedError:
    return PlatformRefusedError(HERE, asked, reason, "Ingest an event that has it before this one.")


def _object(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = event.get(name)
    return found if isinstance(found, Mapping) else {}


def _text(members: Mapping[str, Any], name: str) -> str:
    """Return a member that is text, else an empty text, which the model refuses if it needs it."""
    found = members.get(name)
    return found if isinstance(found, str) else ""


def _thing(members: Mapping[str, Any], author: str | None, at: datetime | None) -> Thing:
    """Return the submission in an event. A comment names its author as `author`, a post as `authorId`."""
    created = _time(members.get("createdAt")) or at or datetime.now(UTC)
    name, permalink = _text(members, "id"), _text(members, "permalink")
    if name.startswith("t1_"):
        own = _text(members, "author")
        return Comment(
            id=name,
            author=own if own.startswith("t2_") else author,
            body=_text(members, "body"),
            permalink=permalink,
            created_at=created,
        )
    permalink = permalink or f"/comments/{name.removeprefix('t3_')}"
    return Post(
        id=name,
        author=_text(members, "authorId") or author,
        title=_text(members, "title"),
        url=_text(members, "url") or f"https://www.reddit.com{permalink}",
        body=_text(members, "selftext") or None,
        permalink=permalink,
        created_at=created,
    )


def _time(given: object) -> datetime | None:
    """Return the time of milliseconds since the epoch or an RFC 3339 text; None for anything else."""
    if isinstance(given, int | float) and 0 < given < _LAST_MS:
        return datetime.fromtimestamp(given / 1000, UTC)
    if isinstance(given, str):
        try:
            read = datetime.fromisoformat(given)
        except ValueError:
            return None
        return read if read.tzinfo else None
    return None
