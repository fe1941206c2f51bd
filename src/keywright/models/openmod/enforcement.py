"""The content deletion policy: everyone who is known is looked up once a day, and forgotten when gone."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import NamedTuple

from keywright.engine import AsyncDatabase, Claimed
from keywright.errors import PlatformError
from keywright.keyspace import Call, gather
from keywright.models.openmod.accounts import special_account
from keywright.models.openmod.erasing import Eraser
from keywright.models.openmod.platform import Account, Platform
from keywright.models.openmod.schema import ComplianceList

__all__ = ["Batch", "Enforcer", "enrol", "next_check"]

BATCH = 50
PERIOD = timedelta(days=1)
HOLD = timedelta(minutes=15)
RETRY = timedelta(minutes=10)


def enrol(user: str, now: datetime) -> Call[bool]:
    """Have an account checked, a day from now at first; one that is enrolled keeps its time."""
    return ComplianceList().add(user, now + PERIOD, when="absent")


def next_check(due: datetime, now: datetime) -> datetime:
    """The first time after now that is whole days after the last one.

    From the time that was due, not from the time it was done: a check that a daily run makes some
    seconds late stays due for the next run, where "now and a day" would slip to the one after.
    """
    return due + PERIOD * max(1, (now - due) // PERIOD + 1)


class Batch(NamedTuple):
    """What one batch did: accounts that exist, accounts it forgot, and what the platform was unable to do."""

    active: int
    erased: int
    troubles: tuple[PlatformError, ...]
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

        An account about which the platform gave no certain answer is asked about again in `RETRY`. An
        account whose erasure is interrupted is due again when the hold ends, and continues from there.
        """
        await self._platform.me()
        # The lowest scores are those that are claimed: what they were is gone once they are.
        lowest, claimed = await self._db.run(
            gather(ComplianceList().range(0, self._batch - 1), ComplianceList().claim_due(self._batch, HOLD))
        )
        was_due = dict(lowest)
        answers = await asyncio.gather(*(self._lookup(each.member) for each in claimed))
        active, erased, troubles = 0, 0, []
        for each, answer in zip(claimed, answers, strict=True):
            if isinstance(answer, Account):
                await self._keep(each, was_due.get(each.member))
                active += 1
                continue
            trouble = answer or await self._forget(each.member)
            if trouble is None:
                erased += 1
                continue
            await self._db.run(ComplianceList().reschedule(each, self._db.context.now() + RETRY))
            troubles.append(trouble)
        more = await self._db.run(ComplianceList().due_count())
        return Batch(active, erased, tuple(troubles), more > 0)

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
        await self._db.run(ComplianceList().reschedule(claimed, next_check(was_due or now, now)))

    async def _forget(self, user: str) -> PlatformError | None:
        try:
            await self._eraser.account(user)
        except PlatformError as error:
            return error
        return None
