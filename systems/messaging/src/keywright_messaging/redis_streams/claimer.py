"""Takes over entries that other consumers abandoned, and renews those of this consumer.

An entry is abandoned when it was idle for `claim_after`. A consumer resets the idle time of the entries it
holds periodically, so only those of a consumer that died, stalls or was cut off become idle. Entries on their
last attempt are taken one at a time: a message that kills its process then does so alone, and its neighbours
do not become dead letters with it.
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta

from keywright import Call, gather_list
from keywright.errors import EngineError, KeywrightError
from keywright_messaging.contract import LONGEST_DELAY
from keywright_messaging.errors import BrokerUnreachableError
from keywright_messaging.redis_streams import commands
from keywright_messaging.redis_streams.acknowledgements import NOW, Settlement
from keywright_messaging.redis_streams.commands import PendingEntry
from keywright_messaging.redis_streams.delivery import StreamDelivery
from keywright_messaging.redis_streams.delivery_buffer import DeliveryBuffer, StreamQueue
from keywright_messaging.redis_streams.outages import broker_error

__all__ = ["Claimer"]

PAGE = 100
LONGEST_PAUSE = 1.0
SHORTEST_PAUSE = 0.01


class Claimer:
    """Watches the pending entries of a consumer's queues."""

    def __init__(self, settlement: Settlement, buffer: DeliveryBuffer) -> None:
        self._settlement = settlement
        self._settings = settlement.settings
        self._engine = settlement.database.engine
        self._group = settlement.group
        self._buffer = buffer
        self._woken = asyncio.Event()
        self._alarms: set[asyncio.TimerHandle] = set()
        quarter = self._settings.claim_after.total_seconds() / 4
        self._refresh_every = max(SHORTEST_PAUSE, quarter)
        self._search_every = min(max(SHORTEST_PAUSE, quarter), LONGEST_PAUSE)
        self._known_as = ""
        buffer.on_last_chance = self._woken.set
        settlement.on_postponed = self._search_in

    async def run(self) -> None:
        """Search and refresh until cancelled. The readers handle outages."""
        self._known_as = self._settlement.consumer()
        loop = asyncio.get_running_loop()
        refresh_at = loop.time() + self._refresh_every
        while True:
            try:
                if loop.time() >= refresh_at:
                    refresh_at = loop.time() + self._refresh_every
                    await self._refresh()
                await self._search()
            except EngineError as error:
                if not error.is_transient and not commands.is_missing_group(error):
                    self._buffer.fail(broker_error(error))
                    return
            except KeywrightError as error:
                if not isinstance(error, BrokerUnreachableError):
                    self._buffer.fail(error)
                    return
            await self._rest()

    async def give_back(self) -> None:
        """Release the entries of this consumer to others; those not taken do not count as delivered.

        If that fails, others take them over after `claim_after`.
        """
        for alarm in self._alarms:
            alarm.cancel()
        ready = self._buffer.untaken()
        for queue in self._buffer.queues:
            with contextlib.suppress(KeywrightError):
                await self._give_back(queue, ready)

    async def _give_back(self, queue: StreamQueue, ready: set[StreamDelivery]) -> None:
        stamps: dict[int, list[str]] = {}
        for row in await self._own(queue):
            if row.id in queue.postponed:
                continue
            held = queue.held.get(row.id)
            untaken = held is None or held in ready
            stamps.setdefault(max(0, row.deliveries - untaken), []).append(row.id)
        for deliveries, ids in stamps.items():
            await self._stamp(queue, ids, self._settings.claim_after, deliveries=deliveries)

    async def _search(self) -> None:
        """Take over abandoned entries as far as there is room; bury those without attempts left."""
        queues = self._buffer.queues
        found = await self._engine.run(gather_list([self._abandoned(queue).attempt() for queue in queues]))
        for queue, rows in zip(queues, found, strict=True):
            if isinstance(rows, KeywrightError):
                if isinstance(rows, EngineError) and commands.is_missing_group(rows):
                    continue  # its reader creates it again
                raise rows
            await self._take_pages(queue, rows)

    def _abandoned(self, queue: StreamQueue, after: str | None = None) -> Call[list[PendingEntry]]:
        idle = self._settings.claim_after
        return commands.pending(queue.stream, self._group, after=after, count=PAGE, idle=idle)

    async def _take_pages(self, queue: StreamQueue, rows: list[PendingEntry]) -> None:
        while rows:
            left = [row for row in rows if self._is_abandoned(queue, row)]
            if left:
                await self._take(queue, left)
            if len(rows) < PAGE:
                return
            rows = await self._engine.run(self._abandoned(queue, rows[-1].id))

    def _is_abandoned(self, queue: StreamQueue, row: PendingEntry) -> bool:
        if row.id in queue.held:
            return False
        due = queue.postponed.get(row.id)
        return due is None or asyncio.get_running_loop().time() >= due

    async def _take(self, queue: StreamQueue, rows: list[PendingEntry]) -> None:
        most = self._settings.max_attempts
        for row in rows:
            if row.deliveries >= most:
                await self._give_up(queue, row)
        again = [row for row in rows if row.deliveries == 0 or row.deliveries + 1 < most]
        last = [row for row in rows if 0 < row.deliveries == most - 1]
        # At least one, even without room: new entries fill the room immediately, and these would starve.
        room = max(self._buffer.free, int(self._buffer.free >= 0))
        chosen = again[:room]
        if last and len(chosen) < room and not self._buffer.has_last_chance:
            chosen.append(last[0])
        if chosen:
            await self._claim(queue, chosen)

    async def _claim(self, queue: StreamQueue, rows: list[PendingEntry]) -> None:
        counts = {row.id: row.deliveries + 1 for row in rows}
        entries = await self._engine.run(
            commands.claim(
                queue.stream,
                self._group,
                self._settlement.consumer(),
                list(counts),
                idle=self._settings.claim_after,
            )
        )
        deliveries = [
            StreamDelivery(self._settlement, queue, identity, fields, counts[identity.decode()])
            for identity, fields in await self._settlement.skip_others(queue, entries)
        ]
        for delivery in deliveries:
            queue.postponed.pop(delivery.id, None)
        self._buffer.put(queue, deliveries)

    async def _give_up(self, queue: StreamQueue, row: PendingEntry) -> None:
        entries = await self._engine.run(queue.stream.range(row.id, row.id))
        if not entries:  # deleted while it was pending, so its body is lost
            await self._engine.run(commands.acknowledge(queue.stream, self._group, [row.id]))
            return
        reason = f"delivered {row.deliveries} times and never settled, last to {row.consumer}"
        body = entries[0].value.data
        await self._settlement.bury(queue.stream, row.id, body, reason, row.deliveries)

    async def _refresh(self) -> None:
        """Reset the idle time of held entries; drop those that others have taken over."""
        name = self._settlement.consumer()
        renamed, self._known_as = name != self._known_as, name
        for queue in self._buffer.queues:
            held = list(queue.held)
            if not held and not queue.postponed:
                continue
            if renamed:
                await self._stamp(queue, held, NOW)
            own = {row.id for row in await self._own(queue)}
            self._buffer.drop(queue, [each for each in held if each not in own and each in queue.held])
            await self._stamp(queue, [each for each in held if each in own and each in queue.held], NOW)
            await self._put_off(queue, own)

    async def _put_off(self, queue: StreamQueue, own: set[str]) -> None:
        """Renew delays beyond `claim_after`, the longest that an idle time can express."""
        now, claim_after = asyncio.get_running_loop().time(), self._settings.claim_after
        for identity, due in list(queue.postponed.items()):
            if identity not in own:
                queue.postponed.pop(identity, None)
            elif claim_after < LONGEST_DELAY:
                await self._stamp(queue, [identity], max(NOW, claim_after - timedelta(seconds=due - now)))

    async def _stamp(
        self, queue: StreamQueue, ids: list[str], idle: timedelta, *, deliveries: int | None = None
    ) -> None:
        if ids:
            consumer = self._settlement.consumer()
            await self._engine.run(
                commands.restamp(queue.stream, self._group, consumer, ids, idle=idle, deliveries=deliveries)
            )

    async def _own(self, queue: StreamQueue) -> list[PendingEntry]:
        own: list[PendingEntry] = []
        after: str | None = None
        while True:
            rows = await self._engine.run(
                commands.pending(
                    queue.stream,
                    self._group,
                    after=after,
                    count=PAGE * 10,
                    consumer=self._settlement.consumer(),
                )
            )
            own += rows
            if len(rows) < PAGE * 10:
                return own
            after = rows[-1].id

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(self._search_every):
                await self._woken.wait()
        except TimeoutError:
            return
        self._woken.clear()

    def _search_in(self, seconds: float) -> None:
        """Search when a postponed message is due, not only in the next round."""

        def ring() -> None:
            self._alarms.discard(alarm)
            self._woken.set()

        alarm = asyncio.get_running_loop().call_later(seconds + 0.005, ring)
        self._alarms.add(alarm)
