"""Celery at work: a worker process with Redis as broker and result backend, and tasks of every kind."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery, chord, group

from foreign.workload import URL, announce, program, turns, until, worker

PENDING = 7

app: Any = Celery("foreign", broker=URL, backend=URL)
app.conf.update(
    broker_connection_retry_on_startup=True,
    broker_transport_options={"queue_order_strategy": "priority", "priority_steps": [0, 3, 6, 9]},
    result_expires=3600,
    task_acks_late=True,
    worker_hijack_root_logger=False,
)


def _add(a: int, b: int) -> int:
    return a + b


def _total(numbers: list[int]) -> int:
    return sum(numbers)


def _fail() -> None:
    raise ValueError("on purpose")


def _retry(self: Any) -> None:
    raise self.retry(countdown=0.5, max_retries=1, exc=ValueError("again"))


# Not as decorators: Celery has no types, and mypy refuses a decorator without them.
add = app.task(_add, name="foreign.add")
quiet = app.task(_add, name="foreign.quiet", ignore_result=True)
total = app.task(_total, name="foreign.total")
fail = app.task(_fail, name="foreign.fail")
retry = app.task(_retry, name="foreign.retry", bind=True)


def produce(turn: int) -> list[Any]:
    """Call tasks of each kind."""
    for n in range(4):
        quiet.delay(n, turn)
        add.apply_async((n, turn), priority=(0, 3, 6, 9)[n], expires=3600)
    fail.delay()
    retry.delay()
    add.apply_async((1, turn), countdown=1)
    saved = group(add.s(n, turn) for n in range(2)).apply_async()
    saved.save()
    half_done = [add.s(1, turn), add.s(2, turn).set(countdown=1)]
    return [chord(half_done)(total.s()), add.apply_async((5, turn), queue="slow.queue")]


def main() -> None:
    options = (
        "--pool=threads",
        "--concurrency=4",
        "--queues=celery,slow.queue",
        "--events",
        "--loglevel=ERROR",
    )
    client = app.connection_for_write().default_channel.client
    with worker(program("celery"), "-A", "foreign.celery_workload", "worker", *options):
        for turn in turns():
            waited = produce(turn)
            until(lambda: client.llen("celery") < 60, "the worker follows")
            if turn == 0:
                for result in waited:
                    result.get(timeout=30)
                app.control.ping(timeout=0.5)
                announce()
    for n in range(PENDING):
        add.delay(n, n)
        add.apply_async((n, n), priority=6)
    # Taken and not acknowledged, as by a worker that is killed: a regular end would restore it.
    app.connection_for_read().channel().basic_get("celery", no_ack=False)
    os._exit(0)
