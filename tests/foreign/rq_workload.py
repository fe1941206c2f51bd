"""RQ at work: two real workers, one of which forks and schedules, and jobs of every kind."""

from __future__ import annotations

from datetime import timedelta

from redis import Redis
from rq import Queue, Retry
from rq.exceptions import InvalidJobOperation
from rq.group import Group
from rq.job import Job

from foreign.workload import URL, announce, program, turns, until, worker

SHORT = 1
LONG = 3600
PENDING = 7


def add(a: int, b: int) -> int:
    return a + b


def fail(reason: str) -> None:
    raise ValueError(reason)


def produce(default: Queue, low: Queue, turn: int) -> list[Job]:
    """Enqueue one job of each kind."""
    first = default.enqueue(add, 1, turn, result_ttl=LONG, meta={"turn": turn})
    jobs = [
        first,
        *(default.enqueue(add, n, turn, result_ttl=SHORT) for n in range(8)),
        low.enqueue(add, 2, turn, result_ttl=LONG, depends_on=first, description="after the first"),
        low.enqueue(fail, "always", failure_ttl=LONG),
        low.enqueue(fail, "again", retry=Retry(max=2, interval=[0, 1]), failure_ttl=LONG),
        low.enqueue_in(timedelta(seconds=1), add, 3, turn, result_ttl=SHORT),
    ]
    canceled = default.enqueue_in(timedelta(hours=1), add, 4, turn)
    canceled.cancel()
    Group.create(default.connection, name=f"group-{turn}").enqueue_many(
        default, [Queue.prepare_data(add, (n, turn), result_ttl=LONG) for n in range(2)]
    )
    return jobs


def _is_pending(job: Job) -> bool:
    try:
        return job.get_status() in ("queued", "deferred", "started")
    except InvalidJobOperation:
        return False  # it has ended and expired: a slow machine


def main() -> None:
    connection = Redis.from_url(URL)
    default, low = Queue("default", connection=connection), Queue("low.priority", connection=connection)
    command = (program("rq"), "worker", "default", "low.priority", "--url", URL, "--quiet")
    with (
        worker(*command, "--name", "forks", "--with-scheduler"),
        worker(*command, "--name", "simple", "--worker-class", "rq.SimpleWorker"),
    ):
        for turn in turns():
            jobs = produce(default, low, turn)
            until(lambda: len(default) < 20 and len(low) < 20, "the workers follow")
            if turn == 0:
                until(lambda: not any(map(_is_pending, jobs)), "jobs end")  # noqa: B023  # called at once
                announce()
    for n in range(PENDING):
        default.enqueue(add, n, n, job_id=f"pending-{n}")
    low.enqueue_in(timedelta(hours=1), add, 5, 5)
    low.enqueue(add, 6, 6, depends_on=default.enqueue(add, 6, 6))
