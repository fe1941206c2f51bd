"""Whether the cache is the one that a shard's session fills.

A session sends each guild once. So a cache that was purged, flushed, replaced or filled by another session is
completed by a new session only: its events would update guilds that are not there. The mark that shows it is
kept beside the cache, and lost with it.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

from keywright import AsyncDatabase, Call, Value, gather
from keywright_discord.cache_session import FilledBy
from keywright_discord.gateway.schema import ShardReset

__all__ = ["CacheWatch"]

# Two bots, or two copies with different stores, that share a cache would replace each other's mark forever,
# and use up the session starts of the day.
FOREIGN_PAUSE_SECONDS = 3600.0


class CacheWatch:
    """The mark of one shard's cache, and the requests of `keywright gateway reset`."""

    def __init__(
        self,
        db: AsyncDatabase,
        bot: str,
        shard: int,
        shards: int,
        mark: Value[FilledBy] | None,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.trouble = ""
        """Why the cache is not reliable; empty if it is."""
        self.refills = 0
        """How often a new session was begun for the sake of the cache."""
        self.last_reason = ""
        self._db = db
        self._bot = bot
        self._mark = mark
        self._reset = ShardReset(bot, shards, shard)
        self._clock = clock
        self._foreign_at: float | None = None

    async def needs_session(self, session: str) -> str | None:
        """Return why a new session must replace this one, or None: it is the one that fills the cache."""
        reset = await self._db.run(self._reset.get())
        if reset is not None:
            return "a reset was requested"
        if self._mark is None:
            return None
        found = await self._db.run(self._mark.get())
        if found == FilledBy(self._bot, session):
            self.trouble = ""
            return None
        if found is None:
            return "the cache was emptied or replaced"
        filler = f"bot {found.bot}" if found.bot != self._bot else "another session of this bot"
        now = self._clock()
        if self._foreign_at is not None and now - self._foreign_at < FOREIGN_PAUSE_SECONDS:
            self.trouble = f"{filler} writes to the same cache; give each its own cache.prefix"
            return None
        self._foreign_at = now
        return f"{filler} has filled the cache"

    def refill(self, reason: str) -> None:
        """Count a new session that replaces another for this reason."""
        self.refills += 1
        self.last_reason = reason

    def begun(self, session: str) -> Call[Any]:
        """Return the call that marks the cache as filled by a session that begins, and ends a reset."""
        cleared = self._reset.delete()
        if self._mark is None:
            return cleared
        return gather(cleared, self._mark.set(FilledBy(self._bot, session)))
