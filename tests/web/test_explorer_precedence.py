"""Pages come first: walks of the explorer pause while a request is answered, and are never stopped by one."""

from __future__ import annotations

import asyncio

import pytest

from keywright.explorer.precedence import CountedRequests, Requests, YieldingPacemaker

pytestmark = pytest.mark.anyio
PATIENCE_SECONDS = 20


async def test_a_walk_pauses_while_a_request_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keywright.explorer.precedence.LONGEST_PAUSE_SECONDS", 1e9)
    requests = Requests()
    answering, paused = asyncio.Event(), asyncio.Event()

    async def application(*_: object) -> None:
        answering.set()
        await paused.wait()

    request = asyncio.create_task(CountedRequests(application, requests)({"type": "http"}, None, None))  # type: ignore[arg-type]  # the application reads nothing
    await answering.wait()
    walk = asyncio.create_task(YieldingPacemaker(requests).wait(1))
    await asyncio.wait({walk}, timeout=0.05)
    assert not walk.done()
    paused.set()
    await request
    await asyncio.wait_for(walk, PATIENCE_SECONDS)
    assert requests.open == 0


async def test_a_long_request_does_not_stop_a_walk() -> None:
    requests = Requests()
    requests.open = 1
    await asyncio.wait_for(YieldingPacemaker(requests).wait(1), PATIENCE_SECONDS)
    assert requests.open == 1
