"""Confirmed messages survive killed workers, killed servers and cut connections. Duplicates are counted.

KEYWRIGHT_FAULT_MESSAGES is the number of messages for the killed workers, by default 100,000. The number of
duplicates is logged (--log-cli-level=INFO).
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from keywright.testing import Proxy, RedisServer, wait_until
from keywright_messaging import Broker, Consumer
from keywright_messaging.testing.rabbitmq import RabbitServer

from . import doomed_worker
from .broker_bench import EVENT, Bench, has_nothing, receive, until

pytestmark = pytest.mark.anyio


MESSAGES = int(os.environ.get("KEYWRIGHT_FAULT_MESSAGES", "100000"))
PREFETCH = 500
KILLS = 4
CHUNK = 1_000
PATIENT: dict[str, Any] = {"connect_timeout": timedelta(seconds=50)}

Server = RedisServer | RabbitServer

_log = logging.getLogger(__name__)


@pytest.fixture(params=["redis", "rabbitmq"])
def bench(request: pytest.FixtureRequest) -> Bench:
    fixture = {"redis": "redis_url", "rabbitmq": "amqp_url"}[request.param]
    return Bench(request.param, request.getfixturevalue(fixture), PATIENT)


@pytest.fixture
def server(bench: Bench, request: pytest.FixtureRequest) -> Server:
    fixture = {"redis": "keywright_server", "rabbitmq": "keywright_rabbitmq"}[bench.kind]
    found: Server = request.getfixturevalue(fixture)
    return found


def payload(number: int) -> dict[str, Any]:
    return {"number": number, "content": "x" * 200}


async def publish_all(broker: Broker, count: int, confirmed: set[int]) -> None:
    """Publish in order, in chunks; a number is confirmed with its chunk."""
    for start in range(0, count, CHUNK):
        numbers = range(start, min(start + CHUNK, count))
        await broker.publish_many(EVENT, map(payload, numbers))
        confirmed.update(numbers)


async def consume_all(consumer: Consumer, count: int, seen: Counter[int]) -> None:
    """Consume until every number was seen."""
    while len(seen) < count:
        batch = await consumer.batch(PREFETCH)
        seen.update(delivery.data["number"] for delivery in batch)
        await consumer.acknowledge_all(batch)


def duplicates(seen: Counter[int]) -> int:
    return seen.total() - len(seen)


@contextmanager
def worker_process(bench: Bench, path: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [
        sys.executable,
        doomed_worker.__file__,
        bench.url,
        bench.group,
        EVENT,
        str(PREFETCH),
        str(path),
    ]
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_a_killed_worker_loses_no_message_and_repeats_at_most_its_prefetch(
    bench: Bench, tmp_path: Path
) -> None:
    path = tmp_path / "numbers"
    path.touch()
    async with bench.declared() as broker:
        confirmed = set[int]()
        await publish_all(broker, MESSAGES, confirmed)
        assert len(confirmed) == MESSAGES
    for kill in range(1, KILLS + 1):
        with worker_process(bench, path) as worker:
            enough = MESSAGES * kill // (KILLS + 1)
            wait_until(lambda enough=enough: _lines(path) >= enough, f"{enough} were handled", seconds=120)  # type: ignore[misc]  # binds the loop's value
            worker.kill()
    with worker_process(bench, path):
        wait_until(lambda: _lines(path) >= MESSAGES and len(_numbers(path)) == MESSAGES, "all", seconds=120)
    seen = _numbers(path)
    assert set(seen) == set(range(MESSAGES))
    _log.info("%s: %d duplicates of %d in %d kills", bench.kind, duplicates(seen), MESSAGES, KILLS)
    assert duplicates(seen) <= KILLS * PREFETCH


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _numbers(path: Path) -> Counter[int]:
    return Counter(int(line) for line in path.read_bytes().split())


async def test_a_server_killed_while_publishing_loses_no_confirmed_message(
    bench: Bench, server: Server
) -> None:
    count, confirmed = 20 * CHUNK, set[int]()
    async with bench.declared() as broker:
        publishing = asyncio.create_task(publish_all(broker, count, confirmed))
        await until(lambda: len(confirmed) >= 3 * CHUNK)
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        await publishing
        assert len(confirmed) == count
        seen = Counter[int]()
        async with broker.consume(EVENT, prefetch=PREFETCH) as consumer:
            await consume_all(consumer, count, seen)
    assert set(seen) == confirmed


async def test_a_server_killed_while_consuming_loses_no_message(bench: Bench, server: Server) -> None:
    count, seen = 10 * CHUNK, Counter[int]()
    async with bench.declared() as broker:
        await publish_all(broker, count, set())
        async with broker.consume(EVENT, prefetch=PREFETCH) as consumer:
            consuming = asyncio.create_task(consume_all(consumer, count, seen))
            await until(lambda: len(seen) >= 2 * CHUNK)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            await consuming
    assert set(seen) == set(range(count))


async def test_single_publishes_during_a_restart_all_arrive(bench: Bench, server: Server) -> None:
    async with bench.declared() as broker:
        await asyncio.to_thread(server.kill)
        publishing = [asyncio.create_task(broker.publish(EVENT, payload(number))) for number in range(200)]
        await asyncio.to_thread(server.start)
        await asyncio.gather(*publishing)
        seen = Counter[int]()
        async with broker.consume(EVENT, prefetch=PREFETCH) as consumer:
            await consume_all(consumer, 200, seen)
    assert set(seen) == set(range(200))


async def test_a_waiting_consumer_receives_after_the_server_came_back(bench: Bench, server: Server) -> None:
    async with bench.declared() as broker, broker.consume(EVENT) as consumer:
        waiting = asyncio.create_task(consumer.batch(1))
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        await broker.publish(EVENT, payload(7))
        (delivery,) = await waiting
        assert delivery.data == payload(7)


@pytest.fixture
def cut(bench: Bench, server: Server, make_proxy: Callable[[str], Proxy]) -> tuple[Bench, Callable[[], None]]:
    """Return the bench and a function that cuts every connection to its broker."""
    if isinstance(server, RabbitServer):
        return bench, server.close_connections
    proxy = make_proxy(bench.url)
    return Bench(bench.kind, proxy.url, bench.settings), proxy.cut


async def test_cut_connections_lose_no_confirmed_message(
    cut: tuple[Bench, Callable[[], None]],
) -> None:
    bench, strike = cut
    count, cuts = 20 * CHUNK, 3
    confirmed, seen = set[int](), Counter[int]()
    async with bench.declared() as broker, broker.consume(EVENT, prefetch=PREFETCH) as consumer:
        working = asyncio.gather(publish_all(broker, count, confirmed), consume_all(consumer, count, seen))
        for number in range(1, cuts + 1):
            await until(lambda number=number: len(seen) >= number * 4 * CHUNK)  # type: ignore[misc]  # binds the loop's value
            await asyncio.to_thread(strike)
        await working
        assert set(seen) == confirmed == set(range(count))
        # A cut repeats what was unsettled, and the chunk whose confirmation it swallowed.
        assert duplicates(seen) <= cuts * (PREFETCH + CHUNK)


async def test_settling_after_a_cut_does_nothing_and_the_message_is_redelivered(
    cut: tuple[Bench, Callable[[], None]],
) -> None:
    bench, strike = cut
    async with bench.declared() as broker:
        async with broker.consume(EVENT) as consumer:
            await broker.publish(EVENT, payload(1))
            (before,) = await consumer.batch(1)
            await asyncio.to_thread(strike)
            (again,) = await consumer.batch(1)
            assert (again.id, again.data) == (before.id, payload(1))
            await before.acknowledge()
        async with broker.consume(EVENT) as consumer:
            assert await receive(consumer, 1) == [payload(1)]
        assert await has_nothing(broker, EVENT)


async def test_a_call_survives_a_cut_before_it(cut: tuple[Bench, Callable[[], None]]) -> None:
    bench, strike = cut
    async with bench.declared() as caller, bench.opened() as callee, callee.consume(EVENT) as consumer:
        # A question whose acknowledgement the cut swallowed comes once more.
        answering = asyncio.create_task(answer(consumer))
        for number in range(3):
            assert await caller.call(EVENT, number, within=timedelta(seconds=30)) == number + 1
            await asyncio.to_thread(strike)
        answering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await answering


async def answer(consumer: Consumer) -> None:
    async for delivery in consumer:
        await delivery.reply(delivery.data + 1)
        await delivery.acknowledge()
