"""The asyncio engine under many callers: order, bounds, cancellation, waiting and closing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
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

LONG = timedelta(seconds=60)


def _on(url: str, work: Callable[[AsyncDatabase], Coroutine[Any, Any, Any]], **settings: Any) -> Any:
    async def opened() -> Any:
        async with aconnect(url, settings=Settings(**settings)) as database:
            return await work(database)

    return asyncio.run(opened())


def _blocked(raw: Raw) -> int:
    return int(raw("INFO", "clients")["blocked_clients"])


@pytest.mark.parametrize("url", ["redis_url", "cluster_url"])
def test_ten_thousand_calls_at_once_each_get_their_own_answer(
    url: str, request: pytest.FixtureRequest
) -> None:
    async def work(database: AsyncDatabase) -> list[str | None]:
        await database.run(gather_list(Word(f"w{n}").set(f"x{n}") for n in range(10_000)))
        return await asyncio.gather(*(database.run(Word(f"w{n}").get()) for n in range(10_000)))

    assert _on(request.getfixturevalue(url), work) == [f"x{n}" for n in range(10_000)]


def test_cancelled_calls_do_not_shift_the_answers_of_others(redis_url: str) -> None:
    async def work(database: AsyncDatabase) -> list[Any]:
        await database.run(gather_list(Word(f"w{n}").set(f"x{n}") for n in range(300)))
        tasks = [asyncio.create_task(database.run(Word(f"w{n}").get())) for n in range(300)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # by now everything is written, and nothing is answered
        for task in tasks[::3]:
            task.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = _on(redis_url, work)
    assert all(isinstance(answer, asyncio.CancelledError) for answer in found[::3])
    assert [answer for n, answer in enumerate(found) if n % 3] == [f"x{n}" for n in range(300) if n % 3]


def test_calls_cancelled_before_they_are_sent_leave_the_connection_as_it_is(
    redis_url: str, keywright_server: RedisServer
) -> None:
    async def work(database: AsyncDatabase) -> tuple[int, Any]:
        await database.run(Word("a").set("x"))
        link = database._home.ready
        assert link is not None
        unsent = asyncio.create_task(database.run(Word("a").get()))
        await asyncio.sleep(0)
        unsent.cancel()
        await asyncio.gather(unsent, return_exceptions=True)
        return len(link.waiting), await database.run(Word("a").get())

    assert _on(redis_url, work) == (0, "x")


@pytest.mark.parametrize("url", ["redis_url", "cluster_url"])
def test_what_is_in_flight_stays_within_its_bound(url: str, request: pytest.FixtureRequest) -> None:
    """At most one batch beyond the bound, and a batch is no larger than what one caller asked for."""

    async def work(database: AsyncDatabase) -> tuple[int, int]:
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
        return most, database._calls_in_flight + database._bytes_in_flight

    most, left = _on(request.getfixturevalue(url), work, most_calls_in_flight=5_000)
    assert most <= 5_000 + 6_000
    assert left == 0


def test_calls_that_wait_for_room_are_sent_when_the_ones_before_them_fail(
    redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)

    async def work(database: AsyncDatabase) -> list[Any]:
        proxy.cut_before_reply()
        calls = [database.run(Tally(f"t{n}").add(1)) for n in range(20)]
        return await asyncio.gather(*calls, return_exceptions=True)

    found = _on(proxy.url, work, most_calls_in_flight=1)
    assert all(answer == 1 or isinstance(answer, OutcomeUnknownError) for answer in found)


def test_a_caller_that_waits_for_an_item_does_not_hold_up_others(redis_url: str, raw: Raw) -> None:
    async def work(database: AsyncDatabase) -> tuple[Any, Any]:
        waiting = asyncio.create_task(database.run(Queue("a").wait(LONG)))
        await asyncio.to_thread(wait_until, lambda: _blocked(raw) == 1, "the pop waits")
        await database.run(Word("a").set("x"))
        found = await database.run(Word("a").get())
        await database.run(Queue("a").push("item"))
        return found, await waiting

    assert _on(redis_url, work) == ("x", "item")


def test_waiting_calls_in_one_gather_may_wait_longer_than_the_timeout(redis_url: str) -> None:
    async def work(database: AsyncDatabase) -> Any:
        short = timedelta(seconds=0.4)
        return await database.run(gather(Queue("a").wait(short), Queue("b").wait(short)))

    assert _on(redis_url, work, timeout_seconds=0.3) == (None, None)


def test_a_cancelled_wait_takes_no_item(redis_url: str, raw: Raw) -> None:
    async def work(database: AsyncDatabase) -> None:
        waiting = asyncio.create_task(database.run(Queue("a").wait(LONG)))
        await asyncio.to_thread(wait_until, lambda: _blocked(raw) == 1, "the pop waits")
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.to_thread(wait_until, lambda: _blocked(raw) == 0, "the server knows")
        await database.run(Queue("a").push("item"))

    _on(redis_url, work)
    assert raw("LRANGE", "queue:a", 0, -1) == [b"item"]


def test_waiting_calls_use_a_bounded_number_of_connections(
    redis_url: str, make_proxy: Callable[[str], Proxy], raw: Raw
) -> None:
    proxy = make_proxy(redis_url)

    async def work(database: AsyncDatabase) -> list[Any]:
        waits = [asyncio.create_task(database.run(Queue("a").wait(LONG))) for _ in range(20)]
        await asyncio.to_thread(wait_until, lambda: _blocked(raw) == 3, "three pops wait")
        for number in range(20):
            await database.run(Queue("a").push(str(number)))
        return await asyncio.gather(*waits)

    assert sorted(_on(proxy.url, work, most_connections=3), key=int) == [str(n) for n in range(20)]
    assert proxy.connections == 4  # and the one that everybody shares


def test_a_long_wait_does_not_lengthen_the_deadline_of_the_next(
    redis_url: str, keywright_server: RedisServer
) -> None:
    async def work(database: AsyncDatabase) -> None:
        await database.run(Queue("a").push("item"))
        await database.run(Queue("a").wait(LONG))
        keywright_server.pause()
        try:
            with pytest.raises(DeadlineError):
                await asyncio.wait_for(database.run(Queue("a").wait(timedelta(seconds=0.1))), 30)
        finally:
            keywright_server.resume()

    _on(redis_url, work, timeout_seconds=0.3)


@pytest.mark.parametrize("sort", ["read", "write once", "wait", "unsent"])
def test_closing_ends_calls_that_are_under_way(
    sort: str, redis_url: str, keywright_server: RedisServer
) -> None:
    calls: dict[str, Callable[[], Call[Any]]] = {
        "read": lambda: Word("a").get(),
        "write once": lambda: Tally("a").add(1),
        "wait": lambda: Queue("a").wait(LONG),
        "unsent": lambda: gather_list(Word(f"w{n}").get() for n in range(50)),
    }

    async def work(database: AsyncDatabase) -> list[Any]:
        keywright_server.pause()
        tasks = [asyncio.create_task(database.run(calls[sort]())) for _ in range(20)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await database.close()
        found = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)
        keywright_server.resume()
        return found

    bound = {"most_calls_in_flight": 10} if sort == "unsent" else {}
    found = _on(keywright_server.tcp_url, work, **bound)
    assert all(isinstance(answer, EngineError) for answer in found)
    if sort == "write once":
        assert {type(answer) for answer in found} == {OutcomeUnknownError}


def test_a_closed_database_says_so(redis_url: str) -> None:
    async def work(database: AsyncDatabase) -> None:
        await database.close()
        with pytest.raises(KeywrightError, match="closed"):
            await database.run(Word("a").get())

    _on(redis_url, work)


@pytest.mark.parametrize("url", ["redis_url", "cluster_url"])
def test_a_call_that_cannot_be_sent_does_not_fail_the_others_of_its_batch(
    url: str, request: pytest.FixtureRequest
) -> None:
    async def work(database: AsyncDatabase) -> list[Any]:
        calls: list[Call[Any]] = [Tally("a").add(1), Queue("a").range(cast("int", None)), Tally("a").add(1)]
        return await asyncio.gather(*map(database.run, calls), return_exceptions=True)

    first, refused, second = _on(request.getfixturevalue(url), work)
    assert (first, second) == (1, 2)
    assert isinstance(refused, UsageError)
    assert "LRANGE b'queue:a' cannot be sent" in str(refused)


def test_batches_that_lost_their_connection_wait_for_one_new_one(
    redis_url: str, keywright_server: RedisServer, make_proxy: Callable[[str], Proxy]
) -> None:
    """Each in its turn would wait for as many deadlines as there are others, where the server is silent."""
    proxy = make_proxy(redis_url)

    async def work(database: AsyncDatabase) -> list[Any]:
        keywright_server.pause()
        try:
            sent, tasks = proxy.commands, []
            for number in range(1, 9):
                tasks.append(asyncio.create_task(database.run(Word("a").get())))
                await asyncio.to_thread(wait_until, lambda: proxy.commands == sent + number, "it is sent")  # noqa: B023
            proxy.cut()
            return await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            keywright_server.resume()

    found = _on(proxy.url, work, timeout_seconds=1.0, retry=Retry(attempts=2))
    assert {type(answer) for answer in found} == {ConnectionLostError}
    assert proxy.connections == 2


def test_what_nobody_asked_for_is_not_taken_for_an_answer(
    redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)

    async def work(database: AsyncDatabase) -> int:
        (way,), link = proxy._links, database._home.ready
        assert link is not None
        way._client.sendall(b":7\r\n")
        await asyncio.to_thread(wait_until, lambda: not link.open or link.parser.has_data(), "it came")
        return await database.run(Tally("a").add(1))

    assert _on(proxy.url, work) == 1


def test_what_is_sent_to_a_node_for_the_first_time_while_closing_is_not_sent(
    cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    away = _tally_elsewhere(keywright_cluster)

    async def work(database: AsyncDatabase) -> Any:
        await database.run(Tally("a").add(1))
        task = asyncio.create_task(database.run(Tally(away).add(1)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # by now it is on its way to a node that no connection leads to
        await database.close()
        return await asyncio.gather(task, return_exceptions=True)

    (found,) = _on(cluster_url, work)
    assert isinstance(found, ConnectionLostError)
    assert keywright_cluster.master_of(_slot_of(away)).call("GET", f"tally:{away}") is None


def test_closing_tells_what_was_applied_from_what_was_never_sent(
    cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    home, away = keywright_cluster.master_of(_slot_of("a")), _tally_elsewhere(keywright_cluster)
    frozen = keywright_cluster.master_of(_slot_of(away))

    async def work(database: AsyncDatabase) -> list[Any]:
        frozen.pause()
        tasks = [asyncio.create_task(database.run(Tally(name).add(1))) for name in ("a", away)]
        await asyncio.to_thread(wait_until, lambda: home.call("GET", "tally:a") == b"1", "one is applied")
        await database.close()
        return await asyncio.gather(*tasks, return_exceptions=True)

    try:
        applied, unsent = _on(cluster_url, work)
    finally:
        frozen.resume()
    assert applied == 1 or isinstance(applied, OutcomeUnknownError)
    assert isinstance(unsent, ConnectionLostError)


def _tally_elsewhere(cluster: RedisCluster) -> str:
    """A tally that lives on another master than tally a."""
    home = cluster.master_of(_slot_of("a"))
    return next(f"t{n}" for n in range(99) if cluster.master_of(_slot_of(f"t{n}")) is not home)


def _slot_of(tally: str) -> int:
    return slot_of(b"tally:" + tally.encode())


def test_a_database_that_cannot_be_made_leaves_no_embedded_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    before = living_pids()

    async def work() -> None:
        await aconnect(None, cast("Binding", "no binding"))

    with pytest.raises(AttributeError):
        asyncio.run(work())
    assert living_pids() == before
