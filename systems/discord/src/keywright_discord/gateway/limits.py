"""Discord's rate limits: how much a connection may send, and when a shard may identify.

The packets of a connection are counted in sliding windows. Turns to identify are shared by all processes of
the bot, so they are leases in Redis: the shard that holds the lease of a bucket may connect and identify, and
the lease expires when the next may.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import timedelta

from keywright import AsyncDatabase, Call, new_token
from keywright.errors import EngineError
from keywright_discord.gateway.opcodes import Op
from keywright_discord.gateway.schema import IdentifyTurn

__all__ = ["IDENTIFY_PAUSE", "Allowance", "IdentifyTurns", "SendBudget", "Turn"]

log = logging.getLogger("keywright.gateway")

SENDS, SEND_SECONDS = 120, 60.0
PRESENCES, PRESENCE_SECONDS = 5, 20.0
# Left for heartbeats, including those that Discord requests, and for identify or resume.
RESERVED = 10

# With 5 s exactly, Discord declares every other session invalid.
IDENTIFY_PAUSE = timedelta(seconds=5.25)
# The longest time for connecting and hello. A process that dies meanwhile delays its bucket by as much.
IDENTIFY_HOLD = timedelta(seconds=40)
POLL_SECONDS = 0.25


class Allowance:
    """A sliding window: at most `most` in any `seconds`."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._spent: deque[float] = deque()

    def wait(self, now: float, *, reserve: int = 0) -> float:
        """Return in how many seconds one more is allowed, with `reserve` left over."""
        while self._spent and self._spent[0] <= now - self._seconds:
            self._spent.popleft()
        over = len(self._spent) - (self._most - reserve)
        return self._spent[over] + self._seconds - now if over >= 0 else 0.0

    def spend(self, now: float) -> None:
        self._spent.append(now)


class SendBudget:
    """The packets that one connection may send. Payloads of the protocol are counted, and never wait."""

    def __init__(self) -> None:
        self._sends = Allowance(SENDS, SEND_SECONDS)
        self._presences = Allowance(PRESENCES, PRESENCE_SECONDS)

    def wait(self, op: int, now: float) -> float:
        """Return how many seconds a worker's packet must wait."""
        wait = self._sends.wait(now, reserve=RESERVED)
        return max(wait, self._presences.wait(now)) if op == Op.PRESENCE_UPDATE else wait

    def spend(self, op: int, now: float) -> None:
        self._sends.spend(now)
        if op == Op.PRESENCE_UPDATE:
            self._presences.spend(now)


class Turn:
    """The permission to connect and identify. A turn that is not used is released for the next shard."""

    def __init__(self, db: AsyncDatabase, lease: IdentifyTurn, token: str, pause: timedelta) -> None:
        self._db = db
        self._lease = lease
        self._token = token
        self._pause = pause
        self._over = False

    async def is_ours(self) -> bool:
        """Acquire or renew the lease. Return False if another shard has it."""
        return await self._db.run(self._lease.acquire(self._token, IDENTIFY_HOLD))

    async def taken(self) -> None:
        """Record that identify was sent: the next turn of the bucket begins after the pause."""
        await self._end(self._lease.acquire(self._token, self._pause))

    async def give_back(self) -> None:
        await self._end(self._lease.release(self._token))

    async def _end(self, call: Call[bool]) -> None:
        if self._over:
            return
        self._over = True
        try:
            await self._db.run(call)
        except EngineError as error:
            log.warning("the lease of a turn to identify was not released and will expire: %s", error)


class IdentifyTurns:
    """The turns of a bot's shards to identify, in `max_concurrency` buckets, over all its processes.

    Shards of this process take turns in the order of their requests. `spend` counts a session start and
    returns 0, or returns the seconds until one is left. It is called during the turn, so that other shards
    cannot use up the starts in between.
    """

    def __init__(
        self,
        db: AsyncDatabase,
        bot: str,
        max_concurrency: int,
        spend: Callable[[], Awaitable[float]],
        *,
        pause: timedelta = IDENTIFY_PAUSE,
    ) -> None:
        self._db = db
        self._bot = bot
        self._buckets = max(1, max_concurrency)
        self._spend = spend
        self._pause = pause
        self._queues: dict[int, asyncio.Lock] = {}

    async def turn(self, shard: int) -> Turn:
        """Wait for the shard's turn."""
        bucket = shard % self._buckets
        async with self._queues.setdefault(bucket, asyncio.Lock()):
            while True:
                turn = Turn(self._db, IdentifyTurn(self._bot, bucket), new_token(), self._pause)
                wait = await self._begin(turn)
                if not wait:
                    return turn
                await asyncio.sleep(wait)

    async def _begin(self, turn: Turn) -> float:
        """Wait for the turn and count a start. Return 0, or the seconds to wait after releasing the turn."""
        wait = POLL_SECONDS
        try:
            while not await turn.is_ours():  # noqa: ASYNC110  # another process has it
                await asyncio.sleep(POLL_SECONDS)
            # Counting may ask Discord, which may outlast the hold.
            wait = await self._spend() or (0.0 if await turn.is_ours() else POLL_SECONDS)
        finally:
            if wait:
                await turn.give_back()
        return wait
