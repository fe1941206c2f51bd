"""Mutual exclusion among the processes of a service, by a lease in Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from keywright import AsyncDatabase, Lease, new_token

__all__ = ["ProcessLock"]


class ProcessLock:
    """`async with lock.held() as ours:` lets one process in, and yields False to the others.

    The lease expires after `hold`, so a process that dies is replaced. It saves work and prevents
    doubled work; where a process that stalls beyond the hold would do harm, protect its writes as well, with
    `Lease.held_by` in a commit.
    """

    def __init__(
        self,
        db: AsyncDatabase,
        lease: Lease,
        hold: timedelta,
        *,
        keep: bool = False,
        retry: timedelta = timedelta(seconds=30),
    ) -> None:
        self.ours = False
        """Whether this process had the lease when it last asked."""
        self.retry = retry
        """When to ask again if another process has it."""
        self._db = db
        self._lease = lease
        self._hold = hold
        self._keep = keep
        self._token = new_token()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[bool]:
        """Take the lease, or renew it; release it at the end of the block unless `keep` is set."""
        try:
            self.ours = False
            self.ours = await self._db.run(self._lease.acquire(self._token, self._hold))
            yield self.ours
        finally:
            # Also where the reply to `acquire` was never received: the lease may be ours.
            if not self._keep:
                await self.release()

    async def release(self) -> None:
        """Let another process have it at once. Does nothing to a lease that another process has."""
        self.ours = False
        await self._db.run(self._lease.release(self._token))
