"""A Platform without Reddit: it knows what events tell and what is stored, and keeps the public posts.

It never says that something is gone, because it cannot know; what it was not told about it refuses to tell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from keywright import AsyncDatabase
from keywright.operations import commit
from keywright_openmod.extracts import account_of
from keywright_openmod.platform import Account, Comment, Post, Thing
from keywright_openmod.schema import CachedComment, CachedPost, CacheHash, TrackingSet
from keywright_openmod.service.schema import LocalMarker, LocalPost, LocalPosts, Published
from keywright_service.errors import PlatformRefusedError

__all__ = ["LocalPlatform"]

HERE = "this machine"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_LAST_MS = 253_402_300_800_000  # the year 10000
_marker = re.compile(r"openmod-([0-9a-f]{64})")


class LocalPlatform:
    """Tell it an event, then have the event handled. Posts get ids of their own, as in `t3_local1`."""

    def __init__(self, db: AsyncDatabase) -> None:
        self._db = db
        self._accounts: dict[str, Account] = {}
        self._things: dict[str, Thing] = {}

    def tell(self, event: Mapping[str, Any]) -> None:
        """Know what this event tells, and nothing any more of the one before."""
        people = [_object(event, name) for name in ("author", "moderator", "targetUser")]
        known = [Account(_text(each, "id"), _text(each, "name")) for each in people]
        self._accounts = {each.id: each for each in known if each.id}
        author = known[0].id or known[2].id or None
        told = _moment(event.get("actionedAt"))
        submissions = [_object(event, name) for name in ("post", "targetPost", "comment", "targetComment")]
        self._things = {each["id"]: _thing(each, author, told) for each in submissions if _text(each, "id")}

    async def me(self) -> Account:
        return Account("t2_local", "openmod", is_app=True)

    async def account(self, user: str) -> Account | None:
        told = self._accounts.get(user)
        if told is not None and told.name:
            return told
        known = account_of(user, await self._db.run(CacheHash(user).get()))
        if known is None:
            raise _untold(user, "no event told who that is")
        return known

    async def account_named(self, name: str) -> Account | None:
        for told in self._accounts.values():
            if told.name.lower() == name.lower():
                return told
        raise _untold(f"u/{name}", "the event does not tell the id of that account")

    async def thing(self, thing: str) -> Thing | None:
        told = self._things.get(thing)
        if told is not None and _has_content(told):
            return told
        stored = await self._stored(thing) or told
        if stored is None:
            raise _untold(thing, "no event told what that is")
        return stored

    async def find_submission(self, subreddit: str, marker: str) -> str | None:
        match = _marker.fullmatch(marker)
        return None if match is None else await self._db.run(LocalMarker(match[1]).get())

    async def submit(self, subreddit: str, title: str, body: str) -> str:
        post = f"t3_local{_base36(await self._db.run(LocalPosts().add()))}"
        # The last marker is the model's: what people wrote comes before it.
        marked = [LocalMarker(marker).set(post) for marker in _marker.findall(body)[-1:]]
        kept = LocalPost(post).put(Published(subreddit, title, body))
        await self._db.run(commit("post", [], [kept, *marked], subject=post))
        return post

    async def edit(self, post: str, body: str) -> bool:
        found = await self._db.run(LocalPost(post).get())
        if found is None:
            return False
        await self._db.run(LocalPost(post).put(Published(found.subreddit, found.title, body)))
        return True

    async def _stored(self, thing: str) -> Thing | None:
        cached = await self._db.run(CacheHash(thing).get())
        if not isinstance(cached, CachedPost | CachedComment):
            return None
        author = cached.author or None
        created = await self._created(author, thing)
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

    async def _created(self, author: str | None, thing: str) -> datetime:
        if author is None:
            return self._db.context.now()
        return await self._db.run(TrackingSet(author).score(thing)) or self._db.context.now()


def _untold(asked: str, reason: str) -> PlatformRefusedError:
    return PlatformRefusedError(HERE, asked, reason, "Ingest an event that tells it before this one.")


def _object(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = event.get(name)
    return found if isinstance(found, Mapping) else {}


def _text(told: Mapping[str, Any], name: str) -> str:
    """A member that is text; empty for anything else, which the model refuses where it matters."""
    found = told.get(name)
    return found if isinstance(found, str) else ""


def _has_content(thing: Thing) -> bool:
    return bool(thing.title if isinstance(thing, Post) else thing.body)


def _thing(told: Mapping[str, Any], author: str | None, at: datetime | None) -> Thing:
    """A submission as an event tells it. A comment's own author is its `author`, a post's its `authorId`."""
    created = _moment(told.get("createdAt")) or at or datetime.now(UTC)
    name, permalink = _text(told, "id"), _text(told, "permalink")
    if name.startswith("t1_"):
        own = _text(told, "author")
        return Comment(
            id=name,
            author=own if own.startswith("t2_") else author,
            body=_text(told, "body"),
            permalink=permalink,
            created_at=created,
        )
    permalink = permalink or f"/comments/{name.removeprefix('t3_')}"
    return Post(
        id=name,
        author=_text(told, "authorId") or author,
        title=_text(told, "title"),
        url=_text(told, "url") or f"https://www.reddit.com{permalink}",
        body=_text(told, "selftext") or None,
        permalink=permalink,
        created_at=created,
    )


def _moment(told: object) -> datetime | None:
    """Milliseconds since 1970, or RFC 3339."""
    if isinstance(told, int | float) and 0 < told < _LAST_MS:
        return datetime.fromtimestamp(told / 1000, UTC)
    if isinstance(told, str):
        try:
            read = datetime.fromisoformat(told)
        except ValueError:
            return None
        return read if read.tzinfo else None
    return None


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits
