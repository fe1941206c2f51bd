"""Which process runs a shard, and where its session is resumed: both in Redis, so that a restart goes on."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from time import monotonic
from typing import Any

from keywright import AsyncDatabase, Call, new_token
from keywright.errors import EngineError
from keywright.operations import commit
from keywright_discord.gateway.schema import Applied, SessionState, ShardApplied, ShardOwner, ShardSession
from keywright_service.backoff import retry

__all__ = ["HOLD", "Tenancy"]

HOLD = timedelta(seconds=15)


class Tenancy:
    """A process's claim to one shard: a lease that is renewed, and the session that it alone may write.

    A process that dies loses the lease after `hold`; one that stalls may find on waking that another has
    taken over, and can then no longer write the session. Before it writes the cache it waits for `assured`.
    """

    def __init__(
        self, db: AsyncDatabase, bot: str, shard: int, shards: int, *, hold: timedelta = HOLD
    ) -> None:
        self.shard = shard
        self.elsewhere = False
        """Whether another process had the shard when it was last looked."""
        self._db = db
        self._owner = ShardOwner(bot, shards, shard)
        self._session = ShardSession(bot, shards, shard)
        self._applied = ShardApplied(bot, shards, shard)
        self._hold = hold
        self._token = new_token()
        self._ours_until = 0.0

    async def begin(self) -> None:
        """Wait until the shard is ours."""
        while not await self._renewed():  # noqa: ASYNC110  # another process holds it
            await asyncio.sleep(self._hold.total_seconds() / 10)

    async def keep(self) -> None:
        """Renew for as long as it is ours; returns when another has taken over."""
        while await self._renewed():  # noqa: ASYNC110  # another process may take it
            await asyncio.sleep(self._hold.total_seconds() / 3)

    async def assured(self) -> None:
        """Wait until the shard is surely ours, which costs nothing while `keep` renews in time.

        Does not return when another has it: `keep` does, and ends what goes on here.
        """
        if monotonic() >= self._ours_until and not await self._renewed():
            await asyncio.Event().wait()

    async def end(self) -> None:
        """Let the next have it at once."""
        await self._db.run(self._owner.release(self._token))

    async def load(self) -> SessionState | None:
        """The session as it was last written."""
        return await retry(
            lambda: self._db.run(self._session.get()),
            f"read the session of shard {self.shard}",
            on=EngineError,
        )

    async def applied(self, session: str) -> int:
        """The last event of a session that the cache has; 0 for none."""
        found = await self._db.run(self._applied.get())
        return found.sequence if found is not None and found.session == session else 0

    def mark(self, session: str, sequence: int) -> Call[Any]:
        """Note how far the cache is."""
        return self._applied.set(Applied(session, sequence))

    async def save(self, state: SessionState) -> bool:
        """Write the session; False, and nothing written, when the shard is not ours (any more)."""
        call = commit(
            "save the session of shard",
            [self._owner.held_by(self._token)],
            [self._session.put(state)],
            subject=self.shard,
        )
        return bool(await self._db.run(call)) or (await self._renewed() and bool(await self._db.run(call)))

    async def _renewed(self) -> bool:
        ours = await retry(self._acquired, f"hold shard {self.shard}", on=EngineError)
        self.elsewhere = not ours
        return ours

    async def _acquired(self) -> bool:
        # Acquiring renews too, and takes back what ran out while Redis was away and nobody else took.
        asked_at = monotonic()
        ours = await self._db.run(self._owner.acquire(self._token, self._hold))
        self._ours_until = asked_at + self._hold.total_seconds() if ours else 0.0
        return ours
