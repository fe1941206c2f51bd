"""Discord's limits: how much a connection may send, and when a shard may identify.

What a connection sends is counted here, in windows that slide. Turns to identify are shared by every process
of the bot, so they are leases in Redis: whoever has a bucket's lease may connect and identify, and the lease
runs out by itself when the next may.
"""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import timedelta

from keywright.engine import AsyncDatabase, new_token
from keywright.services.gateway.actions import Op
from keywright.services.gateway.schema import IdentifyTurn

__all__ = ["IDENTIFY_PAUSE", "Allowance", "IdentifyTurns", "SendBudget", "Turn"]

SENDS, SEND_SECONDS = 120, 60.0
PRESENCES, PRESENCE_SECONDS = 5, 20.0
# Left for heartbeats, those that Discord asks for among them, and for identifying or resuming.
RESERVED = 10

# At 5 s exactly every other session is found invalid.
IDENTIFY_PAUSE = timedelta(seconds=5.25)
# For connecting, hello and identifying. A process that dies meanwhile delays its bucket by as much.
IDENTIFY_HOLD = timedelta(seconds=30)
POLL_SECONDS = 0.25


class Allowance:
    """At most so many in any window of so many seconds."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._spent: deque[float] = deque()

    def wait(self, now: float, *, reserve: int = 0) -> float:
        """How many seconds from now on one more is allowed, with `reserve` left over."""
        while self._spent and self._spent[0] <= now - self._seconds:
            self._spent.popleft()
        over = len(self._spent) - (self._most - reserve)
        return self._spent[over] + self._seconds - now if over >= 0 else 0.0

    def spend(self, now: float) -> None:
        self._spent.append(now)


class SendBudget:
    """What one connection may send. The protocol's own payloads are counted, and never wait."""

    def __init__(self) -> None:
        self._sends = Allowance(SENDS, SEND_SECONDS)
        self._presences = Allowance(PRESENCES, PRESENCE_SECONDS)

    def wait(self, op: int, now: float) -> float:
        """How many seconds a worker's packet must wait."""
        wait = self._sends.wait(now, reserve=RESERVED)
        return max(wait, self._presences.wait(now)) if op == Op.PRESENCE_UPDATE else wait

    def spend(self, op: int, now: float) -> None:
        self._sends.spend(now)
        if op == Op.PRESENCE_UPDATE:
            self._presences.spend(now)


class Turn:
    """The right to connect and identify. One that is not taken is given back, for the next to have."""

    def __init__(self, db: AsyncDatabase, lease: IdentifyTurn, token: str, pause: timedelta) -> None:
        self._db = db
        self._lease = lease
        self._token = token
        self._pause = pause
        self._over = False

    async def taken(self) -> None:
        """Identify was sent just now: the bucket's next turn begins after the pause."""
        if not self._over:
            self._over = True
            await self._db.run(self._lease.acquire(self._token, self._pause))

    async def give_back(self) -> None:
        if not self._over:
            self._over = True
            await self._db.run(self._lease.release(self._token))


class IdentifyTurns:
    """Turns of one bot's shards, `max_concurrency` buckets of them, over all its processes.

    Shards of this process take their turns in the order in which they ask.
    """

    def __init__(
        self, db: AsyncDatabase, bot: str, max_concurrency: int, *, pause: timedelta = IDENTIFY_PAUSE
    ) -> None:
        self._db = db
        self._bot = bot
        self._buckets = max(1, max_concurrency)
        self._pause = pause
        self._queues: dict[int, asyncio.Lock] = {}

    async def turn(self, shard: int) -> Turn:
        """Wait for the shard's turn."""
        bucket = shard % self._buckets
        turn = Turn(self._db, lease := IdentifyTurn(self._bot, bucket), token := new_token(), self._pause)
        async with self._queues.setdefault(bucket, asyncio.Lock()):
            while not await self._db.run(lease.acquire(token, IDENTIFY_HOLD)):  # noqa: ASYNC110  # in Redis
                await asyncio.sleep(POLL_SECONDS)
        return turn
