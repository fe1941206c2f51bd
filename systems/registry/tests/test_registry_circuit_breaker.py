"""The circuit breaker: a deadline is not a cancellation, and a failure opens the circuit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from keywright import Retry, Settings, aconnect
from keywright.errors import ConnectionLostError, DeadlineError
from keywright.testing import Proxy
from keywright_registry.cache import RepositoryCache
from keywright_registry.circuit_breaker import CircuitBreaker

pytestmark = pytest.mark.anyio

LOOK = RepositoryCache().get("acme")
ONCE = Settings(connect_seconds=1, retry=Retry(attempts=1))


async def test_an_operation_without_an_answer_ends_with_its_deadline(
    redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)
    async with aconnect(proxy.url) as redis:
        breaker = CircuitBreaker(redis, deadline_seconds=0.05)
        assert await breaker.run(LOOK) is None
        proxy.delay(30)
        outcomes = await asyncio.gather(*(breaker.run(LOOK) for _ in range(20)), return_exceptions=True)
        assert [type(each) for each in outcomes] == [DeadlineError] * 20
        with pytest.raises(DeadlineError, match=r"within 0\.05 s"):
            await breaker.run(LOOK)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0  # the cancellation that ended it was taken back
        proxy.heal()


async def test_a_cancellation_by_the_caller_stays_one(
    redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)
    async with aconnect(proxy.url) as redis:
        breaker = CircuitBreaker(redis)
        await breaker.run(LOOK)
        proxy.delay(30)
        running = asyncio.create_task(breaker.run(LOOK))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await breaker.run(LOOK)
        assert not breaker.is_open()  # nothing was wrong with Redis
        proxy.heal()


async def test_a_cancellation_at_the_moment_of_the_deadline_stays_one(
    redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)
    async with aconnect(proxy.url) as redis:
        await redis.run(LOOK)
        proxy.delay(60)
        breaker = CircuitBreaker(redis, deadline_seconds=0)
        running = asyncio.create_task(breaker.run(LOOK))
        await asyncio.sleep(0)
        # A timer, as that of the deadline: both run before the task sees the first of the two.
        asyncio.get_running_loop().call_later(0, running.cancel)
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not breaker.is_open()
        proxy.heal()


async def test_an_open_circuit_lets_one_trial_call_through_in_each_interval(
    redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)
    async with aconnect(proxy.url, settings=ONCE) as redis:
        patient, hasty = CircuitBreaker(redis, reset_seconds=3600), CircuitBreaker(redis, reset_seconds=0)
        proxy.refuse()
        proxy.cut()
        for breaker in (patient, hasty):
            assert not breaker.is_open()
            with pytest.raises(ConnectionLostError):
                await breaker.run(LOOK)
        assert [patient.is_open() for _ in range(3)] == [True, True, True]
        assert [hasty.is_open() for _ in range(3)] == [False, True, True]  # the first one is to try
        proxy.heal()
        await hasty.run(LOOK)
        assert [hasty.is_open() for _ in range(3)] == [False, False, False]
