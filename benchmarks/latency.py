"""One typed GET at a time: the overhead of types and engine when there is nothing to batch.

Measured for every placement of client and server, since the placement moves the ratio across the
target. Turns are short and many, so that a change of the machine's speed affects both contestants.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import redis
import redis.asyncio

from benchmarks.measuring import Contest, Result, blocking, in_loop
from benchmarks.placement import Placement, placed
from benchmarks.workload import Meeting, MeetingJson, decode_meeting, json_name, meetings, opened
from keywright import connect
from keywright.testing import RedisServer

EXECUTIONS = 200
ROUNDS = 41
TARGET = 1.15
ID = "m00000"


def measure(server: RedisServer) -> Iterator[Result]:
    for placement in Placement:
        with placed(placement, server):
            yield _blocking(server.url, placement)
            yield _asyncio(server.url, placement)


def _blocking(url: str, placement: Placement) -> Result:
    with connect(url) as db, redis.Redis.from_url(url) as client:
        db.run(MeetingJson(ID).set(meetings(1)[0]))

        def ours() -> Meeting | None:
            return db.run(MeetingJson(ID).get())

        def theirs() -> Meeting | None:
            data = client.get(json_name(ID))
            return None if data is None else decode_meeting(data)

        assert ours() == theirs()
        return Contest(
            "latency",
            f"sync GET json, {placement.value}",
            blocking(ours, EXECUTIONS),
            "redis-py sync",
            blocking(theirs, EXECUTIONS),
            ROUNDS,
        ).latency(at_most=TARGET)


def _asyncio(url: str, placement: Placement) -> Result:
    with asyncio.Runner() as runner:
        db = runner.run(opened(url))
        client = redis.asyncio.Redis.from_url(url)
        runner.run(db.run(MeetingJson(ID).set(meetings(1)[0])))

        async def ours() -> Meeting | None:
            return await db.run(MeetingJson(ID).get())

        async def theirs() -> Meeting | None:
            data = await client.get(json_name(ID))
            return None if data is None else decode_meeting(data)  # type: ignore[arg-type]  # bytes: not decoded

        assert runner.run(ours()) == runner.run(theirs())
        try:
            return Contest(
                "latency",
                f"asyncio GET json, {placement.value}",
                in_loop(runner, ours, EXECUTIONS),
                "redis-py asyncio",
                in_loop(runner, theirs, EXECUTIONS),
                ROUNDS,
            ).latency(at_most=TARGET)
        finally:
            runner.run(db.close())
            runner.run(client.aclose())
