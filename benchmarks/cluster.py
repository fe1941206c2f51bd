"""1,000-call batches spread over a six-node cluster on loopback TCP, against redis-py's cluster pipelines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from redis.asyncio.cluster import RedisCluster as AsyncClusterClient
from redis.cluster import RedisCluster as ClusterClient

from benchmarks.batch import BATCHES, CALLS, Batch
from benchmarks.measuring import Contest, Result, blocking, in_loop
from benchmarks.workload import opened
from keywright import connect
from keywright.testing import RedisCluster

EXECUTIONS = 6


def measure() -> Iterator[Result]:
    with RedisCluster(options={"appendonly": "no"}) as cluster:
        for batch in BATCHES:
            yield _blocking(cluster.url, batch)
        for batch in BATCHES:
            yield _asyncio(cluster.url, batch)


def _blocking(url: str, batch: Batch) -> Result:
    with connect(url) as db, ClusterClient.from_url(url, decode_responses=batch.text) as client:

        def ours() -> list[Any]:
            return db.run(batch.call())

        def theirs() -> list[Any]:
            with client.pipeline() as pipe:
                batch.fill(pipe)
                return batch.read(pipe.execute())

        assert ours() == theirs()
        return Contest(
            "cluster",
            f"sync {batch.name}",
            blocking(ours, EXECUTIONS),
            "redis-py RedisCluster sync pipeline",
            blocking(theirs, EXECUTIONS),
        ).throughput(CALLS)


def _asyncio(url: str, batch: Batch) -> Result:
    with asyncio.Runner() as runner:
        db = runner.run(opened(url))
        client = AsyncClusterClient.from_url(url, decode_responses=batch.text)

        async def ours() -> list[Any]:
            return await db.run(batch.call())

        async def theirs() -> list[Any]:
            async with client.pipeline() as pipe:
                batch.fill(pipe)
                return batch.read(await pipe.execute())

        assert runner.run(ours()) == runner.run(theirs())
        try:
            return Contest(
                "cluster",
                f"asyncio {batch.name}",
                in_loop(runner, ours, EXECUTIONS),
                "redis-py RedisCluster asyncio pipeline",
                in_loop(runner, theirs, EXECUTIONS),
            ).throughput(CALLS)
        finally:
            runner.run(db.close())
            runner.run(client.aclose())
