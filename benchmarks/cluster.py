"""1,000-call batches spread over clusters of 3 to 9 masters, against redis-py's cluster pipelines.

All masters and the client share the cores of one machine: this shows what nodes cost, not what they bring.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from redis.asyncio.cluster import RedisCluster as AsyncClusterClient
from redis.cluster import RedisCluster as ClusterClient

from benchmarks.batches import ids_of
from benchmarks.kinds import CALLS, fill_all
from benchmarks.masters import masters
from benchmarks.measuring import FULL, Contest, Effort, Figure, Point, Result, blocking, in_loop
from benchmarks.workload import identities, opened
from benchmarks.works import MIXED, WORK, Work
from keywright import connect

EXECUTIONS = 6
SIZES = (3, 5, 7, 9)
CHOSEN = (*(work for work in WORK if work.kind == "value"), MIXED)


def measure(effort: Effort = FULL) -> Iterator[Result | Point]:
    """Yield the comparisons with three masters, and a point of each size."""
    for size in SIZES[: effort.pick(len(SIZES), 1)]:
        with masters(size) as url:
            with connect(url) as db:
                db.run(fill_all(identities(CALLS)))
            for result in [
                *(_blocking(url, work, effort) for work in CHOSEN),
                *(_asyncio(url, work, effort) for work in CHOSEN),
            ]:
                if size == SIZES[0]:
                    yield result
                yield from _points(result, size)


def _points(result: Result, size: int) -> Iterator[Point]:
    growth = f"cluster, {result.subject}"
    for series, figure in (("keywright", result.ours), (result.peer, result.theirs)):
        micros = Figure(*(1e6 / each for each in (figure.value, figure.high, figure.low)))
        yield Point(growth=growth, series=series, size=size, unit="microseconds", figure=micros)


def _blocking(url: str, work: Work, effort: Effort) -> Result:
    ids = ids_of(work)
    with connect(url) as db, ClusterClient.from_url(url) as client:

        def ours() -> list[Any]:
            return db.run(work.batch(ids))

        def theirs() -> list[Any]:
            with client.pipeline() as pipe:
                work.filled(pipe, ids)
                return work.values(pipe.execute())

        _check(work, ours(), theirs())
        return Contest(
            "cluster",
            f"sync {work.subject}",
            blocking(ours, EXECUTIONS),
            "redis-py RedisCluster pipeline",
            blocking(theirs, EXECUTIONS),
            effort.rounds(),
        ).throughput(CALLS)


def _asyncio(url: str, work: Work, effort: Effort) -> Result:
    ids = ids_of(work)
    with asyncio.Runner() as runner:
        db = runner.run(opened(url))
        client = AsyncClusterClient.from_url(url)

        async def ours() -> list[Any]:
            return await db.run(work.batch(ids))

        async def theirs() -> list[Any]:
            async with client.pipeline() as pipe:
                work.filled(pipe, ids)
                return work.values(await pipe.execute())

        _check(work, runner.run(ours()), runner.run(theirs()))
        try:
            return Contest(
                "cluster",
                f"asyncio {work.subject}",
                in_loop(runner, ours, EXECUTIONS),
                "redis-py RedisCluster asyncio pipeline",
                in_loop(runner, theirs, EXECUTIONS),
                effort.rounds(),
            ).throughput(CALLS)
        finally:
            runner.run(db.close())
            runner.run(client.aclose())


def _check(work: Work, ours: Sequence[Any], theirs: Sequence[Any]) -> None:
    if work.read:
        assert work.plainly(ours) == list(theirs), work.subject
