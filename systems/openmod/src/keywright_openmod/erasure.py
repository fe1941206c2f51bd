"""Forgetting: what goes when a submission or an account is deleted, and in which order.

Work first, index last. A public extract is redacted before its record goes, a record before the set
that lists it, a set before the entry that leads to it; so a process that dies anywhere has left the
way to what remains, and doing it again finishes. No step is harmed by being done twice.
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
from keywright_openmod.extracts import PAGE, Extracts, rendering
from keywright_openmod.platform import Platform
from keywright_openmod.renderer import ExtractUpdateReason
from keywright_openmod.schema import CacheHash, EnforcementSet, ExtractHash, ModActionSet, TrackingSet
from keywright_service.errors import PlatformRefusedError

__all__ = ["Eraser"]

ATTEMPTS = 8
HOLD = timedelta(minutes=5)


class Eraser:
    """Erases submissions and people from one database, and from the public extracts about them."""

    def __init__(self, db: AsyncDatabase, platform: Platform) -> None:
        self._db = db
        self._extracts = Extracts(db, platform)

    async def submission(
        self, thing: str, authors: set[str], checks: Sequence[Check], also: Sequence[Call[Any]]
    ) -> bool:
        """Forget a deleted submission; `also` is written with the last step, if `checks` still hold.

        Its authors are those that the caller knows of and those that its extracts name. ConflictError
        while an update renders its extracts.
        """
        cached = await self._extracts.cached(thing)
        known = authors | {getattr(cached, "author", None) or ""}
        await self._db.run(CacheHash(thing).delete())
        for _ in range(ATTEMPTS):
            known |= await self._redact_all(thing, ExtractUpdateReason.CONTENT_DELETED)
            tracked = [TrackingSet(user).remove(thing) for user in known if user and not is_special(user)]
            last = [CacheHash(thing).delete(), *tracked, *also]
            outcome = await self._db.run(
                commit(f"forget {thing}", [*checks, absent(ModActionSet(thing))], last)
            )
            if outcome:
                return True
            if not await self._db.run(ModActionSet(thing).exists()):
                return False
        raise ConflictError(f"forgetting {thing}", ATTEMPTS)

    async def account(self, user: str) -> None:
        """Forget a deleted or suspended account, with everything that was tracked of it.

        The last step ends its compliance checks, in one step with finding that nothing is left: what an
        event recorded meanwhile is erased as well, or leaves the account enrolled.
        """
        for _ in range(ATTEMPTS):
            await self._each(TrackingSet(user), lambda thing: self._tracked_thing(user, thing))
            await self._redact_all(user, ExtractUpdateReason.USER_DELETED)
            await self._db.run(CacheHash(user).delete())
            nothing_left = [absent(TrackingSet(user)), absent(ModActionSet(user)), absent(CacheHash(user))]
            if await self._db.run(commit(f"forget {user}", nothing_left, [EnforcementSet().remove(user)])):
                return
        raise ConflictError(f"forgetting {user}", ATTEMPTS)

    async def outlived(self, user: str) -> None:
        """Stop tracking what nothing is kept of any more: no cached copy, which lasts 28 days, no extract."""
        place = 0
        while page := await self._db.run(TrackingSet(user).range(place, place + PAGE - 1)):
            for thing in await self._without_a_trace([thing for thing, _ in page]):
                nothing_kept = [
                    absent(CacheHash(thing)),
                    absent(ModActionSet(thing)),
                    owned(TrackingSet(user)),
                ]
                gone = [TrackingSet(user).remove(thing)]
                if await self._db.run(commit(f"untrack {thing}", nothing_kept, gone)):
                    place -= 1
            place += len(page)

    async def _without_a_trace(self, things: list[str]) -> list[str]:
        kept = await self._db.run(
            gather_list(gather(CacheHash(thing).exists(), ModActionSet(thing).exists()) for thing in things)
        )
        return [thing for thing, found in zip(things, kept, strict=True) if not any(found)]

    async def _tracked_thing(self, user: str, thing: str) -> None:
        for _ in range(ATTEMPTS):
            await self._redact_all(thing, ExtractUpdateReason.USER_DELETED)
            # Owned: on a cluster too, no event is half recorded while what it writes is removed.
            alone = [absent(ModActionSet(thing)), owned(CacheHash(thing)), owned(TrackingSet(user))]
            last = [CacheHash(thing).delete(), TrackingSet(user).remove(thing)]
            if await self._db.run(commit(f"forget {thing}", alone, last)):
                return
        raise ConflictError(f"forgetting {thing}", ATTEMPTS)

    async def _redact_all(self, thing: str, reason: ExtractUpdateReason) -> set[str]:
        """Redact every public extract about a thing and drop its record; the people they were about.

        Nobody renders them meanwhile, ConflictError where somebody does.
        """
        targets: set[str] = set()
        if not await self._db.run(ModActionSet(thing).exists()):
            return targets
        ours, token = rendering(thing), new_token()

        async def redact(post: str) -> None:
            if not await self._db.run(ours.begin(token, HOLD)):
                raise ConflictError(f"redacting what is public about {thing}", 1)
            subject = await self._extracts.redact(post, reason)
            targets.add(subject.target if subject else "")
            done = [ExtractHash(post).delete(), ModActionSet(thing).remove(post)]
            await self._db.run(commit(f"drop {post}", [ours.held_by(token)], done))

        try:
            await self._each(ModActionSet(thing), redact)
        finally:
            with contextlib.suppress(KeywrightError):
                await self._db.run(ours.release(token))
        return targets

    async def _each(self, listed: SortedSet[str, datetime], erase: Callable[[str], Awaitable[None]]) -> None:
        """Every member, page by page from the front: what is done leaves the set.

        Where an extract cannot be edited the member stays, and does not keep the others from being erased.
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
