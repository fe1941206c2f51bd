"""Batches of 1 to 100,000 calls: what one call costs, with Keywright, with redis-py, and at least."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import redis

from benchmarks.kinds import AValue
from benchmarks.measuring import FULL, Effort, Figure, Point, Race, Sampler, blocking
from benchmarks.prepacked import PREPACKED, Prepacked, packed
from benchmarks.workload import identities, meetings
from benchmarks.works import WORK, Work
from keywright import connect
from keywright.testing import RedisServer

SIZES = (1, 10, 100, 1_000, 10_000, 100_000)
QUICK_SIZES = 4
EXECUTED = 2_000
GREW = ("value: get (GET)", "sorted set: add (ZADD)")


def measure(server: RedisServer, effort: Effort = FULL) -> Iterator[Point]:
    sizes = SIZES[: effort.pick(len(SIZES), QUICK_SIZES)]
    ids = identities(sizes[-1])
    with connect(server.tcp_url) as db, redis.Redis.from_url(server.tcp_url) as client:
        db.run(AValue.set_many(zip(ids, meetings(len(ids)), strict=True)))
        line = Prepacked(server.tcp_url)
        for work in (each for each in WORK if each.subject in GREW):
            for size in sizes:
                sides = _sides(work, ids[:size], db.run, client, line)
                race = Race("batch sizes", work.subject, sides, effort.rounds())
                for series, rounds in race.times().items():
                    figure = Figure.of([seconds / size * 1e6 for seconds in rounds])
                    growth = f"batch size, {work.subject}"
                    yield Point(growth=growth, series=series, size=size, unit="microseconds", figure=figure)
        line.close()


def _sides(
    work: Work, ids: Sequence[str], run: Callable[[Any], Any], client: Any, line: Prepacked
) -> dict[str, Sampler]:
    def theirs() -> list[Any]:
        with client.pipeline(transaction=False) as pipe:
            work.filled(pipe, ids)
            return work.values(pipe.execute())

    data, replies = packed(lambda pipe: work.filled(pipe, ids), client)
    executions = max(1, EXECUTED // len(ids))
    return {
        "keywright": blocking(lambda: run(work.batch(ids)), executions),
        "redis-py pipeline": blocking(theirs, executions),
        PREPACKED: blocking(lambda: line.send(data, replies), executions),
    }
