"""Discord's limits: how much a connection may send, and when a shard may identify.

What a connection sends is counted here, in windows that slide. Turns to identify are shared by every process
of the bot, so they are leases in Redis: the shard that has a bucket's lease may connect and identify, and the
lease expires when the next may.
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
# Left for heartbeats, those that Discord asks for among them, and for identifying or resuming.
RESERVED = 10

# At 5 s exactly every other session is found invalid.
IDENTIFY_PAUSE = timedelta(seconds=5.25)
# As long as connecting and hello may take. A process that dies meanwhile delays its bucket by as much.
IDENTIFY_HOLD = timedelta(seconds=40)
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

    async def is_ours(self) -> bool:
        """Take it, or hold it for longer; False when another has it."""
        return await self._db.run(self._lease.acquire(self._token, IDENTIFY_HOLD))

    async def taken(self) -> None:
        """Identify was sent just now: the bucket's next turn begins after the pause."""
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
            log.warning("a turn to identify was not given back, the next waits until it expires: %s", error)


class IdentifyTurns:
    """Turns of one bot's shards, `max_concurrency` buckets of them, over all its processes.

    Shards of this process take their turns in the order in which they ask. `spend` counts a session start and
    returns 0, or else how many seconds none is left. It is called during the turn: counted
    earlier, the starts might be used up by others meanwhile.
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
        """Wait for the turn and count a start: 0, or how long to wait, the turn being given back."""
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
