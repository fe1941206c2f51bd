"""Erasure of deleted submissions and accounts: what is deleted, and in which order.

Work first, index last. A public extract is redacted before its record is deleted, a record before the set
that lists it, a set before the entry that leads to it. So after a crash at any point the remaining data can
still be found, and repeating the erasure completes it. Every step is idempotent.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from keywright import AsyncDatabase, Call, SortedSet, gather, gather_list, new_token
from keywright.errors import ConflictError, KeywrightError, StoredDataError
from keywright.operations import Check, absent, commit, exists, owned
from keywright_openmod.accounts import DELETED, is_special
from keywright_openmod.extracts import PAGE, PublicExtracts, render_lock
from keywright_openmod.log_index import forget_name, unlist
from keywright_openmod.platform import Platform
from keywright_openmod.renderer import ExtractUpdateReason
from keywright_openmod.schema import (
    AnyExtract,
    CacheHash,
    EnforcementSet,
    ExtractHash,
    LogAccount,
    LogHash,
    ModActionSet,
    ModeratorLog,
    TrackingSet,
    UserLog,
    extract_of,
    thing_of,
)
from keywright_service.errors import PlatformRefusedError

__all__ = ["Eraser"]

ATTEMPTS = 8
HOLD = timedelta(minutes=5)


class Eraser:
    """Erases submissions and accounts from one database and from the public extracts about them."""

    def __init__(self, db: AsyncDatabase, platform: Platform) -> None:
        self._db = db
        self._extracts = PublicExtracts(db, platform)

    async def erase_submission(
        self, thing: str, authors: set[str], checks: Sequence[Check], also: Sequence[Call[Any]]
    ) -> bool:
        """Erase a deleted submission; `also` is written with the last step. Return False if a check failed.

        The authors are those that the caller knows and those that the extracts name. Raise ConflictError
        while an update renders the extracts.
        """
        cached = await self._extracts.cached(thing)
        known = authors | {getattr(cached, "author", None) or ""}
        await self._db.run(CacheHash(thing).delete())
        await self._unlist_all(thing)
        for _ in range(ATTEMPTS):
            known |= await self._redact_all(thing, ExtractUpdateReason.CONTENT_DELETED)
            tracked = [TrackingSet(user).remove(thing) for user in known if user and not is_special(user)]
            last = [CacheHash(thing).delete(), *tracked, *also]
            outcome = await self._db.run(
                commit("erase", [*checks, absent(ModActionSet(thing))], last, subject=thing)
            )
            if outcome:
                return True
            if not await self._db.run(ModActionSet(thing).exists()):
                return False
        raise ConflictError(f"erasing {thing}", ATTEMPTS)

    async def erase_account(self, user: str) -> None:
        """Erase a deleted or suspended account with everything that was tracked of it.

        Without its name the public log shows nothing of it at once, however long the posts take. The last
        step ends its compliance checks, in one commit with the check that nothing is left. So data that an
        event recorded meanwhile is erased as well, or the account stays enrolled.
        """
        kinds = (TrackingSet, ModActionSet, CacheHash, LogAccount, UserLog, ModeratorLog)
        nothing_left = [absent(kind(user)) for kind in kinds]
        for _ in range(ATTEMPTS):
            await self._db.run(forget_name(user))
            await self._each(TrackingSet(user), lambda thing: self._erase_tracked(user, thing))
            await self._each(UserLog(user), lambda post: self._erase_listed(user, post))
            await self._redact_all(user, ExtractUpdateReason.USER_DELETED)
            await self._db.run(CacheHash(user).delete())
            await self._each(ModeratorLog(user), lambda post: self._forget_moderator(user, post))
            if await self._db.run(
                commit("erase", nothing_left, [EnforcementSet().remove(user)], subject=user)
            ):
                return
        raise ConflictError(f"erasing {user}", ATTEMPTS)

    async def prune_tracking_set(self, user: str) -> None:
        """Untrack submissions with neither an extract nor a cached copy, which expires after 28 days."""
        place = 0
        while page := await self._db.run(TrackingSet(user).range(place, place + PAGE - 1)):
            things = [thing for thing, _ in page]
            kept = await self._db.run(
                gather_list(
                    gather(CacheHash(thing).exists(), ModActionSet(thing).exists()) for thing in things
                )
            )
            for thing in [thing for thing, found in zip(things, kept, strict=True) if not any(found)]:
                still_unused = [
                    absent(CacheHash(thing)),
                    absent(ModActionSet(thing)),
                    owned(TrackingSet(user)),
                ]
                removal = [TrackingSet(user).remove(thing)]
                if await self._db.run(commit("untrack", still_unused, removal, subject=thing)):
                    place -= 1
            place += len(page)

    async def _erase_tracked(self, user: str, thing: str) -> None:
        for _ in range(ATTEMPTS):
            await self._redact_all(thing, ExtractUpdateReason.USER_DELETED)
            # Owned, so that on a cluster, too, no event is half recorded while its keys are removed.
            unlisted = [absent(ModActionSet(thing)), owned(CacheHash(thing)), owned(TrackingSet(user))]
            last = [CacheHash(thing).delete(), TrackingSet(user).remove(thing)]
            if await self._db.run(commit("erase", unlisted, last, subject=thing)):
                return
        raise ConflictError(f"erasing {thing}", ATTEMPTS)

    async def _erase_listed(self, user: str, post: str) -> None:
        """Erase what an entry of the log concerns, in case that no set of the user leads there."""
        entry = await self._readable(LogHash(post).get())
        if entry is not None:
            await self._erase_tracked(user, entry.thing)
        await self._db.run(unlist(post))
        await self._db.run(UserLog(user).remove(post))

    async def _forget_moderator(self, user: str, post: str) -> None:
        """Remove a deleted moderator from an extract about somebody else, and from the log."""
        entry = await self._readable(LogHash(post).get())
        extract: AnyExtract | None = await self._readable(ExtractHash(post).get())
        if entry is None or extract is None:
            await self._db.run(unlist(post))
            await self._db.run(ModeratorLog(user).remove(post))
            return
        async with self._rendering(entry.thing) as (hold, check):
            await self._extracts.render(post, ExtractUpdateReason.MODERATOR_DELETED, hold)
            writes = [
                ExtractHash(post).put(
                    extract_of(extract.type, DELETED.id, extract.target, thing_of(extract))
                ),
                LogHash(post).put(msgspec.structs.replace(entry, actor=DELETED.id)),
                ModeratorLog(user).remove(post),
            ]
            await self._db.run(commit("forget", [check, exists(LogHash(post))], writes, subject=post))

    async def _readable(self, read: Call[Any]) -> Any:
        """Return what is stored, or None if it does not exist or cannot be read."""
        found = await self._db.run(read.attempt())
        if isinstance(found, StoredDataError):
            return None
        if isinstance(found, KeywrightError):
            raise found
        return found

    async def _unlist_all(self, thing: str) -> None:
        """Remove all extracts about a thing from the public log."""
        place = 0
        while page := await self._db.run(ModActionSet(thing).range(place, place + PAGE - 1)):
            await self._db.run(gather_list(unlist(post) for post, _ in page))
            place += len(page)

    async def _redact_all(self, thing: str, reason: ExtractUpdateReason) -> set[str]:
        """Redact every public extract about a thing, delete its record, and return the users concerned.

        Holds the render lock meanwhile. Raise ConflictError if another process holds it.
        """
        targets: set[str] = set()
        if not await self._db.run(ModActionSet(thing).exists()):
            return targets
        async with self._rendering(thing) as (hold, held):

            async def redact(post: str) -> None:
                await self._db.run(unlist(post))
                await hold()
                subject = await self._extracts.redact(post, reason)
                targets.add(subject.target if subject else "")
                last = [ExtractHash(post).delete(), ModActionSet(thing).remove(post)]
                await self._db.run(commit("drop", [held, absent(LogHash(post))], last, subject=post))

            await self._each(ModActionSet(thing), redact)
        return targets

    @contextlib.asynccontextmanager
    async def _rendering(self, thing: str) -> AsyncIterator[tuple[Callable[[], Awaitable[None]], Check]]:
        """Hold the render lock of a thing in the block.

        Yield a function that begins or extends the hold, or raises ConflictError, and the check of it.
        """
        lock, token = render_lock(thing), new_token()

        async def hold() -> None:
            if not await self._db.run(lock.begin(token, HOLD)):
                raise ConflictError(f"editing the extracts about {thing}", 1)

        try:
            yield hold, lock.held_by(token)
        finally:
            with contextlib.suppress(KeywrightError):
                await self._db.run(lock.release(token))

    async def _each(self, listed: SortedSet[str, datetime], erase: Callable[[str], Awaitable[None]]) -> None:
        """Erase every member, page by page from the front: an erased member leaves the set.

        A member whose extract cannot be edited stays, the others are erased, and the refusal is raised at
        the end.
        """
        kept = 0
        refusal: PlatformRefusedError | None = None
        while page := await self._db.run(listed.range(kept, kept + PAGE - 1)):
            for member, _ in page:
                try:
                    await erase(member)
                except PlatformRefusedError as error:
                    refusal = refusal or error
                    kept += 1
        if refusal is not None:
            raise refusal
