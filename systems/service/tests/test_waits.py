"""Waits that end early leave nothing behind: no task that runs on, no error that is never seen."""

from __future__ import annotations

import asyncio

import pytest

from keywright_service.waits import ended, first_of, pause, unless

pytestmark = pytest.mark.anyio


async def forever() -> None:
    await asyncio.Event().wait()


async def test_a_pause_ends_with_its_time_or_with_the_event() -> None:
    stopping = asyncio.Event()
    await pause(stopping, 0.001)
    assert not stopping.is_set()
    asyncio.get_running_loop().call_soon(stopping.set)
    async with asyncio.timeout(10):
        await pause(stopping, 3600)


async def test_the_first_wait_cancels_the_others() -> None:
    endless = asyncio.create_task(forever())
    await first_of(endless, asyncio.sleep(0))
    with pytest.raises(asyncio.CancelledError):
        await endless


async def test_a_wait_returns_its_result_unless_the_event_comes_first() -> None:
    async def result() -> int:
        return 7

    stopping = asyncio.Event()
    assert await unless(stopping, result()) == 7
    endless = asyncio.create_task(asyncio.Event().wait())
    stopping.set()
    assert await unless(stopping, endless) is None
    assert endless.cancelled()


async def test_what_a_wait_raises_is_raised() -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await unless(asyncio.Event(), fail())


async def test_a_task_that_does_not_stop_in_time_is_cancelled() -> None:
    quick, endless = asyncio.create_task(asyncio.sleep(0)), asyncio.create_task(forever())
    await ended(quick, within=10)
    await ended(endless, within=0)
    assert not quick.cancelled()
    assert endless.cancelled()
