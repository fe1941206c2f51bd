"""The lease of a shard and its session, both in Redis, so that a restarted process can resume."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from keywright import AsyncDatabase, Call, new_token
from keywright.errors import EngineError
from keywright.operations import commit
from keywright_discord.gateway.schema import Applied, SessionState, ShardApplied, ShardOwner, ShardSession
from keywright_service.backoff import retry

__all__ = ["HOLD", "Tenancy", "may_resume_at"]

HOLD = timedelta(seconds=15)

_DISCORD_HOST = re.compile(r"([a-z0-9-]+\.)+discord\.gg")
_DEFAULT_PORTS = {"wss": 443, "ws": 80}


def may_resume_at(url: str, gateway_url: str) -> bool:
    """Return whether the token may be sent to a stored resume address: at the gateway itself or at Discord.

    Any program that can write to this Redis can store an address, and a resume sends the token there.
    """
    if url == gateway_url:
        return True
    try:
        found, gateway = _endpoint(url), _endpoint(gateway_url)
    except ValueError:
        return False
    if "@" in url:
        return False
    scheme, host, port = found
    return found == gateway or (scheme == "wss" and port == 443 and bool(_DISCORD_HOST.fullmatch(host)))


def _endpoint(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port. Raise ValueError if the URL is malformed."""
    parts = urlsplit(url)
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise ValueError("not the URL of a gateway")
    return parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS[parts.scheme]


class Tenancy:
    """A process's lease of one shard, and the session that only its holder may write.

    A process that dies loses the lease after `hold`. One that stalls for longer may find that another process
    has taken over, and can then no longer write the session. Before it writes the cache it waits for
    `assured`.
    """

    def __init__(
        self, db: AsyncDatabase, bot: str, shard: int, shards: int, *, hold: timedelta = HOLD
    ) -> None:
        self.shard = shard
        self.elsewhere = False
        """Whether another process had the shard at the last attempt."""
        self._db = db
        self._owner = ShardOwner(bot, shards, shard)
        self._session = ShardSession(bot, shards, shard)
        self._applied = ShardApplied(bot, shards, shard)
        self._hold = hold
        self.renew_seconds = hold.total_seconds() / 3
        self._token = new_token()
        self._ours_until = 0.0

    async def begin(self) -> None:
        """Wait until this process holds the lease."""
        while not await self._renewed():  # noqa: ASYNC110  # another process holds it
            await asyncio.sleep(self._hold.total_seconds() / 10)

    async def keep(self) -> None:
        """Renew the lease. Return when another process has taken over."""
        while await self._renewed():  # noqa: ASYNC110  # another process may take it
            await asyncio.sleep(self.renew_seconds)

    async def assured(self) -> None:
        """Wait until this process certainly holds the lease, which is immediate while `keep` renews in time.

        Do not return if another process has it: `keep` returns, and the caller is cancelled.
        """
        if monotonic() >= self._ours_until and not await self._renewed():
            await asyncio.Event().wait()

    def doubt(self) -> None:
        """Let the next `assured` ask Redis: it failed, and may have lost the lease with its other data."""
        self._ours_until = 0.0

    async def end(self) -> None:
        """Release the lease, so that another process can take over at once."""
        await self._db.run(self._owner.release(self._token))

    async def load(self) -> SessionState | None:
        """Return the session as it was last written, or None."""
        return await retry(
            lambda: self._db.run(self._session.get()),
            f"read the session of shard {self.shard}",
            on=EngineError,
        )

    async def applied(self, session: str) -> int:
        """Return the sequence of the last event of a session that the cache has; 0 for none."""
        found = await self._db.run(self._applied.get())
        return found.sequence if found is not None and found.session == session else 0

    def mark(self, session: str, sequence: int) -> Call[Any]:
        """Return the call that stores the progress of the cache."""
        return self._applied.set(Applied(session, sequence))

    async def save(self, state: SessionState) -> bool:
        """Write the session. Return False, without writing, if another process holds the lease."""
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
        # Acquiring renews too, and takes back a lease that expired during an outage.
        asked_at = monotonic()
        ours = await self._db.run(self._owner.acquire(self._token, self._hold))
        self._ours_until = asked_at + self._hold.total_seconds() if ours else 0.0
        return ours
