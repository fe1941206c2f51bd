"""1,000 typed calls in one batch, against redis-py's pipelines without a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import redis
import redis.asyncio

from benchmarks.batch import BATCHES, CALLS, Batch
from benchmarks.measuring import Contest, Result, blocking, in_loop
from benchmarks.workload import opened
from keywright import connect
from keywright.testing import RedisServer

EXECUTIONS = 12
SYNC_TARGET = 3.0
ASYNC_TARGET = 5.0


def measure(server: RedisServer) -> Iterator[Result]:
    url = server.url
    for batch in BATCHES:
        yield _blocking(url, batch)
    for batch in BATCHES:
        yield _asyncio(url, batch)


def _blocking(url: str, batch: Batch) -> Result:
    with connect(url) as db, redis.Redis.from_url(url, decode_responses=batch.text) as client:

        def ours() -> list[Any]:
            return db.run(batch.call())

        def theirs() -> list[Any]:
            with client.pipeline(transaction=False) as pipe:
                batch.fill(pipe)
                return batch.read(pipe.execute())

        assert ours() == theirs()
        return Contest(
            "batches",
            f"sync {batch.name}",
            blocking(ours, EXECUTIONS),
            "redis-py sync pipeline",
            blocking(theirs, EXECUTIONS),
        ).throughput(CALLS, at_least=SYNC_TARGET)


def _asyncio(url: str, batch: Batch) -> Result:
    with asyncio.Runner() as runner:
        db = runner.run(opened(url))
        client = redis.asyncio.Redis.from_url(url, decode_responses=batch.text)

        async def ours() -> list[Any]:
            return await db.run(batch.call())

        async def theirs() -> list[Any]:
            async with client.pipeline(transaction=False) as pipe:
                batch.fill(pipe)
                return batch.read(await pipe.execute())

        assert runner.run(ours()) == runner.run(theirs())
        try:
            return Contest(
                "batches",
                f"asyncio {batch.name}",
                in_loop(runner, ours, EXECUTIONS),
                "redis-py asyncio pipeline",
                in_loop(runner, theirs, EXECUTIONS),
            ).throughput(CALLS, at_least=ASYNC_TARGET)
        finally:
            runner.run(db.close())
            runner.run(client.aclose())
