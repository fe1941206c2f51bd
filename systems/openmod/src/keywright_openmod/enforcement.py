"""The content deletion policy: look up every user with stored data once a day, erase deleted accounts."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import NamedTuple

from keywright import AsyncDatabase, Call, Claimed, gather
from keywright.errors import ConflictError, KeywrightError, StoredDataError
from keywright_openmod.accounts import special_account
from keywright_openmod.erasure import Eraser
from keywright_openmod.log_index import keep_name
from keywright_openmod.platform import Account, Platform
from keywright_openmod.schema import EnforcementSet
from keywright_service.errors import PlatformError

__all__ = ["Enforcer", "EnforcerBatch", "enrol", "next_check"]

BATCH = 50
PERIOD = timedelta(days=1)
HOLD = timedelta(minutes=15)
RETRY = timedelta(minutes=10)


def enrol(user: str, now: datetime) -> Call[bool]:
    """Schedule the first check of an account for a day from now. An enrolled account keeps its time."""
    return EnforcementSet().add(user, now + PERIOD, when="absent")


def next_check(due: datetime, now: datetime) -> datetime:
    """Return the first time after now that is a whole number of days after the time that was due.

    Counted from now, a check that a daily run makes some seconds late would miss the next run
    (docs/resolutions.md#mistake-5).
    """
    return due + PERIOD * max(1, (now - due) // PERIOD + 1)


class EnforcerBatch(NamedTuple):
    """The result of one batch: accounts that exist, accounts that were erased, and errors."""

    active: int
    erased: int
    troubles: tuple[KeywrightError, ...]
    more: bool
    """Whether more accounts are due already."""


class Enforcer:
    """Checks accounts that are due. Several may run: each claims different accounts for `HOLD`."""

    def __init__(self, db: AsyncDatabase, platform: Platform, *, batch: int = BATCH) -> None:
        self._db = db
        self._platform = platform
        self._eraser = Eraser(db, platform)
        self._batch = batch

    async def run_batch(self) -> EnforcerBatch:
        """Check up to a batch of accounts that are due, and erase those that were deleted.

        If the platform gives no certain answer about an account, or it cannot be erased now, it is retried
        after `RETRY` and the others continue. If the erasure of an account is interrupted, the account is
        due again when the hold ends, and the erasure continues.
        """
        await self._platform.me()
        # A claim overwrites the time that was due, so read it first: the lowest scores are claimed.
        lowest, claimed = await self._db.run(
            gather(EnforcementSet().range(0, self._batch - 1), EnforcementSet().claim_due(self._batch, HOLD))
        )
        was_due = dict(lowest)
        answers = await asyncio.gather(*(self._lookup(each.member) for each in claimed))
        active, erased, troubles = 0, 0, []
        for each, answer in zip(claimed, answers, strict=True):
            trouble = await self._settle(each, answer, was_due.get(each.member))
            if trouble is not None:
                await self._db.run(EnforcementSet().reschedule(each, self._db.context.now() + RETRY))
                troubles.append(trouble)
            elif answer is None:
                erased += 1
            else:
                active += 1
        more = await self._db.run(EnforcementSet().due_count())
        return EnforcerBatch(active, erased, tuple(troubles), more > 0)

    async def _lookup(self, user: str) -> Account | PlatformError | None:
        """Return the account, None if it certainly does not exist, or the error that left it open."""
        special = special_account(user)
        if special is not None:
            return special
        try:
            return await self._platform.account(user)
        except PlatformError as error:
            return error

    async def _settle(
        self, claimed: Claimed[str], answer: Account | PlatformError | None, was_due: datetime | None
    ) -> KeywrightError | None:
        """Erase the account or schedule its next check. Return the error if that failed."""
        if isinstance(answer, PlatformError):
            return answer
        try:
            if answer is None:
                await self._eraser.erase_account(claimed.member)
            else:
                await self._eraser.prune_tracking_set(claimed.member)
                await self._db.run(keep_name(answer))
                now = self._db.context.now()
                await self._db.run(EnforcementSet().reschedule(claimed, next_check(was_due or now, now)))
        except (PlatformError, ConflictError, StoredDataError) as error:
            return error
        return None
