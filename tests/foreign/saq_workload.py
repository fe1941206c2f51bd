"""saq at work: workers of two queues, one of which has a space in its name, and jobs of every kind."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from redis import Redis
from saq import CronJob, Job, Queue

from foreign.workload import URL, announce, kill_at, program, turns, until, worker

SHORT = 1
LONG = 3600
FOREVER = 0
NOT_KEPT = -1
PENDING = 7


async def add(context: dict[str, Any], *, a: int, b: int) -> int:
    return a + b


async def fail(context: dict[str, Any]) -> None:
    raise ValueError("on purpose")


async def progress(context: dict[str, Any]) -> str:
    await context["job"].update(progress=0.5, meta={"half": True})
    return "done"


async def hang(context: dict[str, Any]) -> None:
    await asyncio.sleep(LONG)


async def tick(context: dict[str, Any]) -> str:
    return "tick"


def _queue(name: str) -> Any:
    return Queue.from_url(URL, name=name)


def _settings(name: str, **options: Any) -> dict[str, Any]:
    return {
        "queue": _queue(name),
        "functions": [add, fail, progress, hang, tick],
        "concurrency": 10,
        "timers": {"schedule": 1, "sweep": 1, "worker_info": 1, "abort": 1},
        **options,
    }


default = _settings("default", cron_jobs=[CronJob(tick, cron="* * * * * */1", ttl=LONG)])
spaced = _settings("low priority", dequeue_timeout=1)
lost = _settings("lost")


async def produce(queue: Any, turn: int) -> list[Job]:
    """Enqueue one job of each kind."""
    jobs = [
        await queue.enqueue("add", a=1, b=turn, ttl=LONG, meta={"turn": turn}),
        await queue.enqueue("add", a=2, b=turn, ttl=FOREVER, key=f"kept-{turn % 50}"),
        await queue.enqueue("fail", ttl=LONG),
        await queue.enqueue("fail", retries=2, ttl=LONG),
        await queue.enqueue("fail", retries=2, retry_delay=0.2, retry_backoff=True, ttl=LONG),
        await queue.enqueue("progress", ttl=LONG),
        await queue.enqueue("hang", timeout=1, ttl=LONG) if turn % 50 == 0 else None,
        await queue.enqueue("add", a=3, b=turn, ttl=LONG, scheduled=int(time.time()) + 1),
    ]
    for n in range(4):
        await queue.enqueue("add", a=n, b=turn, ttl=SHORT)
        await queue.enqueue("add", a=n, b=turn, ttl=NOT_KEPT)
    aborted = await queue.enqueue("add", a=4, b=turn, ttl=LONG, scheduled=int(time.time()) + LONG)
    await queue.abort(aborted, error="not wanted")
    return [job for job in jobs if job is not None]


async def work(client: Redis) -> None:
    queues = [_queue("default"), _queue("low priority")]
    for turn in turns():
        jobs = [job for queue in queues for job in await produce(queue, turn)]
        if turn == 0:
            await queues[0].map("add", [{"a": n, "b": n} for n in range(3)], timeout=30, ttl=SHORT)
            for job in jobs:
                await job.refresh(30)
            running = await queues[0].enqueue("hang", timeout=LONG, heartbeat=LONG, key="aborted")
            until(lambda: client.lpos("saq:default:active", running.id) is not None, "a job runs")  # noqa: B023
            await queues[0].abort(running, error="not wanted any more", ttl=LONG)
            announce()
        for queue in queues:
            until(lambda: client.llen(f"saq:{queue.name}:queued") < 60, "the workers follow")  # noqa: B023
    for queue in queues:
        await queue.disconnect()


async def leave_pending() -> None:
    for name in ("default", "low priority"):
        queue = _queue(name)
        for n in range(PENDING):
            await queue.enqueue("add", a=n, b=n, key=f"pending-{n}")
        await queue.enqueue("add", a=1, b=1, scheduled=int(time.time()) + LONG)
        await queue.disconnect()


async def lose() -> None:
    queue = _queue("lost")
    await queue.enqueue("hang", key="lost", timeout=LONG)
    await queue.disconnect()


def _is_running(client: Redis) -> object:
    """Return whether the job to lose runs. Enqueue it after the first sweep, which might abort it."""
    if client.exists("saq:lost:sweep") and not client.exists("saq:job:lost:lost"):
        asyncio.run(lose())
    return client.llen("saq:lost:active")


def main() -> None:
    client = Redis.from_url(URL)
    command = program("saq")
    kill_at(lambda: _is_running(client), "a job runs", command, "foreign.saq_workload.lost")
    with worker(command, "foreign.saq_workload.default"), worker(command, "foreign.saq_workload.spaced"):
        until(
            lambda: client.exists("saq:default:stats", "saq:low priority:stats") == 2, "the workers are there"
        )
        asyncio.run(work(client))
    asyncio.run(leave_pending())
