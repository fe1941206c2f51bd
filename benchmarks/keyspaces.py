"""Keyspaces of 10^4 to 10^6 keys (10^7 with --largest): audit, infer, and the survey of the explorer.

Beside them `redis-cli --memkeys` and SCAN alone, on the same keys: those of `benchmarks.audit`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from time import perf_counter

from benchmarks.audit import MEMKEYS, MODEL, SCAN, fill, memkeys_seconds, scan_seconds
from benchmarks.measuring import FULL, Effort, Figure, Point
from keywright import AsyncDatabase, aconnect, connect
from keywright.explorer import ExplorerSettings, create_app
from keywright.testing import RedisServer
from keywright.tools.audit import AuditOptions, audit
from keywright.tools.infer import infer_server
from keywright.tools.pace import FULL_SPEED

__all__ = ["measure"]

SIZES = (10_000, 100_000, 1_000_000)
LARGEST = 10_000_000
QUICK_SIZES = 1
ROUNDS, FEW_ROUNDS = 3, 1


def measure(server: RedisServer, effort: Effort = FULL) -> Iterator[Point]:
    sizes = SIZES[: effort.pick(len(SIZES), QUICK_SIZES)]
    for size in (*sizes, *([LARGEST] if effort.largest else [])):
        server.call("FLUSHALL")
        with connect(server.url) as db:
            fill(db, size)
        taken: dict[str, list[float]] = {name: [] for name in WALKS}
        for _ in range(FEW_ROUNDS if size == LARGEST else ROUNDS):
            for name, walk in WALKS.items():
                taken[name].append(walk(server.url))
        for name, seconds in taken.items():
            yield Point(growth="keyspace", series=name, size=size, unit="seconds", figure=Figure.of(seconds))
    server.call("FLUSHALL")


def _timed(work: Callable[[AsyncDatabase], Awaitable[int]]) -> Callable[[str], float]:
    """Return a function that connects and returns the seconds of some work, which returns what it found."""

    async def run(url: str) -> float:
        async with aconnect(url) as db:
            start = perf_counter()
            assert await work(db)
            return perf_counter() - start

    return lambda url: asyncio.run(run(url))


async def _audited(db: AsyncDatabase) -> int:
    report = await audit(db, MODEL, AuditOptions(pace=FULL_SPEED))
    assert not report.failed, report.counts
    return report.tally.names


async def _inferred(db: AsyncDatabase) -> int:
    return len((await infer_server(db, pace=FULL_SPEED)).keys)


async def _surveyed(db: AsyncDatabase) -> int:
    app = create_app(db, MODEL.spaces, ExplorerSettings(rest_seconds=3600, survey_pace=FULL_SPEED))
    seen: int = (await app.state.explorer.surveyor.once()).seen
    return seen


WALKS: dict[str, Callable[[str], float]] = {
    "audit": _timed(_audited),
    "infer": _timed(_inferred),
    "survey of the explorer": _timed(_surveyed),
    MEMKEYS: memkeys_seconds,
    SCAN: scan_seconds,
}
