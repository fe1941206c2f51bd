"""One typed GET at a time: the overhead of types and engine when there is nothing to batch.

Measured for every placement of client and server, since the placement moves the ratio across the
target. Turns are short and many, so that a change of the machine's speed affects all contestants.
GLIDE works in threads of its own and coredis starts tasks, so they take part where the scheduler places them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

import redis
import redis.asyncio

from benchmarks.measuring import FULL, Effort, Race, Result, at_most, blocking, in_loop
from benchmarks.other_clients import (
    COREDIS,
    GLIDE,
    GLIDE_SYNC,
    Held,
    coredis_client,
    glide_client,
    glide_sync_client,
    missing,
)
from benchmarks.placement import Placement, placed
from benchmarks.workload import Meeting, MeetingJson, decode_meeting, json_name, meetings, opened
from keywright import connect
from keywright.testing import RedisServer

EXECUTIONS = 200
ROUNDS = 41
TARGETS = {"redis-py": at_most(1.15), "redis-py asyncio": at_most(1.15)}
ID = "m00000"


def measure(server: RedisServer, effort: Effort = FULL) -> Iterator[Result]:
    with connect(server.url) as db:
        db.run(MeetingJson(ID).set(meetings(1)[0]))
    rounds = effort.rounds(ROUNDS)
    for placement in Placement:
        with placed(placement, server):
            yield from _blocking(server.tcp_url, placement, rounds)
            yield from _asyncio(server.tcp_url, placement, rounds)


def _blocking(url: str, placement: Placement, rounds: int) -> Iterator[Result]:
    with ExitStack() as stack:
        db = stack.enter_context(connect(url))
        clients: dict[str, Any] = {"redis-py": stack.enter_context(redis.Redis.from_url(url))}
        if placement is Placement.FREE and GLIDE_SYNC not in missing():
            clients[GLIDE_SYNC] = stack.enter_context(glide_sync_client(url))

        def theirs(client: Any) -> Meeting | None:
            data = cast("bytes | None", client.get(json_name(ID)))
            return None if data is None else decode_meeting(data)

        works = {"keywright": lambda: db.run(MeetingJson(ID).get())}
        works |= {name: lambda client=client: theirs(client) for name, client in clients.items()}  # type: ignore[misc]
        sides = {name: blocking(work, EXECUTIONS) for name, work in works.items()}
        subject = f"sync GET, {placement.value}"
        yield from Race("latency", subject, sides, rounds, TARGETS).latency()


def _asyncio(url: str, placement: Placement, rounds: int) -> Iterator[Result]:
    with asyncio.Runner() as runner:
        db = runner.run(opened(url))
        client = redis.asyncio.Redis.from_url(url)
        held = {
            name: Held(connected(url))
            for name, connected in ((COREDIS, coredis_client), (GLIDE, glide_client))
            if placement is Placement.FREE and name not in missing()
        }
        clients: dict[str, Any] = {"redis-py asyncio": client}
        clients |= {name: runner.run(each.open()) for name, each in held.items()}

        async def theirs(client: Any) -> Meeting | None:
            data = cast("bytes | None", await client.get(json_name(ID)))
            return None if data is None else decode_meeting(data)

        sides = {"keywright": in_loop(runner, lambda: db.run(MeetingJson(ID).get()), EXECUTIONS)}
        for name, each in clients.items():
            sides[name] = in_loop(runner, lambda each=each: theirs(each), EXECUTIONS)  # type: ignore[misc]
        try:
            subject = f"asyncio GET, {placement.value}"
            yield from Race("latency", subject, sides, rounds, TARGETS).latency()
        finally:
            for closing in (db.close(), client.aclose(), *(each.close() for each in held.values())):
                runner.run(closing)
