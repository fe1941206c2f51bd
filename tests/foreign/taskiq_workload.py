"""taskiq at work: a worker and a scheduler, with lists or with streams, and a worker that is killed."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import UTC, datetime, timedelta
from typing import Any

from redis import Redis
from taskiq import AcknowledgeType, Context, SimpleRetryMiddleware, TaskiqDepends, TaskiqScheduler
from taskiq.api import run_receiver_task, run_scheduler_task
from taskiq.depends.progress_tracker import ProgressTracker, TaskState
from taskiq.serializers import JSONSerializer
from taskiq_redis import (
    ListQueueBroker,
    ListRedisScheduleSource,
    RedisAsyncResultBackend,
    RedisScheduleSource,
    RedisStreamBroker,
)

from foreign.workload import URL, announce, kill_at, python_worker, turns, until, worker

SHORT = 1
LONG = 3600
PENDING = 7

MODULE = "foreign.taskiq_workload"
STREAMS = "TASKIQ_STREAMS"
"""The variable by which the workers know that the queues are streams."""

_STREAMS = STREAMS in os.environ
bare: Any = RedisAsyncResultBackend(URL, result_ex_time=LONG)
brief: Any = RedisAsyncResultBackend(URL, result_px_time=SHORT * 1000, prefix_str="results")
kept: Any = RedisAsyncResultBackend(URL, prefix_str="kept", serializer=JSONSerializer())


def _broker(results: Any, **options: Any) -> Any:
    streams = RedisStreamBroker(URL, consumer_id="0", maxlen=500, xread_block=100, **options)
    broker = streams if _STREAMS else ListQueueBroker(URL, **options)
    return broker.with_result_backend(results).with_middlewares(SimpleRetryMiddleware())


usual = _broker(bare)
other = _broker(brief, queue_name="low-priority")
lost = _broker(kept, queue_name="lost")
brokers = (usual, other, lost)

schedules: Any = RedisScheduleSource(URL) if _STREAMS else ListRedisScheduleSource(URL)
scheduler: Any = TaskiqScheduler(usual, [schedules])


async def add(a: int, b: int) -> int:
    return a + b


async def fail() -> None:
    raise ValueError("on purpose")


async def progress(tracker: ProgressTracker[Any] = TaskiqDepends()) -> str:  # noqa: B008
    await tracker.set_progress(TaskState.STARTED, {"done": 1, "of": 2})
    return "done"


async def hang(context: Context = TaskiqDepends()) -> None:  # noqa: B008
    await asyncio.sleep(LONG)


tasks = {
    broker: {
        "add": broker.register_task(add, task_name="add"),
        "fail": broker.register_task(fail, task_name="fail"),
        "retry": broker.register_task(fail, task_name="retry", retry_on_error=True, max_retries=2),
        "progress": broker.register_task(progress, task_name="progress"),
        "hang": broker.register_task(hang, task_name="hang"),
    }
    for broker in brokers
}


async def produce(turn: int) -> list[Any]:
    """Send one task of each kind to each broker, and schedule some."""
    waited = []
    for broker in (usual, other):
        task = tasks[broker]
        waited += [await task["add"].kiq(1, turn), await task["progress"].kiq()]
        for n in range(4):
            await task["add"].kicker().with_labels(turn=turn, urgent=n == 0).kiq(n, turn)
        await task["fail"].kiq()
        await task["retry"].kiq()
    later = datetime.now(UTC) + timedelta(seconds=LONG + turn)
    add_task = tasks[usual]["add"]
    await add_task.schedule_by_time(schedules, later, 2, turn)
    if turn % 10 == 0:
        await add_task.schedule_by_cron(schedules, "*/5 * * * *", 3, turn)
        await add_task.schedule_by_interval(schedules, timedelta(hours=1), 4, turn)
        gone = await add_task.schedule_by_time(schedules, later, 6, turn)
        await gone.unschedule()
        await add_task.schedule_by_time(schedules, datetime.now(UTC), 7, turn)
    return waited


async def work(client: Redis) -> None:
    for broker in (usual, other):
        await broker.startup()
    for turn in turns():
        waited = await produce(turn)
        if turn == 0:
            for task in waited:
                await task.wait_result(check_interval=0.01, timeout=30)
            announce()
        until(lambda: _STREAMS or client.llen("taskiq") < 60, "the workers follow")
    for broker in (usual, other):
        await broker.shutdown()


async def leave_pending() -> None:
    for broker in (usual, other):
        await broker.startup()
        for n in range(PENDING):
            await tasks[broker]["add"].kiq(n, n)
        await broker.shutdown()


async def lose() -> None:
    await lost.startup()
    await tasks[lost]["add"].kiq(1, 2)
    await tasks[lost]["progress"].kiq()
    await tasks[lost]["hang"].kiq()
    await lost.shutdown()


async def _serve(*brokers: Any, schedule: bool = False) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    running = [
        asyncio.create_task(
            run_receiver_task(broker, run_startup=True, ack_time=AcknowledgeType.WHEN_EXECUTED)
        )
        for broker in brokers
    ]
    if schedule:
        running.append(asyncio.create_task(run_scheduler_task(scheduler, interval=timedelta(seconds=1))))
    await stopped.wait()
    for task in running:
        task.cancel()


def serve() -> None:
    """Run a worker of each broker and the scheduler until SIGTERM."""
    asyncio.run(_serve(usual, other, schedule=True))


def serve_lost() -> None:
    """Run the worker that is killed."""
    asyncio.run(_serve(lost))


def main() -> None:
    client = Redis.from_url(URL)
    asyncio.run(lose())
    kill_at(lambda: len(client.keys("kept:*")) == 3, "a task hangs", *python_worker(MODULE, "serve_lost"))
    with worker(*python_worker(MODULE, "serve")):
        asyncio.run(work(client))
    asyncio.run(leave_pending())
