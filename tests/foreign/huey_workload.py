"""huey at work with its Redis storages: a process runs their consumers, and another one is killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

from huey import PriorityRedisExpireHuey, PriorityRedisHuey, RedisExpireHuey, RedisHuey, crontab
from huey.api import chord, group

from foreign.workload import URL, announce, kill_at, python_worker, turns, until, worker

SHORT = 1
LONG = 3600
PENDING = 7

PRIORITY = "HUEY_PRIORITY"
"""The variable by which the consumers know that the queues have priorities."""

_CONNECTION: dict[str, Any] = {"url": URL, "read_timeout": 0.1}
_PLAIN, _EXPIRE = (
    (PriorityRedisHuey, PriorityRedisExpireHuey) if PRIORITY in os.environ else (RedisHuey, RedisExpireHuey)
)
queues: dict[str, Any] = {
    "plain": _PLAIN("plain", notify_result=True, notify_result_ttl=LONG, **_CONNECTION),
    "passing": _EXPIRE(
        "passing", expire_time=SHORT, notify_result=True, notify_result_ttl=SHORT, **_CONNECTION
    ),
    "lasting": _EXPIRE("lasting", expire_time=LONG, **_CONNECTION),
}


def _tasks(huey: Any) -> dict[str, Any]:
    def add(a: int, b: int) -> int:
        return a + b

    def total(numbers: list[int]) -> int:
        return sum(numbers)

    def fail() -> None:
        raise ValueError("on purpose")

    def locked(seconds: float) -> str:
        time.sleep(seconds)
        return "released"

    def limited() -> str:
        return "within the limit"

    huey.periodic_task(crontab(minute="*"), name="every_minute")(lambda: "tick")
    return {
        "add": huey.task(name="add")(add),
        "total": huey.task(name="total")(total),
        "fail": huey.task(name="fail", retries=1)(fail),
        "fail_later": huey.task(name="fail_later", retries=1, retry_delay=1)(fail),
        "locked": huey.task(name="locked")(huey.lock_task("reports")(locked)),
        "limited": huey.task(name="limited")(huey.rate_limit("mail", 2, per=LONG, retry=False)(limited)),
    }


tasks = {name: _tasks(huey) for name, huey in queues.items()}


def serve() -> None:
    """Run a consumer of each queue until SIGTERM."""
    stopped = threading.Event()
    consumers = [
        huey.create_consumer(workers=1, initial_delay=0.01, max_delay=0.05) for huey in queues.values()
    ]
    for consumer in consumers:
        consumer.start()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    stopped.wait()
    for consumer in consumers:
        consumer.stop(graceful=True)


def serve_one() -> None:
    """Run a consumer of one queue."""
    queues["plain"].create_consumer(workers=1).run()


def produce(name: str, turn: int) -> list[Any]:
    """Enqueue tasks of each kind. Return results that are read, which removes them from some storages."""
    task, priority = tasks[name], {"priority": turn % 3} if PRIORITY in os.environ else {}
    add = task["add"]
    read = [add(n, turn, **priority) for n in range(2)]
    for n in range(3):
        add(n, turn)
    task["fail"]()
    task["fail_later"]()
    task["limited"]()
    task["locked"](0)
    add.schedule((5, turn), delay=1)
    queues[name].enqueue(add.s(6, turn).then(add, 7))
    queues[name].enqueue(group([add.s(n, turn) for n in range(2)]))
    queues[name].enqueue(chord([add.s(n, turn) for n in range(2)], task["total"].s()))
    add.schedule((8, turn), delay=LONG).revoke()
    return read


def main() -> None:
    plain = queues["plain"]
    tasks["plain"]["locked"](LONG)
    kill_at(
        lambda: plain.storage.has_data_for_key("plain.lock.reports"),
        "a lock is held",
        *python_worker("foreign.huey_workload", "serve_one"),
    )
    with worker(*python_worker("foreign.huey_workload", "serve")):
        for turn in turns():
            read = [result for name in queues for result in produce(name, turn)]
            until(lambda: all(huey.pending_count() < 60 for huey in queues.values()), "the consumers follow")
            if turn == 0:
                for result in read:
                    result.get(blocking=True, timeout=30)
                until(lambda: not any(huey.pending_count() for huey in queues.values()), "tasks end")
                tasks["plain"]["total"].revoke()
                announce()
            elif turn == 1:
                tasks["plain"]["total"].restore()
    for name, huey in queues.items():
        for n in range(PENDING):
            tasks[name]["add"](n, n)
        tasks[name]["add"].schedule((1, 1), delay=LONG)
        tasks[name]["total"].revoke()
        huey.revoke_by_id(tasks[name]["add"].schedule((2, 2), delay=LONG).id)
