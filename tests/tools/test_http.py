"""HTTP serving: a server with bounds that leaves signals to its program, and the handling of signals."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from keywright.tools.http import (
    LOOPBACK,
    STOP_SIGNALS,
    HttpLimits,
    UvicornServer,
    listening,
    on_signals,
    url_of,
)

pytestmark = pytest.mark.anyio


class Held:
    """An application whose only page is answered when the test releases it."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.app = Starlette(routes=[Route("/", self._answer)])

    async def _answer(self, request: Request) -> Response:
        self.asked.set()
        await self.may_answer.wait()
        return PlainTextResponse("late")


async def test_a_request_under_way_is_answered_before_the_end() -> None:
    held, started = Held(), asyncio.Event()
    with listening(LOOPBACK, 0, remedy="") as bound:
        server = UvicornServer(held.app, on_started=started.set)
        serving = asyncio.create_task(server.serve([bound]))
        await started.wait()
        async with httpx.AsyncClient() as client:
            asking = asyncio.create_task(client.get(url_of(bound)))
            await held.asked.wait()
            server.stop()
            held.may_answer.set()
            answer = await asking
        await serving
    assert answer.text == "late"
    assert "server" not in answer.headers


async def test_stopped_at_once_it_answers_nothing_more() -> None:
    held = Held()
    with listening(LOOPBACK, 0, remedy="") as bound:
        server = UvicornServer(held.app, grace_seconds=3600)
        serving = asyncio.create_task(server.serve([bound]))
        async with httpx.AsyncClient() as client:
            asking = asyncio.create_task(client.get(url_of(bound)))
            await held.asked.wait()
            server.stop(at_once=True)
            async with asyncio.timeout(10):
                await serving
            held.may_answer.set()
            asking.cancel()


HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-a: "
HALF_A_BODY = b"POST /form HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf"


@asynccontextmanager
async def serving(app: Starlette, limits: HttpLimits) -> AsyncIterator[tuple[str, int]]:
    """Yield the address of a server with these limits."""
    started = asyncio.Event()
    with listening(LOOPBACK, 0, remedy="") as bound:
        host, port = bound.getsockname()[:2]
        server = UvicornServer(app, limits=limits, on_started=started.set)
        running = asyncio.create_task(server.serve([bound]))
        await started.wait()
        yield host, port
        server.stop(at_once=True)
        await running


async def _hello(request: Request) -> Response:
    return PlainTextResponse("hello")


async def _form(request: Request) -> Response:
    return PlainTextResponse(await request.body())


def pages() -> Starlette:
    return Starlette(routes=[Route("/", _hello), Route("/form", _form, methods=["POST"])])


@pytest.mark.parametrize("head", [b"", HALF_A_HEAD], ids=["nothing", "half a head"])
async def test_a_request_whose_head_does_not_arrive_in_time_is_closed(head: bytes) -> None:
    async with serving(pages(), HttpLimits(head_seconds=0.1)) as address, asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(head)
        assert await reader.read() == b""
        writer.close()


async def test_a_client_that_sends_a_byte_now_and_then_gets_no_more_time() -> None:
    async with serving(pages(), HttpLimits(head_seconds=0.3)) as address, asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(HALF_A_HEAD)
        closing = asyncio.create_task(reader.read())
        while not (await asyncio.wait([closing], timeout=0.01))[0]:
            writer.write(b"b")
        assert closing.exception() is not None or closing.result() == b""
        writer.close()


async def test_a_body_that_does_not_arrive_in_time_is_answered_with_408() -> None:
    async with serving(pages(), HttpLimits(body_seconds=0.1)) as address, asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(HALF_A_BODY)
        assert (await reader.read()).startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        writer.close()


@pytest.mark.parametrize("half", [HALF_A_HEAD, HALF_A_BODY], ids=["head", "body"])
async def test_half_sent_requests_make_room_for_others(half: bytes) -> None:
    limits = HttpLimits(connections=20, head_seconds=3600, body_seconds=3600)
    async with serving(pages(), limits) as address, asyncio.timeout(60):
        halves = [await asyncio.open_connection(*address) for _ in range(100)]
        for _, writer in halves:
            writer.write(half)
        async with httpx.AsyncClient(base_url="http://{}:{}".format(*address), timeout=30) as honest:
            for _ in range(3):
                assert (await honest.get("/")).text == "hello"
        oldest = [reader.read() for reader, _ in halves[:80]]
        await asyncio.gather(*oldest, return_exceptions=True)  # each ends: it was closed
        for _, writer in halves:
            writer.close()


async def test_a_whole_request_is_not_closed_to_make_room() -> None:
    held = Held()
    limits = HttpLimits(connections=3, head_seconds=3600)
    async with serving(held.app, limits) as address, asyncio.timeout(60), httpx.AsyncClient() as client:
        asking = asyncio.create_task(client.get("http://{}:{}/".format(*address), timeout=60))
        await held.asked.wait()
        halves = [await asyncio.open_connection(*address) for _ in range(10)]
        for _, writer in halves:
            writer.write(HALF_A_HEAD)
        await halves[0][0].read()
        held.may_answer.set()
        assert (await asking).text == "late"
        for _, writer in halves:
            writer.close()


async def test_a_request_too_many_is_refused_while_all_others_are_whole() -> None:
    held = Held()
    async with serving(held.app, HttpLimits(connections=1)) as address, asyncio.timeout(60):
        url = "http://{}:{}/".format(*address)
        async with httpx.AsyncClient() as first, httpx.AsyncClient() as second:
            asking = asyncio.create_task(first.get(url, timeout=60))
            await held.asked.wait()
            assert (await second.get(url)).status_code == 503
            held.may_answer.set()
            assert (await asking).text == "late"


async def test_a_connection_may_send_one_request_after_another() -> None:
    async with serving(pages(), HttpLimits(connections=1)) as address, httpx.AsyncClient() as client:
        url = "http://{}:{}".format(*address)
        assert (await client.get(url)).text == "hello"
        assert (await client.post(f"{url}/form", content=b"sent")).text == "sent"
        assert (await client.get(url)).text == "hello"


async def test_an_address_of_ipv6_is_a_url_with_brackets() -> None:
    with listening("::1", 0, remedy="") as bound:
        assert url_of(bound) == f"http://[::1]:{bound.getsockname()[1]}"


async def test_later_signals_are_handled_apart_from_the_first() -> None:
    received: asyncio.Queue[tuple[str, signal.Signals]] = asyncio.Queue()
    with on_signals(
        lambda number: received.put_nowait(("first", number)),
        lambda number: received.put_nowait(("again", number)),
        signals=(*STOP_SIGNALS, signal.SIGHUP),
    ):
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
            which = "first" if number is signal.SIGHUP else "again"
            assert await asyncio.wait_for(received.get(), 10) == (which, number)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


async def test_in_another_thread_signals_are_left_alone() -> None:
    async def inside() -> None:
        with on_signals(lambda _: None):
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

    await asyncio.to_thread(lambda: asyncio.run(inside()))
