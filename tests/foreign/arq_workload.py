"""arq at work: two workers with a cron job and health checks, a killed one, and jobs of every kind."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

from arq import Retry, create_pool, cron, func
from arq.connections import ArqRedis, RedisSettings
from redis import Redis

from foreign.workload import URL, announce, auntil, kill_at, program, turns, until, worker

SHORT = 1
LONG = 3600
PENDING = 7
SLOW = "arq:queue:slow"
LOST = "arq:queue:lost"


async def add(context: dict[str, Any], a: int, b: int) -> int:
    return a + b


async def fail(context: dict[str, Any], reason: str) -> None:
    raise ValueError(reason)


async def retry(context: dict[str, Any]) -> int:
    if context["job_try"] < 2:
        raise Retry(defer=0.2)
    return int(context["job_try"])


async def hang(context: dict[str, Any]) -> None:
    await asyncio.sleep(LONG)


async def tick(context: dict[str, Any]) -> str:
    return "tick"


class Settings:
    """Of the worker of the default queue."""

    functions = (
        func(add, keep_result=SHORT),
        func(add, name="add_for_long", keep_result=LONG),
        func(add, name="add_forever", keep_result_forever=True),
        func(fail, keep_result=LONG),
        func(retry, keep_result=LONG),
        func(hang, keep_result=LONG, timeout=LONG),
    )
    cron_jobs = (cron(tick, second=set(range(60)), keep_result=LONG),)
    redis_settings = RedisSettings.from_dsn(URL)
    allow_abort_jobs = True
    health_check_interval = 1
    poll_delay = 0.05
    max_jobs = 20


class SlowSettings:
    """Of a worker with a queue of its own."""

    functions = Settings.functions
    cron_jobs = ()
    redis_settings = Settings.redis_settings
    queue_name = SLOW
    allow_abort_jobs = False
    health_check_interval = 1
    poll_delay = 0.05


class LostSettings:
    """Of the worker that is killed."""

    functions = Settings.functions
    redis_settings = Settings.redis_settings
    queue_name = LOST


async def produce(pool: ArqRedis, turn: int) -> list[Any]:
    """Enqueue one job of each kind."""
    for n in range(6):
        await pool.enqueue_job("add", n, turn)
    jobs = [
        await pool.enqueue_job("add_for_long", 1, turn),
        await pool.enqueue_job("add_forever", 2, turn, _job_id=f"kept:{turn % 50}"),
        await pool.enqueue_job("fail", "always"),
        await pool.enqueue_job("retry"),
        await pool.enqueue_job("add_for_long", 3, turn, _defer_by=0.3),
        await pool.enqueue_job("add_for_long", 4, turn, _queue_name=SLOW),
        await pool.enqueue_job("missing_function"),
    ]
    if turn % 10 == 0:
        hanging = await pool.enqueue_job("hang")
        deferred = await pool.enqueue_job("add", 5, turn, _defer_by=timedelta(hours=1), _expires=LONG * 2)
        for job in (hanging, deferred):
            assert job is not None
            await job.abort(timeout=10, poll_delay=0.05)
    return [job for job in jobs if job is not None]


async def _ended(jobs: list[Any]) -> bool:
    return not [job for job in jobs if await job.status() != "complete"]


async def work(client: Redis) -> None:
    pool = await create_pool(RedisSettings.from_dsn(URL))
    for turn in turns():
        jobs = await produce(pool, turn)
        until(lambda: client.zcard("arq:queue") < 60, "the workers follow")
        if turn == 0:
            await auntil(lambda: _ended(jobs))  # noqa: B023  # called at once
            until(lambda: client.keys("arq:result:cron:*"), "a cron job ends")
            announce()
    await pool.aclose()


async def leave_pending() -> None:
    pool = await create_pool(RedisSettings.from_dsn(URL))
    for n in range(PENDING):
        job = await pool.enqueue_job("add", n, n, _job_id=f"pending-{n}")
        if n == 0:
            with suppress(TimeoutError):
                await job.abort(timeout=0)  # asked for, and no worker is there to do it
    await pool.enqueue_job("add", 1, 1, _defer_by=timedelta(hours=1))
    await pool.aclose()


async def lose() -> None:
    pool = await create_pool(RedisSettings.from_dsn(URL))
    await pool.enqueue_job("hang", _job_id="lost", _queue_name=LOST)
    await pool.aclose()


def main() -> None:
    client = Redis.from_url(URL)
    command = program("arq")
    asyncio.run(lose())
    kill_at(
        lambda: client.exists("arq:retry:lost"), "a job runs", command, "foreign.arq_workload.LostSettings"
    )
    with (
        worker(command, "foreign.arq_workload.Settings"),
        worker(command, "foreign.arq_workload.SlowSettings"),
    ):
        until(lambda: client.exists(f"{SLOW}:health-check"), "the workers are there")
        asyncio.run(work(client))
    asyncio.run(leave_pending())
