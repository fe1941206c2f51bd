"""The feed poller: turns new entries of a feed into pending events.

Events are pending before the position moves, so a process that dies in between reads some of them again after
a restart, and loses none. The markers of the model recognise events that are handled twice. A poll starts a
little before the position, because an entry may become visible after a newer one. Positions only move on: if
one is missing or moved back, Redis was emptied or restored, and entries that were read before are read again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from keywright import AsyncDatabase
from keywright.operations import absent, commit, record_equals
from keywright_openmod.errors import MalformedEventError
from keywright_openmod.events import decode_event
from keywright_openmod.schema import MARKED_FOR
from keywright_openmod.service.feeds import Feed, FeedEntry
from keywright_openmod.service.schema import FeedPosition, PendingEvents, Position

__all__ = ["FeedPoller"]

log = logging.getLogger("keywright.openmod")

OVERLAP = timedelta(minutes=2)
MILLISECOND = timedelta(milliseconds=1)
# A marker is not relied on for this long before it may expire: its time starts when the event is handled.
MARKER_MARGIN = timedelta(days=1)
CHUNK = 500
# The listings of Reddit end about here, however many entries exist; only the moderation log continues.
LISTING_END = 900


class FeedPoller:
    """Polls one feed of one subreddit. Several may run: an event that two of them read is pending once."""

    def __init__(
        self, db: AsyncDatabase, feed: Feed, subreddit: str, *, backfill: timedelta, every: timedelta
    ) -> None:
        self._db = db
        self._feed = feed
        self._key = FeedPosition(subreddit.lower(), feed.name)
        self._backfill = backfill
        self._every = every
        self._seen: dict[str, datetime] = {}
        self._last: Position | None = None

    async def poll(self) -> timedelta:
        """Make all new entries pending, move the position, and return the pause until the next poll."""
        position = await self._position()
        entries = await self._since(self._horizon(position))
        fresh = [each for each in entries if each.id not in self._seen]
        await self._make_pending(fresh)
        newest = max(fresh, key=lambda each: each.at, default=None)
        if newest is not None and newest.at >= position.at:
            # Another process may have moved it on meanwhile: it must not move back.
            moved = Position(newest.at, newest.id)
            unmoved = record_equals(self._key, position)
            if await self._db.run(commit("move", [unmoved], [self._key.put(moved)])):
                self._last = moved
            position = moved
        self._seen |= {each.id: each.at for each in fresh}
        self._seen = {name: at for name, at in self._seen.items() if at >= position.at - OVERLAP}
        return self._every

    async def _position(self) -> Position:
        found = await self._db.run(self._key.get())
        # Stored times are whole milliseconds.
        if self._last is not None and (found is None or self._last.at - found.at >= MILLISECOND):
            log.warning("%s: Redis was emptied or restored; entries are read again", self._feed.name)
            self._seen.clear()
        if found is None:
            found = Position(self._db.context.now() - self._backfill, "")
            await self._db.run(commit("begin", [absent(self._key)], [self._key.put(found)]))
        self._last = found
        return found

    def _horizon(self, position: Position) -> datetime:
        """Return the time to read back to: a little before the position, while its events have markers."""
        marked_since = self._db.context.now() - MARKED_FOR + MARKER_MARGIN
        return position.at - OVERLAP if position.at > marked_since else position.at + MILLISECOND

    async def _since(self, horizon: datetime) -> list[FeedEntry]:
        """Return the entries since this time, oldest first."""
        entries: list[FeedEntry] = []
        async for entry in self._feed.newest_first():
            if entry.at < horizon:
                break
            entries.append(entry)
        else:
            if len(entries) >= LISTING_END and self._feed.name != "log":
                log.warning("%s: Reddit's listing ended before the last position", self._feed.name)
        return entries[::-1]

    async def _make_pending(self, entries: list[FeedEntry]) -> None:
        times = dict(self._events(entries))
        due = list(times.items())
        for start in range(0, len(due), CHUNK):
            chunk = dict(due[start : start + CHUNK])
            # A pending event may be claimed: then its time is the end of the claim, and must stay.
            await self._db.run(PendingEvents().add_many(chunk, when="absent"))

    def _events(self, entries: Iterable[FeedEntry]) -> Iterable[tuple[str, datetime]]:
        for entry in entries:
            if entry.event is None:
                continue
            try:
                decode_event(entry.event)
            except MalformedEventError as error:
                log.warning("%s: entry %s was left out: %s", self._feed.name, entry.id, error)
                continue
            yield msgspec.json.encode(entry.event).decode(), entry.at
