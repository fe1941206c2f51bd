"""Meetup to Redis: the coming events of all groups with their hosts and guests; events that are gone go."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from keywright import AsyncDatabase, Secret
from keywright_meetup.event_sync import Synced, sync
from keywright_meetup.events import Announced
from keywright_meetup.queries import tracked_events
from keywright_meetup.schema import EventId
from keywright_meetup.service.meetup_api import MeetupApi, StaleTokenError
from keywright_meetup.service.token_refresh import TokenRefresher

__all__ = ["MeetupSync"]

log = logging.getLogger("keywright.meetup")

T = TypeVar("T")


class MeetupSync:
    """`run` it with the lease of the task held."""

    def __init__(
        self,
        db: AsyncDatabase,
        api: MeetupApi,
        tokens: TokenRefresher,
        groups: Sequence[str],
        clock: Callable[[], datetime],
    ) -> None:
        self._db = db
        self._api = api
        self._tokens = tokens
        self._groups = tuple(groups)
        self._clock = clock

    async def run(self) -> Synced:
        """Sync all groups once. Nothing is written unless Meetup answered for all of them."""
        now = self._clock()
        announced: list[Announced] = []
        for group in self._groups:
            announced += await self._asked(partial(self._api.events, urlname=group, after=now))
        gone = await self._gone({each.event for each in announced}, now)
        done = await self._db.run(sync(announced, gone))
        for event, warning in done.warnings.items():
            log.warning("event %s %s", event, warning)
        for event, failure in done.failures.items():
            log.warning("event %s: %s", event, failure)
        return done

    async def _gone(self, listed: set[EventId], now: datetime) -> list[EventId]:
        """Return events that are missing from the lists, if Meetup confirms that they are cancelled."""
        tracked = await self._db.run(tracked_events())
        missing = sorted(
            event
            for event, details in tracked.items()
            if event not in listed and details.time > now and details.urlname in self._groups
        )
        return [event for event in missing if await self._asked(partial(self._api.is_gone, event=event))]

    async def _asked(self, ask: Callable[[Secret[str]], Awaitable[T]]) -> T:
        """Ask with the organizer's token; with a fresh one if that is not valid any more."""
        token = await self._tokens.organizer_token()
        try:
            return await ask(token)
        except StaleTokenError:
            return await ask(await self._tokens.fresh_token(instead_of=token))
