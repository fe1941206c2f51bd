"""Handling pending events, each until it is done: an outage or a death in between only delays it."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from keywright import AsyncDatabase, Claimed
from keywright.errors import EngineError, KeywrightError
from keywright_openmod.events import DeleteEvent, Event, decode_event
from keywright_openmod.recorder import EventOutcome, HandledEvent, Recorder
from keywright_openmod.service.deletions import schedule_check
from keywright_openmod.service.schema import PendingEvents
from keywright_service.errors import PlatformTroubleError

__all__ = ["EventHandler"]

log = logging.getLogger("keywright.openmod")

AT_ONCE = 8
AGAIN = timedelta(seconds=5)
LATER = timedelta(minutes=10)


class EventHandler:
    """Takes pending events, oldest first, some at once. Any number may run."""

    def __init__(self, db: AsyncDatabase, recorder: Recorder, *, idle: timedelta, hold: timedelta) -> None:
        self._db = db
        self._recorder = recorder
        self._idle = idle
        self._hold = hold

    async def step(self) -> timedelta:
        claimed = await self._db.run(PendingEvents().claim_due(AT_ONCE, self._hold))
        if not claimed:
            return self._idle
        done = await asyncio.gather(*(self._handle(each) for each in claimed), return_exceptions=True)
        failed = [each for each in done if isinstance(each, BaseException)]
        if failed:
            # Trouble is waited out, and would hide what is not.
            raise next((each for each in failed if not isinstance(each, KeywrightError)), failed[0])
        return timedelta()

    async def _handle(self, claimed: Claimed[str]) -> None:
        try:
            event = decode_event(claimed.member)
            handled = await self._handled(event)
        except EngineError:
            raise  # Redis is away: the claim runs out by itself
        except PlatformTroubleError:
            await self._put_off(claimed, AGAIN)
            raise
        except KeywrightError as error:
            # Of this event alone, as far as can be told: the others go on, and it stays.
            log.error("put off for %s: %s", LATER, error)
            await self._put_off(claimed, LATER)
            return
        if handled.outcome is EventOutcome.BUSY:
            await self._put_off(claimed, AGAIN)
        else:
            await self._db.run(PendingEvents().finish(claimed))

    async def _handled(self, event: Event) -> HandledEvent:
        # Before anything is kept of it, so that nothing can be kept that is never looked at again; and
        # after that, because a check that found nothing kept may have ended in between.
        await self._watch(event)
        handled = await self._recorder.handle(event)
        if handled.outcome is EventOutcome.RECORDED:
            await self._watch(event)
        if handled.post is not None:
            log.info("published %s for %s", handled.post, event.id)
        return handled

    async def _watch(self, event: Event) -> None:
        if not isinstance(event, DeleteEvent) and event.thing.startswith(("t1_", "t3_")):
            await self._db.run(schedule_check(event.thing, self._db.context.now()))

    async def _put_off(self, claimed: Claimed[str], pause: timedelta) -> None:
        await self._db.run(PendingEvents().reschedule(claimed, self._db.context.now() + pause))
