"""Surveys of servers that refuse some of what a survey asks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest

from keywright import aconnect
from keywright.engine.survey import Survey, survey
from keywright.errors import ServerRefusedError
from keywright.testing import RedisServer, wait_until

T = TypeVar("T")


@pytest.fixture(scope="module")
def primary() -> Iterator[RedisServer]:
    with RedisServer(tcp=True) as server:
        yield server


@pytest.fixture(scope="module")
def replica(primary: RedisServer) -> Iterator[RedisServer]:
    with RedisServer(tcp=True, replica_of=primary) as server:
        wait_until(lambda: "state=online" in primary.text("INFO", "replication"), "the replica follows")
        yield server


async def _labels(survey: Survey) -> list[str]:
    return [post.label for post in survey.posts]


async def _sizes(survey: Survey) -> list[int]:
    return [await survey.size(post) for post in survey.posts]


def _surveyed(server: RedisServer, work: Callable[[Survey], Awaitable[T]]) -> T:
    async def opened() -> T:
        async with aconnect(server.tcp_url) as database, survey(database) as found:
            return await work(found)

    return asyncio.run(opened())


def test_a_replica_is_read_in_place_of_its_primary(primary: RedisServer, replica: RedisServer) -> None:
    assert _surveyed(primary, _labels) == [f"127.0.0.1:{replica.port} (replica)"]


def test_a_replica_that_does_not_tell_its_state_is_left_alone(
    primary: RedisServer, replica: RedisServer
) -> None:
    replica.call("ACL", "SETUSER", "default", "-info")
    try:
        assert _surveyed(primary, _labels) == [f"127.0.0.1:{primary.port}"]
    finally:
        replica.call("ACL", "SETUSER", "default", "+info")


def test_a_size_that_is_refused_is_an_error_of_ours(primary: RedisServer, replica: RedisServer) -> None:
    replica.call("ACL", "SETUSER", "default", "-dbsize")
    try:
        with pytest.raises(ServerRefusedError, match=r"DBSIZE.*NOPERM.*Grant"):
            _surveyed(primary, _sizes)
    finally:
        replica.call("ACL", "SETUSER", "default", "+dbsize")
