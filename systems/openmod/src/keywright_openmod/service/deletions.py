"""Finding out what authors deleted. Reddit lists it nowhere, so what is kept is looked at once a day."""

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

__all__ = ["Checked", "DeletionFinder", "schedule_check", "survey"]

log = logging.getLogger("keywright.openmod")

BATCH = 99
HOLD = timedelta(minutes=15)
RETRY = timedelta(minutes=10)
PAGE = 500


class Things(Protocol):
    async def things(self, names: list[str]) -> dict[str, Thing | None]:
        """The posts and comments; None for one that is gone. PlatformTroubleError: nothing is known."""
        ...


class Checked(NamedTuple):
    """What a batch found: submissions that are there, those it forgot, and those it was unable to."""

    there: int
    forgotten: int
    troubles: tuple[KeywrightError, ...]
    more: bool


def schedule_check(thing: str, now: datetime) -> Call[bool]:
    """Have a submission looked at, a day from now at first; one that is scheduled keeps its time."""
    return ThingChecks().add(thing, now + PERIOD, when="absent")


async def survey(db: AsyncDatabase) -> int:
    """Schedule what an earlier version, or another program, keeps and nobody looks at; how many."""
    scheduled = 0
    page: list[str] = []
    async for thing in _kept(db):
        page.append(thing)
        if len(page) == PAGE:
            scheduled += await db.run(_spread(page, db.context.now()))
            page = []
    return scheduled + (await db.run(_spread(page, db.context.now())) if page else 0)


async def _kept(db: AsyncDatabase) -> AsyncIterator[str]:
    """Every submission with extracts or a cached copy; some come twice."""
    async for disclosed in db.scan(ModActionSet):
        if not disclosed.thing.startswith("t2_"):
            yield disclosed.thing
    async for cached in db.scan(CacheHash):
        if not cached.thing.startswith("t2_"):
            yield cached.thing


def _spread(things: Iterable[str], now: datetime) -> Call[int]:
    times = {thing: now + PERIOD * (place % PAGE + 1) / PAGE for place, thing in enumerate(things)}
    return ThingChecks().add_many(times, when="absent")


class DeletionFinder:
    """Looks at what is due. Any number may run: they claim different submissions."""

    def __init__(self, db: AsyncDatabase, platform: Things, recorder: Recorder) -> None:
        self._db = db
        self._platform = platform
        self._recorder = recorder

    async def run_batch(self) -> Checked:
        """Look at up to a batch of what is due, and forget what its author deleted.

        Without an answer nothing is forgotten, and all of it is looked at again in `RETRY`.
        """
        lowest, claimed = await self._db.run(
            gather(ThingChecks().range(0, BATCH - 1), ThingChecks().claim_due(BATCH, HOLD))
        )
        if not claimed:
            return Checked(0, 0, (), more=False)
        try:
            found = await self._platform.things([each.member for each in claimed])
        except PlatformError as error:
            await asyncio.gather(*(self._again(each) for each in claimed))
            return Checked(0, 0, (error,), await self._more())
        was_due = dict(lowest)
        there, forgotten, troubles = 0, 0, []
        for each in claimed:
            if found[each.member] is not None:
                await self._keep(each, was_due.get(each.member))
                there += 1
                continue
            trouble = await self._forget(each)
            troubles += [trouble] if trouble else []
            forgotten += not trouble
        return Checked(there, forgotten, tuple(troubles), await self._more())

    async def _keep(self, claimed: Claimed[str], was_due: datetime | None) -> None:
        cached, disclosed = await self._db.run(
            gather(CacheHash(claimed.member).exists(), ModActionSet(claimed.member).exists())
        )
        if not cached and not disclosed:
            await self._db.run(ThingChecks().finish(claimed))
            return
        now = self._db.context.now()
        await self._db.run(ThingChecks().reschedule(claimed, next_check(was_due or now, now)))

    async def _forget(self, claimed: Claimed[str]) -> PlatformError | StoredDataError | None:
        try:
            handled = await self._recorder.handle(decode_event(_deletion(claimed.member)))
        except (PlatformError, StoredDataError) as error:
            await self._again(claimed)
            return error
        if handled.outcome is EventOutcome.BUSY:
            await self._again(claimed)
        else:
            log.info("forgot %s: its author deleted it", claimed.member)
            await self._db.run(ThingChecks().finish(claimed))
        return None

    async def _again(self, claimed: Claimed[str]) -> None:
        await self._db.run(ThingChecks().reschedule(claimed, self._db.context.now() + RETRY))

    async def _more(self) -> bool:
        return await self._db.run(ThingChecks().due_count()) > 0


def _deletion(thing: str) -> dict[str, object]:
    kind, field = ("PostDelete", "postId") if thing.startswith("t3_") else ("CommentDelete", "commentId")
    return {"type": kind, field: thing, "source": int(EventSource.USER)}
