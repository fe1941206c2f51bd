"""The brokers of the conformance suite, and a time limit for coroutine tests."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Generator

import pytest

from .broker_bench import Bench

TEST_SECONDS = 120.0


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Fail a coroutine test that hangs, as one that waits for a lost message does."""
    test = pyfuncitem.obj
    if inspect.iscoroutinefunction(test):

        @functools.wraps(test)
        async def limited(**arguments: object) -> None:
            async with asyncio.timeout(TEST_SECONDS):
                await test(**arguments)

        pyfuncitem.obj = limited
    return (yield)


@pytest.fixture(
    params=[
        "memory",
        "redis",
        pytest.param("cluster", marks=pytest.mark.cluster),
        "rabbitmq",
        "rabbitmq-quorum",
    ]
)
def bench(request: pytest.FixtureRequest) -> Bench:
    if request.param == "memory":
        return Bench("memory", f"memory://{request.node.name}".translate({ord("["): "-", ord("]"): None}))
    if request.param == "rabbitmq-quorum":
        return Bench("rabbitmq", request.getfixturevalue("amqp_url"), {"quorum": True})
    fixture = {"redis": "redis_url", "cluster": "cluster_url", "rabbitmq": "amqp_url"}[request.param]
    return Bench(request.param, request.getfixturevalue(fixture))
