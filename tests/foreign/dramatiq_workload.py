"""dramatiq at work: its command line runs the workers, this program enqueues messages of every kind."""

from __future__ import annotations

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import GroupCallbacks
from dramatiq.rate_limits import ConcurrentRateLimiter, WindowRateLimiter
from dramatiq.rate_limits.backends import RedisBackend as RateLimits
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend as ResultStore

from foreign.workload import URL, announce, program, turns, until, worker

SHORT_MS = 1000
LONG_MS = 3_600_000
PENDING = 7

broker = RedisBroker(url=URL)
limits = RateLimits(url=URL)
broker.add_middleware(Results(backend=ResultStore(url=URL), result_ttl=LONG_MS))
broker.add_middleware(GroupCallbacks(limits))
dramatiq.set_broker(broker)


@dramatiq.actor(store_results=True)
def add(a: int, b: int) -> int:
    return a + b


@dramatiq.actor(store_results=True, result_ttl=SHORT_MS)
def add_for_a_second(a: int, b: int) -> int:
    return a + b


@dramatiq.actor(max_retries=0, queue_name="low-priority")
def fail() -> None:
    raise ValueError("on purpose")


@dramatiq.actor(max_retries=1, min_backoff=500, queue_name="low-priority")
def fail_twice() -> None:
    raise ValueError("on purpose")


@dramatiq.actor(store_results=True)
def limited(user: str) -> int:
    with ConcurrentRateLimiter(limits, "imports", limit=8, ttl=60_000).acquire(raise_on_failure=False):
        pass
    with WindowRateLimiter(limits, f"window:{user}", limit=1000, window=60).acquire(raise_on_failure=False):
        return 1


def produce(turn: int) -> None:
    """Enqueue messages of each kind."""
    for n in range(8):
        add_for_a_second.send(n, turn)
    add.send(1, turn)
    fail.send()
    fail_twice.send()
    limited.send(f"user {turn % 5}")
    add.send_with_options(args=(2, turn), delay=300)
    group = dramatiq.group([add.message(n, turn) for n in range(2)])
    group.add_completion_callback(add.message(3, turn))
    group.run()


def main() -> None:
    with worker(program("dramatiq"), "--processes", "1", "--threads", "4", "foreign.dramatiq_workload"):
        first = add.send(0, 0)
        for turn in turns():
            produce(turn)
            until(
                lambda: broker.do_qsize("default") < 60 and broker.do_qsize("low-priority") < 60,
                "the worker follows",
            )
            if turn == 0:
                first.get_result(block=True, timeout=30_000)
                until(lambda: broker.client.exists("dramatiq:low-priority.XQ"), "a message fails")
                announce()
    for n in range(PENDING):
        add.send(n, n)
    add.send_with_options(args=(2, 2), delay=LONG_MS)
