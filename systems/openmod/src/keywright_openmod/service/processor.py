"""The event processor: handles pending events, and retries each until it is done."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from keywright import AsyncDatabase, Claimed
from keywright.errors import EngineError, KeywrightError
from keywright_openmod.events import DeleteEvent, Event, decode_event
from keywright_openmod.recorder import EventOutcome, HandledEvent, Recorder
from keywright_openmod.service.deletions import schedule_check
from keywright_openmod.service.metrics import OpenModMetrics
from keywright_openmod.service.schema import PendingEvents
from keywright_service.errors import PlatformTroubleError

__all__ = ["EventProcessor"]

log = logging.getLogger("keywright.openmod")

AT_ONCE = 8
RETRY = timedelta(seconds=5)
RETRY_REFUSED = timedelta(minutes=10)


class EventProcessor:
    """Handles pending events, oldest first, `AT_ONCE` concurrently. Several may run."""

    def __init__(
        self,
        db: AsyncDatabase,
        recorder: Recorder,
        *,
        idle: timedelta,
        hold: timedelta,
        metrics: OpenModMetrics | None = None,
    ) -> None:
        self._db = db
        self._recorder = recorder
        self._metrics = OpenModMetrics() if metrics is None else metrics
        self._idle = idle
        self._hold = hold

    async def process_batch(self) -> timedelta:
        """Handle some events that are due, and return the pause until the next batch."""
        claimed = await self._db.run(PendingEvents().claim_due(AT_ONCE, self._hold))
        if not claimed:
            return self._idle
        done = await asyncio.gather(*(self._process(each) for each in claimed), return_exceptions=True)
        failed = [each for each in done if isinstance(each, BaseException)]
        if failed:
            # An outage is retried, so it must not hide a bug.
            raise next((each for each in failed if not isinstance(each, KeywrightError)), failed[0])
        return timedelta()

    async def _process(self, claimed: Claimed[str]) -> None:
        try:
            event = decode_event(claimed.member)
            handled = await self._handle(event)
        except EngineError:
            raise  # without Redis nothing can be rescheduled: the claim expires
        except PlatformTroubleError:
            await self._retry_after(claimed, RETRY)
            raise
        except KeywrightError as error:
            # Probably an error of this event alone: it stays pending, and the others continue.
            log.error("retrying in %s: %s", RETRY_REFUSED, error)
            await self._retry_after(claimed, RETRY_REFUSED)
            return
        if handled.outcome is EventOutcome.BUSY:
            await self._retry_after(claimed, RETRY)
        else:
            await self._db.run(PendingEvents().finish(claimed))

    async def _handle(self, event: Event) -> HandledEvent:
        # Schedule the check before anything is stored, so that nothing is stored without one; and again
        # afterwards, because a check that found nothing stored may have ended in between.
        await self._schedule_check(event)
        handled = await self._recorder.handle(event)
        self._metrics.handled(handled)
        if handled.outcome is EventOutcome.RECORDED:
            await self._schedule_check(event)
        if handled.post is not None:
            log.info("published %s for %s", handled.post, event.id)
        return handled

    async def _schedule_check(self, event: Event) -> None:
        if not isinstance(event, DeleteEvent) and event.thing.startswith(("t1_", "t3_")):
            await self._db.run(schedule_check(event.thing, self._db.context.now()))

    async def _retry_after(self, claimed: Claimed[str], pause: timedelta) -> None:
        await self._db.run(PendingEvents().reschedule(claimed, self._db.context.now() + pause))
