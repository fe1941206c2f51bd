"""The sweep that upgrades a whole database from v1 to v1.1.

Reading upgrades single records; the sweep upgrades the rest, and enrols everybody with stored data for
compliance checks, which upstream never does, whatever the version. It stores no state: an upgraded record is
v1.1 from then on, so the sweep can be stopped anywhere and started again. Other programs may run meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

from keywright import AsyncDatabase, Call, gather_list
from keywright.errors import KeywrightError, StoredDataError
from keywright_openmod.accounts import is_special, special_named
from keywright_openmod.backfill import complete
from keywright_openmod.extracts import actor_of, author_of, read_upgraded
from keywright_openmod.platform import Platform
from keywright_openmod.schema import (
    AnyExtract,
    AuditHash,
    CacheHash,
    EnforcementSet,
    ExtractHash,
    ModActionSet,
    TrackingSet,
)

__all__ = ["UpgradeProgress", "upgrade_all"]

T = TypeVar("T")

PAGE = 500
DAY = timedelta(days=1)


class UpgradeProgress(NamedTuple):
    """The progress of a sweep."""

    total: int
    """Records that existed at the start."""
    seen: int
    upgraded: int
    left: tuple[str, ...]
    """Posts whose record is malformed, or needs a platform and none was given."""
    enrolled: int
    """Users who were added to the compliance checks for tracked or cached data, or extracts about them."""
    listed: int = 0
    """Extracts that the public log lists since then."""


async def upgrade_all(
    db: AsyncDatabase,
    platform: Platform | None,
    *,
    subreddit: str | None = None,
    progress: Callable[[UpgradeProgress], None] | None = None,
    per_second: float | None = None,
    page: int = PAGE,
) -> UpgradeProgress:
    """Upgrade every v1 audit and enrol everybody with stored data. Cancel it to stop, run it to resume.

    Extracts that are not in the public log are listed as those of `subreddit`, if it is given.

    `progress` is called after every page. `per_second` limits the rate of records. The ids of authors come
    from the tracking sets, those of moderators from the platform, once each. Without a platform only special
    accounts are known, and records of others are left for another run or for their first read.
    """
    sweep = _Sweep(db, platform, progress or (lambda _: None), page)
    await sweep.enrol_everyone()
    await sweep.count()
    async for posts in _pages(db.scan(AuditHash), page):
        await sweep.upgrade([key.post for key in posts])
        await sweep.complete([key.post for key in posts], subreddit)
        if per_second:
            await asyncio.sleep(len(posts) / per_second)
    return sweep.progress


class _Sweep:
    def __init__(
        self,
        db: AsyncDatabase,
        platform: Platform | None,
        report: Callable[[UpgradeProgress], None],
        page: int,
    ) -> None:
        self._db = db
        self._platform = platform
        self._report = report
        self._page = page
        self._owners: dict[str, str] | None = None
        self._actors: dict[str, str] = {}
        self.progress = UpgradeProgress(0, 0, 0, (), 0)

    async def enrol_everyone(self) -> None:
        """Enrol all users with stored data, with their first checks spread over a day."""
        seen = 0
        async for users in _pages(self._users(), self._page):
            now = self._db.context.now()
            times = {
                user: now + DAY * ((seen + place) % 1440 + 1) / 1440
                for place, user in enumerate(users)
                if not is_special(user)
            }
            seen += len(users)
            enrolled = await self._db.run(EnforcementSet().add_many(times, when="absent"))
            self._advance(enrolled=self.progress.enrolled + enrolled)

    async def _users(self) -> AsyncIterator[str]:
        """Yield the users of all keys that name one, some of them several times."""
        async for tracked in self._db.scan(TrackingSet):
            yield tracked.user
        async for disclosed in self._db.scan(ModActionSet):
            if disclosed.thing.startswith("t2_"):
                yield disclosed.thing
        async for cached in self._db.scan(CacheHash):
            if cached.thing.startswith("t2_"):
                yield cached.thing

    async def complete(self, posts: list[str], subreddit: str | None) -> None:
        """Give one page of extracts what new ones have: checks of their people, and a place in the log."""
        listed = await complete(self._db, self._platform, posts, subreddit)
        self._advance(listed=self.progress.listed + listed)

    async def count(self) -> None:
        total = 0
        async for _ in self._db.scan(AuditHash):
            total += 1
        self._advance(total=total)

    async def upgrade(self, posts: list[str]) -> None:
        """Upgrade one page of records in one batch."""
        asked = (AuditHash(post).pick("thing_id", "actor").attempt() for post in posts)
        found = zip(posts, await self._db.run(gather_list(asked)), strict=True)
        # A record that cannot be read as v1 may be malformed v1: the full read reports what is wrong.
        old = [(post, each) for post, each in found if isinstance(each, KeywrightError) or "thing_id" in each]
        if old and self._owners is None:
            self._owners = await self._owners_of_tracked()
        reads = {post: await self._read(post, each) for post, each in old}
        results = await self._db.run(gather_list(read.attempt() for read in reads.values()))
        left = []
        for post, result in zip(reads, results, strict=True):
            if isinstance(result, StoredDataError):
                left.append(post)
            elif isinstance(result, KeywrightError):
                raise result
        self._advance(
            seen=self.progress.seen + len(posts),
            upgraded=self.progress.upgraded + len(reads) - len(left),
            left=(*self.progress.left, *left),
        )

    async def _owners_of_tracked(self) -> dict[str, str]:
        """Return the user of every tracked thing, from the sets that can be read."""
        owners: dict[str, str] = {}
        async for sets in _pages(self._db.scan(TrackingSet), self._page):
            found = await self._db.run(gather_list(each.members().attempt() for each in sets))
            for each, things in zip(sets, found, strict=True):
                if isinstance(things, list):
                    owners.update(dict.fromkeys(things, each.user))
                elif not isinstance(things, StoredDataError):
                    raise things
        return owners

    async def _read(self, post: str, found: dict[str, Any] | KeywrightError) -> Call[AnyExtract | None]:
        """Return the read that upgrades a record, with the ids of its people if they are known."""
        if isinstance(found, KeywrightError) or "actor" not in found:
            return ExtractHash(post).get()  # raises with what is malformed
        actor, target = await self._actor(found["actor"]), await self._target(found["thing_id"])
        if actor is None or target is None:
            return ExtractHash(post).get()  # which may find the author in a cached copy
        return read_upgraded(post, actor, target)

    async def _target(self, thing: str) -> str | None:
        if thing.startswith("t2_"):
            return thing
        owner = (self._owners or {}).get(thing)
        return await author_of(self._platform, thing) if owner is None and self._platform else owner

    async def _actor(self, name: str) -> str | None:
        known = self._actors.get(name.casefold())
        if known is None:
            special = special_named(name)
            if special is not None:
                known = special.id
            elif self._platform is not None:
                known = await actor_of(self._platform, name)
            else:
                return None
            self._actors[name.casefold()] = known
        return known

    def _advance(self, **changes: object) -> None:
        self.progress = self.progress._replace(**changes)  # type: ignore[arg-type]  # names of its own fields
        self._report(self.progress)


async def _pages(items: AsyncIterator[T], size: int) -> AsyncIterator[list[T]]:
    """Yield the items in pages. SCAN may return a key twice; the second upgrade does nothing."""
    page: list[T] = []
    async for item in items:
        page.append(item)
        if len(page) == size:
            yield page
            page = []
    if page:
        yield page
