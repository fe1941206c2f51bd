"""Removes entries that are older than the retention and settled by every group.

Acknowledging does not shrink a stream, and trimming by age alone, as the published clients do with MINID on
every XADD, drops entries that a group without a live consumer has not read. So a stream is trimmed up to the
position of its slowest group: before its oldest unsettled entry, or after the last entry delivered to it.
Positions only move forward, so they may be outdated when the stream is trimmed. A stream without a group is
trimmed by age. A group without consumers keeps all entries: delete it with XGROUP DESTROY, or limit the
stream with `max_length`, beyond which entries are removed whether they are settled or not. See
docs/resolutions.md#retention.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta

from keywright import gather_list
from keywright.operations import Steps, bound_context, procedure
from keywright_messaging.redis_streams import commands
from keywright_messaging.redis_streams.outages import RetryingDatabase
from keywright_messaging.redis_streams.schema import EventStream

__all__ = ["Trimmer", "trim"]

LONGEST_PAUSE = 60.0
SHORTEST_PAUSE = 0.1


@procedure
def trim(stream: EventStream, retention: timedelta) -> Steps[int]:
    """Remove entries older than the retention and settled by every group. Return their number."""
    context = yield bound_context()
    groups = yield stream.groups()
    waiting = yield gather_list([commands.oldest_pending(stream, group.name) for group in groups])
    limits = [(context.now_ms() - commands.milliseconds(retention), 0)]
    for group, oldest in zip(groups, waiting, strict=True):
        time, number = _parsed(oldest or group.last_delivered)
        limits.append((time, number if oldest else number + 1))
    lowest = min(limits)
    removed = 0
    if lowest[0] > 0:
        cut = f"{lowest[0]}-{lowest[1]}"
        # Whole nodes first, a bounded number at a time: a long backlog must not block the server.
        while dropped := (yield stream.trim(min_id=cut)):
            removed += dropped
        removed += yield stream.trim(min_id=cut, exact=True)
    return removed


class Trimmer:
    """Trims the streams of one broker periodically."""

    def __init__(
        self, database: RetryingDatabase, retention: timedelta | None, max_length: int | None
    ) -> None:
        self._database = database
        self._retention = retention
        self._max_length = max_length
        self._streams: set[EventStream] = set()
        self._task: asyncio.Task[None] | None = None

    def watch(self, streams: Iterable[EventStream]) -> None:
        self._streams.update(streams)
        if self._task is None and (self._retention is not None or self._max_length is not None):
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        tenth = LONGEST_PAUSE if self._retention is None else self._retention.total_seconds() / 10
        pause = min(max(tenth, SHORTEST_PAUSE), LONGEST_PAUSE)
        while True:
            await asyncio.sleep(pause)
            for stream in list(self._streams):
                # A failure is left to the next round: the stream may not exist, or the server be away.
                if self._retention is not None:
                    await self._database.engine.run(trim(stream, self._retention).attempt())
                if self._max_length is not None:
                    await self._database.engine.run(stream.trim(max_length=self._max_length).attempt())


def _parsed(identity: str) -> tuple[int, int]:
    time, _, number = identity.partition("-")
    return int(time), int(number or 0)
