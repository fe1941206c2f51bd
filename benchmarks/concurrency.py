"""10,000 concurrent typed GETs, each a separate call, in one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import redis.asyncio

from benchmarks.measuring import Contest, Result, in_loop
from benchmarks.workload import (
    Meeting,
    MeetingJson,
    MeetingText,
    decode_meeting,
    identities,
    json_name,
    meetings,
    opened,
    text_name,
    texts,
)
from keywright.testing import RedisServer

CALLS = 10_000
EXECUTIONS = 1
TARGET = 4.0
# redis-py's default pool refuses more than 100 connections at once, so 10,000 tasks need a blocking pool.
# Of pools of 1, 5, 10, 20, 50 and 100 connections, 20 was the fastest for redis-py here.
CONNECTIONS = 20

Read = Callable[[], Coroutine[Any, Any, list[Any]]]


def measure(server: RedisServer) -> Iterator[Result]:
    url = server.url
    with asyncio.Runner() as runner:
        db = runner.run(opened(url))
        raw = _client(url, decode_responses=False)
        text = _client(url, decode_responses=True)
        ids = identities(CALLS)
        runner.run(db.run(MeetingJson.set_many(zip(ids, meetings(CALLS), strict=True))))
        runner.run(db.run(MeetingText.set_many(zip(ids, texts(CALLS), strict=True))))

        async def fetch(each: str) -> Meeting | None:
            data = await raw.get(json_name(each))
            return None if data is None else decode_meeting(data)  # type: ignore[arg-type]  # bytes: not decoded

        async def our_json() -> list[Meeting | None]:
            return await asyncio.gather(*[db.run(MeetingJson(each).get()) for each in ids])

        async def their_json() -> list[Meeting | None]:
            return await asyncio.gather(*[fetch(each) for each in ids])

        async def our_text() -> list[str | None]:
            return await asyncio.gather(*[db.run(MeetingText(each).get()) for each in ids])

        async def their_text() -> list[Any]:
            return await asyncio.gather(*[text.get(text_name(each)) for each in ids])

        try:
            yield _contest(runner, "json", our_json, their_json)
            yield _contest(runner, "text", our_text, their_text)
        finally:
            for closing in (db.close(), raw.aclose(), text.aclose()):
                runner.run(closing)


def _contest(runner: asyncio.Runner, form: str, ours: Read, theirs: Read) -> Result:
    assert runner.run(ours()) == runner.run(theirs())
    return Contest(
        "concurrency",
        f"asyncio GET {form}",
        in_loop(runner, ours, EXECUTIONS),
        f"redis-py asyncio, {CONNECTIONS} connections",
        in_loop(runner, theirs, EXECUTIONS),
    ).throughput(CALLS, at_least=TARGET)


def _client(url: str, *, decode_responses: bool) -> redis.asyncio.Redis:
    pool = redis.asyncio.BlockingConnectionPool.from_url(
        url, max_connections=CONNECTIONS, timeout=None, decode_responses=decode_responses
    )
    return redis.asyncio.Redis.from_pool(pool)
