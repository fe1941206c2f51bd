"""Erasure of deleted submissions and accounts: what is deleted, and in which order.

Work first, index last. A public extract is redacted before its record is deleted, a record before the set
that lists it, a set before the entry that leads to it. So after a crash at any point the remaining data can
still be found, and repeating the erasure completes it. Every step is idempotent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from keywright import AsyncDatabase, Call, SortedSet, gather, gather_list, new_token
from keywright.errors import ConflictError, KeywrightError
from keywright.operations import Check, absent, commit, owned
from keywright_openmod.accounts import is_special
from keywright_openmod.extracts import PAGE, PublicExtracts, render_lock
from keywright_openmod.platform import Platform
from keywright_openmod.renderer import ExtractUpdateReason
from keywright_openmod.schema import CacheHash, EnforcementSet, ExtractHash, ModActionSet, TrackingSet
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

        The last step ends its compliance checks, in one commit with the check that nothing is left. So data
        that an event recorded meanwhile is erased as well, or the account stays enrolled.
        """
        for _ in range(ATTEMPTS):
            await self._each(TrackingSet(user), lambda thing: self._erase_tracked(user, thing))
            await self._redact_all(user, ExtractUpdateReason.USER_DELETED)
            await self._db.run(CacheHash(user).delete())
            nothing_left = [absent(TrackingSet(user)), absent(ModActionSet(user)), absent(CacheHash(user))]
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

    async def _redact_all(self, thing: str, reason: ExtractUpdateReason) -> set[str]:
        """Redact every public extract about a thing, delete its record, and return the users concerned.

        Holds the render lock meanwhile. Raise ConflictError if another process holds it.
        """
        targets: set[str] = set()
        if not await self._db.run(ModActionSet(thing).exists()):
            return targets
        lock, token = render_lock(thing), new_token()

        async def redact(post: str) -> None:
            if not await self._db.run(lock.begin(token, HOLD)):
                raise ConflictError(f"redacting the extracts about {thing}", 1)
            subject = await self._extracts.redact(post, reason)
            targets.add(subject.target if subject else "")
            last = [ExtractHash(post).delete(), ModActionSet(thing).remove(post)]
            await self._db.run(commit("drop", [lock.held_by(token)], last, subject=post))

        try:
            await self._each(ModActionSet(thing), redact)
        finally:
            with contextlib.suppress(KeywrightError):
                await self._db.run(lock.release(token))
        return targets

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
