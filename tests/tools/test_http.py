"""HTTP serving: a server that leaves signals to its program, and the handling of signals."""

from __future__ import annotations

import asyncio
import os
import signal

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from keywright.tools.http import LOOPBACK, STOP_SIGNALS, UvicornServer, listening, on_signals, url_of

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
