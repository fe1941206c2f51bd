"""Workers on real brokers, and as programs that receive signals."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from datetime import timedelta

import msgspec
import pytest

from keywright_messaging import BrokerSettings, Delivery, Discard, Retry, Worker, decode, open_broker

from .broker_bench import EVENT, Bench, dead_letters_of, has_nothing, until

pytestmark = pytest.mark.anyio


class Question(msgspec.Struct):
    guild: str


class Answer(msgspec.Struct):
    members: int


async def test_a_worker_serves_every_broker(bench: Bench) -> None:
    worker, handled = Worker(group=bench.group, subgroup="sub"), Counter[int]()

    @worker.on(EVENT, concurrency=20)
    async def handle(number: int, delivery: Delivery) -> None:
        handled[number] += 1
        if number % 50 == 1:
            raise Discard("of no use")
        if number % 50 == 2 and delivery.attempt == 1:
            raise Retry("too early")

    @worker.on("STATS")
    async def stats(question: Question) -> Answer:
        return Answer(len(question.guild))

    async with bench.opened(retry_after=timedelta(milliseconds=20)) as broker:
        await broker.declare(*worker.handlers, subgroup="sub")
        await broker.publish_many(EVENT, range(200))
        serving = asyncio.create_task(worker.serve(broker))
        assert await broker.call("STATS", Question("123"), reply=Answer) == Answer(3)
        await until(lambda: handled.total() == 204)
        letters = await dead_letters_of(broker, EVENT, 4, subgroup="sub")
        worker.stop()
        await serving
        assert handled == Counter(range(200)) + Counter(range(2, 200, 50))
        assert sorted(decode(letter.body) for letter in letters) == list(range(1, 200, 50))
        assert await has_nothing(broker, EVENT, subgroup="sub")


PROGRAM = """
    import asyncio, signal, sys
    from keywright_messaging import open_broker
    from keywright_messaging.worker import Worker

    worker = Worker(group="g")

    @worker.on("E")
    async def hold(number: int) -> None:
        print("began", flush=True)
        await asyncio.sleep(0.2)
        print("ended", flush=True)

    @worker.on("START")
    async def never(number: int) -> None: ...

    sys.stdin.close()
    worker.run(sys.argv[1])
    print("stopped", flush=True)
"""


def started(url: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), url]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_run_lets_running_handlers_end_after_a_signal(redis_url: str, number: signal.Signals) -> None:
    async with await open_broker(redis_url, BrokerSettings(group="g")) as broker:
        await broker.declare("E")
        await broker.publish("E", 1)
    with started(redis_url) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "began\n"
        program.send_signal(number)
        assert program.stdout.read() == "ended\nstopped\n"
    assert program.returncode == 0
