"""The search for deleted submissions. Reddit does not list them, so stored ones are looked up once a day."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from keywright import AsyncDatabase, Call, Claimed, gather
from keywright.errors import KeywrightError, StoredDataError
from keywright_openmod.enforcement import PERIOD, next_check
from keywright_openmod.events import EventSource, decode_event
from keywright_openmod.platform import Thing
from keywright_openmod.recorder import EventOutcome, Recorder
from keywright_openmod.schema import CacheHash, ModActionSet
from keywright_openmod.service.schema import ThingChecks
from keywright_service.errors import PlatformError

__all__ = ["DeletionChecker", "DeletionCheckerBatch", "schedule_check", "schedule_missing_checks"]

log = logging.getLogger("keywright.openmod")

BATCH = 99
HOLD = timedelta(minutes=15)
RETRY = timedelta(minutes=10)
PAGE = 500


class ThingSource(Protocol):
    async def things(self, names: list[str]) -> dict[str, Thing | None]:
        """Return posts and comments, None for deleted ones. PlatformTroubleError: nothing is known."""
        ...


class DeletionCheckerBatch(NamedTuple):
    """The result of one batch: submissions that exist, submissions that were erased, and errors."""

    existing: int
    erased: int
    troubles: tuple[KeywrightError, ...]
    more: bool
    """Whether more submissions are due already."""


def schedule_check(thing: str, now: datetime) -> Call[bool]:
    """Schedule the first check of a submission for a day from now. A scheduled one keeps its time."""
    return ThingChecks().add(thing, now + PERIOD, when="absent")


async def schedule_missing_checks(db: AsyncDatabase) -> int:
    """Schedule stored submissions that have no check, as of an earlier version. Return their number."""
    scheduled = 0
    page: list[str] = []
    async for thing in _stored_submissions(db):
        page.append(thing)
        if len(page) == PAGE:
            scheduled += await db.run(_spread(page, db.context.now()))
            page = []
    return scheduled + (await db.run(_spread(page, db.context.now())) if page else 0)


async def _stored_submissions(db: AsyncDatabase) -> AsyncIterator[str]:
    """Yield every submission with extracts or a cached copy, some of them twice."""
    async for disclosed in db.scan(ModActionSet):
        if not disclosed.thing.startswith("t2_"):
            yield disclosed.thing
    async for cached in db.scan(CacheHash):
        if not cached.thing.startswith("t2_"):
            yield cached.thing


def _spread(things: Iterable[str], now: datetime) -> Call[int]:
    """Schedule the checks evenly over the next day."""
    times = {thing: now + PERIOD * (place % PAGE + 1) / PAGE for place, thing in enumerate(things)}
    return ThingChecks().add_many(times, when="absent")


class DeletionChecker:
    """Checks submissions that are due. Several may run: each claims different submissions."""

    def __init__(self, db: AsyncDatabase, platform: ThingSource, recorder: Recorder) -> None:
        self._db = db
        self._platform = platform
        self._recorder = recorder

    async def run_batch(self) -> DeletionCheckerBatch:
        """Check up to a batch of submissions that are due, and erase those that their authors deleted.

        If the platform does not answer, nothing is erased, and all of them are retried after `RETRY`.
        """
        # A claim overwrites the time that was due, so read it first: the lowest scores are claimed.
        lowest, claimed = await self._db.run(
            gather(ThingChecks().range(0, BATCH - 1), ThingChecks().claim_due(BATCH, HOLD))
        )
        if not claimed:
            return DeletionCheckerBatch(0, 0, (), more=False)
        try:
            found = await self._platform.things([each.member for each in claimed])
        except PlatformError as error:
            await asyncio.gather(*(self._retry_later(each) for each in claimed))
            return DeletionCheckerBatch(0, 0, (error,), await self._more())
        was_due = dict(lowest)
        existing, erased, troubles = 0, 0, []
        for each in claimed:
            if found[each.member] is not None:
                await self._keep(each, was_due.get(each.member))
                existing += 1
                continue
            trouble = await self._erase(each)
            troubles += [trouble] if trouble else []
            erased += not trouble
        return DeletionCheckerBatch(existing, erased, tuple(troubles), await self._more())

    async def _keep(self, claimed: Claimed[str], was_due: datetime | None) -> None:
        """Schedule the next check, or none if nothing is stored of the submission."""
        cached, disclosed = await self._db.run(
            gather(CacheHash(claimed.member).exists(), ModActionSet(claimed.member).exists())
        )
        if not cached and not disclosed:
            await self._db.run(ThingChecks().finish(claimed))
            return
        now = self._db.context.now()
        await self._db.run(ThingChecks().reschedule(claimed, next_check(was_due or now, now)))

    async def _erase(self, claimed: Claimed[str]) -> PlatformError | StoredDataError | None:
        """Let the recorder handle a deletion event. Return the error if that failed."""
        thing = claimed.member
        kind, field = ("PostDelete", "postId") if thing.startswith("t3_") else ("CommentDelete", "commentId")
        try:
            handled = await self._recorder.handle(
                decode_event({"type": kind, field: thing, "source": int(EventSource.USER)})
            )
        except (PlatformError, StoredDataError) as error:
            await self._retry_later(claimed)
            return error
        if handled.outcome is EventOutcome.BUSY:
            await self._retry_later(claimed)
        else:
            log.info("erased %s: its author deleted it", thing)
            await self._db.run(ThingChecks().finish(claimed))
        return None

    async def _retry_later(self, claimed: Claimed[str]) -> None:
        await self._db.run(ThingChecks().reschedule(claimed, self._db.context.now() + RETRY))

    async def _more(self) -> bool:
        return await self._db.run(ThingChecks().due_count()) > 0
