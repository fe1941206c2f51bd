"""The sweep that brings a whole database from v1 to v1.1.

Reading upgrades what is read; the sweep upgrades the rest, and enrols everyone who is tracked for
compliance checks, which v1 never did. It keeps no state of its own: what it upgraded is v1.1 from
then on, so stopping it anywhere and starting it again continues. Running programs are not disturbed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

from keywright import AsyncDatabase, Call, gather_list
from keywright.errors import KeywrightError, StoredDataError
from keywright_openmod.accounts import is_special, special_named
from keywright_openmod.extracts import actor_of, author_of, extract_as_of
from keywright_openmod.platform import Platform
from keywright_openmod.schema import (
    AnyExtract,
    AuditHash,
    EnforcementSet,
    ExtractHash,
    TrackingSet,
)

__all__ = ["Progress", "upgrade_all"]

T = TypeVar("T")

PAGE = 500
DAY = timedelta(days=1)


class Progress(NamedTuple):
    """How far a sweep is: records seen of how many there were, and what became of them."""

    total: int
    seen: int
    upgraded: int
    left: tuple[str, ...]
    """Posts whose record is no extract of any version, or needs a platform and none was given."""
    enrolled: int


async def upgrade_all(
    db: AsyncDatabase,
    platform: Platform | None,
    *,
    progress: Callable[[Progress], None] | None = None,
    per_second: float | None = None,
    page: int = PAGE,
) -> Progress:
    """Upgrade every v1 audit and enrol every tracked person; cancel it to stop, run it again to resume.

    `progress` is told after every page. `per_second` bounds how many records are read a second. Authors
    are told from the tracking sets, moderators asked of the platform once each; without a platform only
    special accounts are known, and what names others is left for another run, or for its first read.
    """
    sweep = _Sweep(db, platform, progress or _unheard, page)
    await sweep.enrol_everyone()
    await sweep.count()
    async for posts in _pages(db.scan(AuditHash), page):
        await sweep.upgrade([key.post for key in posts])
        if per_second:
            await asyncio.sleep(len(posts) / per_second)
    return sweep.progress


class _Sweep:
    def __init__(
        self, db: AsyncDatabase, platform: Platform | None, tell: Callable[[Progress], None], page: int
    ) -> None:
        self._db = db
        self._platform = platform
        self._tell = tell
        self._page = page
        self._owners: dict[str, str] | None = None
        self._actors: dict[str, str] = {}
        self.progress = Progress(0, 0, 0, (), 0)

    async def enrol_everyone(self) -> None:
        """Have everyone who is tracked checked; the first checks spread over a day."""
        met = 0
        async for sets in _pages(self._db.scan(TrackingSet), self._page):
            now = self._db.context.now()
            times = {
                each.user: now + DAY * ((met + place) % 1440 + 1) / 1440
                for place, each in enumerate(sets)
                if not is_special(each.user)
            }
            met += len(sets)
            enrolled = await self._db.run(EnforcementSet().add_many(times, when="absent"))
            self._advance(enrolled=self.progress.enrolled + enrolled)

    async def count(self) -> None:
        total = 0
        async for _ in self._db.scan(AuditHash):
            total += 1
        self._advance(total=total)

    async def upgrade(self, posts: list[str]) -> None:
        """One page, its records together: by the people they name where these are known."""
        asked = (AuditHash(post).pick("thing_id", "actor").attempt() for post in posts)
        found = zip(posts, await self._db.run(gather_list(asked)), strict=True)
        old = [(post, each) for post, each in found if _is_old(each)]
        if old and self._owners is None:
            self._owners = await self._everything_tracked()
        reads = {post: await self._upgrade(post, each) for post, each in old}
        left = await self._tried(reads)
        self._advance(
            seen=self.progress.seen + len(posts),
            upgraded=self.progress.upgraded + len(reads) - len(left),
            left=(*self.progress.left, *left),
        )

    async def _everything_tracked(self) -> dict[str, str]:
        """Whose every tracked thing is, from the sets that can be read."""
        owners: dict[str, str] = {}
        async for sets in _pages(self._db.scan(TrackingSet), self._page):
            found = await self._db.run(gather_list(each.members().attempt() for each in sets))
            for each, things in zip(sets, found, strict=True):
                if isinstance(things, list):
                    owners.update(dict.fromkeys(things, each.user))
                elif not isinstance(things, StoredDataError):
                    raise things
        return owners

    async def _upgrade(self, post: str, found: dict[str, Any] | KeywrightError) -> Call[AnyExtract | None]:
        if isinstance(found, KeywrightError) or "actor" not in found:
            return ExtractHash(post).get()  # which tells what is wrong with it
        actor, target = await self._actor(found["actor"]), await self._target(found["thing_id"])
        if actor is None or target is None:
            return ExtractHash(post).get()  # a cached copy may tell, where nobody can be asked
        return extract_as_of(post, actor, target)

    async def _tried(self, reads: dict[str, Call[AnyExtract | None]]) -> dict[str, StoredDataError]:
        """Read and so upgrade, together; what is stored in a shape that cannot be is told, not raised."""
        found = await self._db.run(gather_list(read.attempt() for read in reads.values()))
        refused = {}
        for post, each in zip(reads, found, strict=True):
            if isinstance(each, StoredDataError):
                refused[post] = each
            elif isinstance(each, KeywrightError):
                raise each
        return refused

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
        self._tell(self.progress)


def _is_old(found: dict[str, Any] | KeywrightError) -> bool:
    return isinstance(found, KeywrightError) or "thing_id" in found


async def _pages(items: AsyncIterator[T], size: int) -> AsyncIterator[list[T]]:
    """What is scanned, in pages; a key that SCAN shows twice is upgraded once all the same."""
    page: list[T] = []
    async for item in items:
        page.append(item)
        if len(page) == size:
            yield page
            page = []
    if page:
        yield page


def _unheard(progress: Progress) -> None:
    del progress
