"""The names of consumers: constant across restarts, and unique among live processes.

`settings.client` is the name if it is set; the deployment keeps it unique then. Otherwise a process takes the
first free slot of its host, `<host>-0`, `<host>-1`, …, and holds it by a lease. A process that ends normally
releases its slot. After a crash the slot is free when the lease expires, and until then a restarted process
takes another, so that the unsettled entries of the first wait for `claim_after`. See
docs/resolutions.md#names.
"""

from __future__ import annotations

import asyncio
import re
import socket
from datetime import timedelta
from itertools import count

from keywright import new_token
from keywright.errors import EngineError
from keywright_messaging.contract import BrokerSettings
from keywright_messaging.errors import BrokerError
from keywright_messaging.redis_streams.outages import RetryingDatabase
from keywright_messaging.redis_streams.schema import ProcessSlot

__all__ = ["ProcessName"]

HOLD = timedelta(seconds=15)
LONGEST_HOST = 150


class ProcessName:
    """The name of this process among the consumers of its group. Its consumers are numbered."""

    def __init__(self, database: RetryingDatabase, settings: BrokerSettings) -> None:
        self._database = database
        self._group = settings.group
        self._name = settings.client
        self._token = new_token()
        self._slot: ProcessSlot | None = None
        self._choosing = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None
        self._numbers: set[int] = set()

    async def join(self) -> int:
        """Return the lowest free number, for one more consumer of this process."""
        number = next(each for each in count() if each not in self._numbers)
        self._numbers.add(number)
        try:
            async with self._choosing:
                if self._name is None:
                    await self._choose()
                    self._keeper = asyncio.create_task(self._keep())
        except BaseException:
            self._numbers.discard(number)
            raise
        return number

    def leave(self, number: int) -> None:
        self._numbers.discard(number)

    def of(self, number: int) -> str:
        """Return the name of the consumer with this number. It changes if another process took the slot."""
        assert self._name is not None
        return self._name if number == 0 else f"{self._name}.{number + 1}"

    async def close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._slot is not None:
            await self._database.engine.run(self._slot.release(self._token).attempt())

    async def _choose(self) -> None:
        host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:LONGEST_HOST] or "host"
        for number in count():
            slot = ProcessSlot(self._group, f"{host}-{number}")
            if await self._database.run(slot.acquire(self._token, HOLD)):
                self._slot, self._name = slot, slot.consumer
                return

    async def _keep(self) -> None:
        """Renew the lease of the slot; choose another slot if a process took it during a stall."""
        while True:
            await asyncio.sleep(HOLD.total_seconds() / 5)
            assert self._slot is not None
            try:
                if not await self._database.engine.run(self._slot.acquire(self._token, HOLD)):
                    await self._choose()
            except (EngineError, BrokerError):
                continue  # an outage; the next round finds out whether the slot is still ours
