"""Reading feeds into the pending events, so that a restart goes on and nothing is lost.

Events are pending before the position moves: a process that dies between reads some of them again. What
is handled twice is recognised by the model's markers. A feed is read back to a little before its position,
because an entry may become visible after a newer one did.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from keywright import AsyncDatabase
from keywright_openmod.errors import MalformedEventError
from keywright_openmod.events import decode_event
from keywright_openmod.schema import MARKED_FOR
from keywright_openmod.service.feeds import Entry, Feed
from keywright_openmod.service.schema import FeedPosition, PendingEvents, Position

__all__ = ["FeedReader"]

log = logging.getLogger("keywright.openmod")

OVERLAP = timedelta(minutes=2)
MILLISECOND = timedelta(milliseconds=1)
# For how long before a marker may end it is not relied upon; it lasts from when the event was handled.
FORGETTING = timedelta(days=1)
CHUNK = 500
# Reddit's listings end about here, however much there is; only the moderation log goes on.
LISTING_END = 900


class FeedReader:
    """Reads one feed of one subreddit. Any number may: what two of them read is pending once."""

    def __init__(
        self, db: AsyncDatabase, feed: Feed, subreddit: str, *, backfill: timedelta, every: timedelta
    ) -> None:
        self._db = db
        self._feed = feed
        self._key = FeedPosition(subreddit.lower(), feed.name)
        self._backfill = backfill
        self._every = every
        self._seen: dict[str, datetime] = {}

    async def step(self) -> timedelta:
        """Make everything new pending, then move the position."""
        position = await self._position()
        entries = await self._since(self._horizon(position))
        fresh = [each for each in entries if each.id not in self._seen]
        await self._make_pending(fresh)
        newest = max(fresh, key=lambda each: each.at, default=None)
        if newest is not None and newest.at >= position.at:
            position = Position(newest.at, newest.id)
            await self._db.run(self._key.put(position))
        self._seen |= {each.id: each.at for each in fresh}
        self._seen = {name: at for name, at in self._seen.items() if at >= position.at - OVERLAP}
        return self._every

    async def _position(self) -> Position:
        found = await self._db.run(self._key.get())
        if found is None:
            found = Position(self._db.context.now() - self._backfill, "")
            await self._db.run(self._key.put(found))
        return found

    def _horizon(self, position: Position) -> datetime:
        """Where to read back to: a little before the position, while what was handled there is marked."""
        marked_since = self._db.context.now() - MARKED_FOR + FORGETTING
        return position.at - OVERLAP if position.at > marked_since else position.at + MILLISECOND

    async def _since(self, horizon: datetime) -> list[Entry]:
        """Oldest first."""
        entries: list[Entry] = []
        async for entry in self._feed.newest_first():
            if entry.at < horizon:
                break
            entries.append(entry)
        else:
            self._note_end(len(entries))
        return entries[::-1]

    def _note_end(self, number: int) -> None:
        """A listing that ended before the position was reached: what lay between was never shown."""
        if number >= LISTING_END and self._feed.name != "log":
            log.warning("%s: more happened than Reddit lists; some was never shown", self._feed.name)

    async def _make_pending(self, entries: list[Entry]) -> None:
        times = dict(self._events(entries))
        due = list(times.items())
        for start in range(0, len(due), CHUNK):
            chunk = dict(due[start : start + CHUNK])
            # One that is pending already may be claimed: its time is the end of the claim.
            await self._db.run(PendingEvents().add_many(chunk, when="absent"))

    def _events(self, entries: Iterable[Entry]) -> Iterable[tuple[str, datetime]]:
        for entry in entries:
            if entry.event is None:
                continue
            try:
                decode_event(entry.event)
            except MalformedEventError as error:
                log.warning("%s: entry %s was left out: %s", self._feed.name, entry.id, error)
                continue
            yield msgspec.json.encode(entry.event).decode(), entry.at
