"""The content deletion policy: everyone who is known is looked up once a day, and forgotten when gone."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import NamedTuple

from keywright import AsyncDatabase, Call, Claimed, gather
from keywright.errors import ConflictError, KeywrightError, StoredDataError
from keywright_openmod.accounts import special_account
from keywright_openmod.erasure import Eraser
from keywright_openmod.platform import Account, Platform
from keywright_openmod.schema import EnforcementSet
from keywright_service.errors import PlatformError

__all__ = ["Batch", "Enforcer", "enrol", "next_check"]

BATCH = 50
PERIOD = timedelta(days=1)
HOLD = timedelta(minutes=15)
RETRY = timedelta(minutes=10)


def enrol(user: str, now: datetime) -> Call[bool]:
    """Have an account checked, a day from now at first; one that is enrolled keeps its time."""
    return EnforcementSet().add(user, now + PERIOD, when="absent")


def next_check(due: datetime, now: datetime) -> datetime:
    """The first time after now that is whole days after the last one.

    From the time that was due, not from the time it was done: a check that a daily run makes some
    seconds late stays due for the next run, where "now and a day" would slip to the one after.
    """
    return due + PERIOD * max(1, (now - due) // PERIOD + 1)


class Batch(NamedTuple):
    """What one batch did: accounts that exist, accounts it forgot, and what kept it from either."""

    active: int
    erased: int
    troubles: tuple[KeywrightError, ...]
    more: bool
    """Whether more is due already."""


class Enforcer:
    """Checks what is due. Any number may run: they claim different accounts, for `HOLD` at a time."""

    def __init__(self, db: AsyncDatabase, platform: Platform, *, batch: int = BATCH) -> None:
        self._db = db
        self._platform = platform
        self._eraser = Eraser(db, platform)
        self._batch = batch

    async def run_batch(self) -> Batch:
        """Check up to a batch of accounts that are due, and forget those that are gone.

        An account about which the platform gave no certain answer, or that cannot be erased just now, is
        asked about again in `RETRY` and does not keep the others. An account whose erasure is interrupted
        is due again when the hold ends, and continues from there.
        """
        await self._platform.me()
        # The lowest scores are those that are claimed: what they were is gone once they are.
        lowest, claimed = await self._db.run(
            gather(EnforcementSet().range(0, self._batch - 1), EnforcementSet().claim_due(self._batch, HOLD))
        )
        was_due = dict(lowest)
        answers = await asyncio.gather(*(self._lookup(each.member) for each in claimed))
        active, erased, troubles = 0, 0, []
        for each, answer in zip(claimed, answers, strict=True):
            trouble = await self._settled(each, answer, was_due.get(each.member))
            if trouble is not None:
                await self._db.run(EnforcementSet().reschedule(each, self._db.context.now() + RETRY))
                troubles.append(trouble)
            elif answer is None:
                erased += 1
            else:
                active += 1
        more = await self._db.run(EnforcementSet().due_count())
        return Batch(active, erased, tuple(troubles), more > 0)

    async def _settled(
        self, claimed: Claimed[str], answer: Account | PlatformError | None, was_due: datetime | None
    ) -> KeywrightError | None:
        """Keep the account or forget it; why not, where that failed for this one."""
        if isinstance(answer, PlatformError):
            return answer
        try:
            if answer is None:
                await self._eraser.account(claimed.member)
            else:
                await self._keep(claimed, was_due)
        except (PlatformError, ConflictError, StoredDataError) as error:
            return error
        return None

    async def _lookup(self, user: str) -> Account | PlatformError | None:
        """An account, None when it is certain that there is none, or why that is not certain."""
        special = special_account(user)
        if special is not None:
            return special
        try:
            return await self._platform.account(user)
        except PlatformError as error:
            return error

    async def _keep(self, claimed: Claimed[str], was_due: datetime | None) -> None:
        await self._eraser.outlived(claimed.member)
        now = self._db.context.now()
        await self._db.run(EnforcementSet().reschedule(claimed, next_check(was_due or now, now)))
