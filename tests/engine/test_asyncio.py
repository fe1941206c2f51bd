"""The asyncio engine under many callers: order, bounds, cancellation, waiting and closing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

import pytest

from engines import Queue, Tally, Word
from keywright import AsyncDatabase, Binding, Call, Retry, Settings, aconnect, gather, gather_list
from keywright.engine.embedded import living_pids
from keywright.errors import (
    ConnectionLostError,
    DeadlineError,
    EngineError,
    KeywrightError,
    OutcomeUnknownError,
    UsageError,
)
from keywright.operations import slot_of
from keywright.testing import Proxy, RedisCluster, RedisServer, wait_until
from keywright.testing.runs import Raw

pytestmark = pytest.mark.anyio

LONG = timedelta(seconds=60)


@asynccontextmanager
async def _opened(url: str, **settings: Any) -> AsyncIterator[AsyncDatabase]:
    async with aconnect(url, settings=Settings(**settings)) as database:
        yield database


def _blocked(raw: Raw) -> int:
    return int(raw("INFO", "clients")["blocked_clients"])


@pytest.mark.parametrize("url", ["redis_url", "cluster_url"])
async def test_ten_thousand_calls_at_once_each_get_their_own_answer(
    url: str, request: pytest.FixtureRequest
) -> None:
    async with _opened(request.getfixturevalue(url)) as database:
        await database.run(gather_list(Word(f"w{n}").set(f"x{n}") for n in range(10_000)))
        found = await asyncio.gather(*(database.run(Word(f"w{n}").get()) for n in range(10_000)))

    assert found == [f"x{n}" for n in range(10_000)]


async def test_cancelled_calls_do_not_shift_the_answers_of_others(redis_url: str) -> None:
    async with _opened(redis_url) as database:
        await database.run(gather_list(Word(f"w{n}").set(f"x{n}") for n in range(300)))
        tasks = [asyncio.create_task(database.run(Word(f"w{n}").get())) for n in range(300)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # by now everything is written, and nothing is answered
        for task in tasks[::3]:
            task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)

    assert all(isinstance(answer, asyncio.CancelledError) for answer in found[::3])
    assert [answer for n, answer in enumerate(found) if n % 3] == [f"x{n}" for n in range(300) if n % 3]


async def test_calls_cancelled_before_they_are_sent_leave_the_connection_as_it_is(
    redis_url: str, keywright_server: RedisServer
) -> None:
    async with _opened(redis_url) as database:
        await database.run(Word("a").set("x"))
        connection = database._home.ready
        assert connection is not None
        unsent = asyncio.create_task(database.run(Word("a").get()))
        await asyncio.sleep(0)
        unsent.cancel()
        await asyncio.gather(unsent, return_exceptions=True)
        found = len(connection.waiting), await database.run(Word("a").get())

    assert found == (0, "x")


@pytest.mark.parametrize("url", ["redis_url", "cluster_url"])
async def test_calls_in_flight_stay_within_their_bound(url: str, request: pytest.FixtureRequest) -> None:
    """At most one batch goes beyond the bound, and a batch is no larger than the calls of one caller."""

    async with _opened(request.getfixturevalue(url), most_calls_in_flight=5_000) as database:
        most = 0

        async def one(number: int) -> None:
            nonlocal most
            await database.run(gather_list(Word(f"w{number}-{n}").set("x") for n in range(6_000)))
            most = max(most, database._calls_in_flight)

        async def watch() -> None:
            nonlocal most
            while True:
                most = max(most, database._calls_in_flight)
                await asyncio.sleep(0)

        watcher = asyncio.create_task(watch())
        await asyncio.gather(*(one(number) for number in range(6)))
        watcher.cancel()
        found = most, database._calls_in_flight + database._bytes_in_flight

    most, left = found
    assert most <= 5_000 + 6_000
    assert left == 0


async def test_calls_that_wait_for_room_are_sent_when_the_ones_before_them_fail(
    redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)

    async with _opened(proxy.url, most_calls_in_flight=1) as database:
        proxy.cut_before_reply()
        calls = [database.run(Tally(f"t{n}").add(1)) for n in range(20)]
        found = await asyncio.gather(*calls, return_exceptions=True)

    assert all(answer == 1 or isinstance(answer, OutcomeUnknownError) for answer in found)


async def test_a_caller_that_waits_for_an_item_does_not_hold_up_others(redis_url: str, raw: Raw) -> None:
    async with _opened(redis_url) as database:
        waiting = asyncio.create_task(database.run(Queue("a").wait(LONG)))
        await asyncio.to_thread(wait_until, lambda: _blocked(raw) == 1, "the pop waits")
        await database.run(Word("a").set("x"))
        assert await database.run(Word("a").get()) == "x"
        await database.run(Queue("a").push("item"))
        assert await waiting == "item"


async def test_waiting_calls_in_one_gather_may_wait_longer_than_the_timeout(redis_url: str) -> None:
    async with _opened(redis_url, timeout_seconds=0.3) as database:
        short = timedelta(seconds=0.4)
        found = await database.run(gather(Queue("a").wait(short), Queue("b").wait(short)))

    assert found == (None, None)


async def test_a_cancelled_wait_takes_no_item(redis_url: str, raw: Raw) -> None:
    async with _opened(redis_url) as database:
        waiting = asyncio.create_task(database.run(Queue("a").wait(LONG)))
        await asyncio.to_thread(wait_until, lambda: _blocked(raw) == 1, "the pop waits")
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.to_thread(wait_until, lambda: _blocked(raw) == 0, "the server knows")
        await database.run(Queue("a").push("item"))

    assert raw("LRANGE", "queue:a", 0, -1) == [b"item"]


async def test_waiting_calls_use_a_bounded_number_of_connections(
    redis_url: str, make_proxy: Callable[[str], Proxy], raw: Raw
) -> None:
    proxy = make_proxy(redis_url)

    async with _opened(proxy.url, most_connections=3) as database:
        waits = [asyncio.create_task(database.run(Queue("a").wait(LONG))) for _ in range(20)]
        await asyncio.to_thread(wait_until, lambda: _blocked(raw) == 3, "three pops wait")
        for number in range(20):
            await database.run(Queue("a").push(str(number)))
        found = await asyncio.gather(*waits)

    assert sorted(int(item or -1) for item in found) == list(range(20))
    assert proxy.connections == 4  # and the one that everybody shares


async def test_a_long_wait_does_not_lengthen_the_deadline_of_the_next(
    redis_url: str, keywright_server: RedisServer
) -> None:
    async with _opened(redis_url, timeout_seconds=0.3) as database:
        await database.run(Queue("a").push("item"))
        await database.run(Queue("a").wait(LONG))
        keywright_server.pause()
        try:
            with pytest.raises(DeadlineError):
                await asyncio.wait_for(database.run(Queue("a").wait(timedelta(seconds=0.1))), 30)
        finally:
            keywright_server.resume()


@pytest.mark.parametrize("sort", ["read", "write once", "wait", "unsent"])
async def test_closing_ends_calls_that_are_under_way(
    sort: str, redis_url: str, keywright_server: RedisServer
) -> None:
    calls: dict[str, Callable[[], Call[Any]]] = {
        "read": lambda: Word("a").get(),
        "write once": lambda: Tally("a").add(1),
        "wait": lambda: Queue("a").wait(LONG),
        "unsent": lambda: gather_list(Word(f"w{n}").get() for n in range(50)),
    }
    bound = {"most_calls_in_flight": 10} if sort == "unsent" else {}

    async with _opened(keywright_server.tcp_url, **bound) as database:
        keywright_server.pause()
        tasks = [asyncio.create_task(database.run(calls[sort]())) for _ in range(20)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await database.close()
        found = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)
        keywright_server.resume()

    assert all(isinstance(answer, EngineError) for answer in found)
    if sort == "write once":
        assert {type(answer) for answer in found} == {OutcomeUnknownError}


async def test_a_closed_database_says_so(redis_url: str) -> None:
    async with _opened(redis_url) as database:
        await database.close()
        with pytest.raises(KeywrightError, match="closed"):
            await database.run(Word("a").get())


@pytest.mark.parametrize("url", ["redis_url", "cluster_url"])
async def test_a_call_that_cannot_be_sent_does_not_fail_the_others_of_its_batch(
    url: str, request: pytest.FixtureRequest
) -> None:
    async with _opened(request.getfixturevalue(url)) as database:
        calls: list[Call[Any]] = [Tally("a").add(1), Queue("a").range(cast("int", None)), Tally("a").add(1)]
        found = await asyncio.gather(*map(database.run, calls), return_exceptions=True)

    first, refused, second = found
    assert (first, second) == (1, 2)
    assert isinstance(refused, UsageError)
    assert "LRANGE b'queue:a' cannot be sent" in str(refused)


async def test_batches_that_lost_their_connection_wait_for_one_new_one(
    redis_url: str, keywright_server: RedisServer, make_proxy: Callable[[str], Proxy]
) -> None:
    """Reconnecting one after another would cost one deadline per batch if the server does not answer."""
    proxy = make_proxy(redis_url)

    async with _opened(proxy.url, timeout_seconds=1.0, retry=Retry(attempts=2)) as database:
        keywright_server.pause()
        try:
            sent, tasks = proxy.commands, []
            for number in range(1, 9):
                tasks.append(asyncio.create_task(database.run(Word("a").get())))
                await asyncio.to_thread(wait_until, lambda: proxy.commands == sent + number, "it is sent")  # noqa: B023
            proxy.cut()
            found = await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            keywright_server.resume()

    assert {type(answer) for answer in found} == {ConnectionLostError}
    assert proxy.connections == 2


async def test_an_unsolicited_reply_is_not_taken_for_an_answer(
    redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)

    async with _opened(proxy.url) as database:
        (way,), connection = proxy._links, database._home.ready
        assert connection is not None
        way._client.sendall(b":7\r\n")
        await asyncio.to_thread(
            wait_until, lambda: not connection.open or connection.parser.has_data(), "it came"
        )
        found = await database.run(Tally("a").add(1))

    assert found == 1


async def test_a_first_command_to_a_node_is_not_sent_while_closing(
    cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    away = _tally_elsewhere(keywright_cluster)

    async with _opened(cluster_url) as database:
        await database.run(Tally("a").add(1))
        task = asyncio.create_task(database.run(Tally(away).add(1)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # by now it is on its way to a node that no connection leads to
        await database.close()
        (found,) = await asyncio.gather(task, return_exceptions=True)

    assert isinstance(found, ConnectionLostError)
    assert keywright_cluster.master_of(_slot_of(away)).call("GET", f"tally:{away}") is None


async def test_closing_distinguishes_applied_commands_from_unsent_ones(
    cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    home, away = keywright_cluster.master_of(_slot_of("a")), _tally_elsewhere(keywright_cluster)
    frozen = keywright_cluster.master_of(_slot_of(away))

    async with _opened(cluster_url) as database:
        frozen.pause()
        tasks = [asyncio.create_task(database.run(Tally(name).add(1))) for name in ("a", away)]
        await asyncio.to_thread(wait_until, lambda: home.call("GET", "tally:a") == b"1", "one is applied")
        await database.close()
        found = await asyncio.gather(*tasks, return_exceptions=True)

    try:
        applied, unsent = found
    finally:
        frozen.resume()
    assert applied == 1 or isinstance(applied, OutcomeUnknownError)
    assert isinstance(unsent, ConnectionLostError)


def _tally_elsewhere(cluster: RedisCluster) -> str:
    """Return the name of a tally that another master serves than that of tally a."""
    home = cluster.master_of(_slot_of("a"))
    return next(f"t{n}" for n in range(99) if cluster.master_of(_slot_of(f"t{n}")) is not home)


def _slot_of(tally: str) -> int:
    return slot_of(b"tally:" + tally.encode())


async def test_a_database_that_cannot_be_made_leaves_no_embedded_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    before = living_pids()

    with pytest.raises(UsageError, match="cannot be bound"):
        await aconnect(None, cast("Binding", "no binding"))
    assert living_pids() == before
