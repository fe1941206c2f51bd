"""1 to 10,000 typed GETs at the same time, each a separate call, in one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, cast

import redis.asyncio

from benchmarks.measuring import FULL, Effort, Figure, Point, Race, Result, at_least, in_loop
from benchmarks.other_clients import COREDIS, GLIDE, Held, coredis_client, glide_client, missing
from benchmarks.workload import Meeting, MeetingJson, decode_meeting, identities, json_name, meetings, opened
from keywright.testing import RedisServer

SIZES = (1, 10, 50, 100, 1_000, 10_000)
QUICK_SIZES = 5
LIKELY, MOST = 50, 10_000
EXECUTED = 1_000
# redis-py's default pool refuses more than 100 connections at once, so 10,000 tasks need a blocking pool.
# Of pools of 1, 5, 10, 20, 50 and 100 connections, 20 was the fastest for redis-py here.
CONNECTIONS = 20
REDIS_PY = f"redis-py asyncio, {CONNECTIONS} connections"
TARGETS = {REDIS_PY: at_least(4)}

Get = Callable[[str], Awaitable[Meeting | None]]


def measure(server: RedisServer, effort: Effort = FULL) -> Iterator[Result | Point]:
    """Yield the comparisons of 50 and of 10,000 calls, and a point of each number."""
    url = server.tcp_url
    with asyncio.Runner() as runner:
        db = runner.run(opened(url))
        pool = redis.asyncio.BlockingConnectionPool.from_url(url, max_connections=CONNECTIONS, timeout=None)
        client = redis.asyncio.Redis.from_pool(pool)
        held = {
            name: Held(connected(url))
            for name, connected in ((COREDIS, coredis_client), (GLIDE, glide_client))
            if name not in missing()
        }
        runner.run(db.run(MeetingJson.set_many(zip(identities(MOST), meetings(MOST), strict=True))))
        gets: dict[str, Get] = {
            "keywright": lambda each: db.run(MeetingJson(each).get()),
            REDIS_PY: _get(client),
            **{name: _get(runner.run(each.open())) for name, each in held.items()},
        }
        try:
            for size in SIZES[: effort.pick(len(SIZES), QUICK_SIZES)]:
                yield from _compared(runner, gets, size, effort)
        finally:
            for closing in (db.close(), client.aclose(), *(each.close() for each in held.values())):
                runner.run(closing)


def _get(client: Any) -> Get:
    async def get(each: str) -> Meeting | None:
        data = cast("bytes | None", await client.get(json_name(each)))
        return None if data is None else decode_meeting(data)

    return get


def _compared(
    runner: asyncio.Runner, gets: Mapping[str, Get], size: int, effort: Effort
) -> Iterator[Result | Point]:
    ids = identities(size)

    def all_at_once(get: Get) -> Callable[[], Awaitable[list[Meeting | None]]]:
        async def work() -> list[Meeting | None]:
            return await asyncio.gather(*(get(each) for each in ids))

        return work

    works = {name: all_at_once(get) for name, get in gets.items()}
    first, *others = (runner.run(_awaited(work)) for work in works.values())
    assert all(each == first for each in others)
    executions = max(1, EXECUTED // size)
    race = Race(
        "concurrency",
        f"asyncio GET, {size:,} at a time",
        {name: in_loop(runner, work, executions) for name, work in works.items()},
        effort.rounds(),
        TARGETS,
    )
    results = list(race.throughput(size))
    if size in (LIKELY, MOST):
        yield from results
    ours = results[0].ours
    for series, figure in (("keywright", ours), *((each.peer, each.theirs) for each in results)):
        micros = Figure(*(1e6 / each for each in (figure.value, figure.high, figure.low)))
        yield Point(growth="concurrency", series=series, size=size, unit="microseconds", figure=micros)


async def _awaited(work: Callable[[], Awaitable[Any]]) -> Any:
    return await work()
