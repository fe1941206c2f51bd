"""The same batches with coredis and Valkey GLIDE, for the kinds whose replies they shape differently.

A client that is not installed is left out, and the run says so. All use TCP: GLIDE has no unix sockets.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from benchmarks.kinds import hash_of, meeting_of
from benchmarks.workload import decode_meeting, encode_meeting, meetings
from benchmarks.works import Fill, Read

__all__ = [
    "COREDIS",
    "COREDIS_FORMS",
    "GLIDE",
    "GLIDE_FORMS",
    "GLIDE_SYNC",
    "Form",
    "Held",
    "coredis_batch",
    "coredis_client",
    "glide_batch",
    "glide_client",
    "glide_sync_batch",
    "glide_sync_client",
    "missing",
]

COREDIS, GLIDE, GLIDE_SYNC = "coredis", "valkey-glide", "valkey-glide-sync"
_MODULES = {
    COREDIS: "coredis",
    GLIDE: "glide",
    GLIDE_SYNC: "glide_sync",
    "redis-om": "redis_om",
    "walrus": "walrus",
}
_VALUES = meetings(1_000)


class Form(NamedTuple):
    """How a client adds a command to its pipeline, and decodes the reply."""

    fill: Fill
    read: Read | None = None


def missing() -> tuple[str, ...]:
    return tuple(name for name, module in _MODULES.items() if find_spec(module) is None)


def _texts(fields: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in fields.items()}


def _decoded(members: Any) -> set[str]:
    return {each.decode() for each in members}


def _glide_range(pipe: Any, each: str, number: int) -> None:
    from glide_shared.commands.sorted_set import RangeByIndex

    pipe.zrange_withscores(f"bench:sorted:{each}", RangeByIndex(0, -1))


COREDIS_FORMS: dict[str, Form] = {
    "value: set (SET)": Form(lambda p, i, n: p.set(f"bench:value:{i}", encode_meeting(_VALUES[n % 1000]))),
    "value: get (GET)": Form(lambda p, i, n: p.get(f"bench:value:{i}"), decode_meeting),
    "record: write (HSET)": Form(lambda p, i, n: p.hset(f"bench:record:{i}", hash_of(_VALUES[n % 1000]))),
    "record: get (HGETALL)": Form(lambda p, i, n: p.hgetall(f"bench:record:{i}"), meeting_of),
    "map: put (HSET)": Form(lambda p, i, n: p.hset(f"bench:map:{i}", {"visits": n})),
    "set: add (SADD)": Form(lambda p, i, n: p.sadd(f"bench:set:{i}", ["member a"])),
    "set: members (SMEMBERS)": Form(lambda p, i, n: p.smembers(f"bench:set:{i}"), _decoded),
    "sorted set: add (ZADD)": Form(
        lambda p, i, n: p.zadd(f"bench:sorted:{i}", {"member a": float(n)}, change=True)
    ),
    "sorted set: range (ZRANGE)": Form(
        lambda p, i, n: p.zrange(f"bench:sorted:{i}", 0, -1, withscores=True),
        lambda reply: [(each.member.decode(), each.score) for each in reply],
    ),
}
GLIDE_FORMS: dict[str, Form] = COREDIS_FORMS | {
    "record: write (HSET)": Form(
        lambda p, i, n: p.hset(f"bench:record:{i}", _texts(hash_of(_VALUES[n % 1000])))
    ),
    "map: put (HSET)": Form(lambda p, i, n: p.hset(f"bench:map:{i}", {"visits": str(n)})),
    "sorted set: add (ZADD)": Form(
        lambda p, i, n: p.zadd(f"bench:sorted:{i}", {"member a": float(n)}, changed=True)
    ),
    "sorted set: range (ZRANGE)": Form(
        _glide_range, lambda reply: [(member.decode(), score) for member, score in reply.items()]
    ),
}


class Held:
    """A client that one task opens and closes, as coredis demands, and that others use meanwhile."""

    def __init__(self, connected: AbstractAsyncContextManager[Any]) -> None:
        self._connected = connected
        self._done = asyncio.Event()

    async def open(self) -> Any:
        opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(opened))
        return await opened

    async def close(self) -> None:
        self._done.set()
        await self._task

    async def _hold(self, opened: asyncio.Future[Any]) -> None:
        async with self._connected as client:
            opened.set_result(client)
            await self._done.wait()


@asynccontextmanager
async def coredis_client(url: str) -> AsyncIterator[Any]:
    import coredis

    async with coredis.Redis.from_url(url) as client:
        yield client


async def coredis_batch(client: Any, fill: Callable[[Any], object]) -> Sequence[Any]:
    async with client.pipeline(transaction=False) as pipe:
        fill(pipe)
    replies: Sequence[Any] = pipe.results
    return replies


@asynccontextmanager
async def glide_client(url: str) -> AsyncIterator[Any]:
    import glide

    address = urlsplit(url)
    node = glide.NodeAddress(address.hostname or "localhost", address.port or 6379)
    client = await glide.GlideClient.create(
        glide.GlideClientConfiguration([node], request_timeout=60_000, inflight_requests_limit=20_000)
    )
    try:
        yield client
    finally:
        await client.close()


async def glide_batch(client: Any, fill: Callable[[Any], object]) -> Sequence[Any]:
    from glide import Batch

    batch = Batch(is_atomic=False)
    fill(batch)
    replies: Sequence[Any] = await client.exec(batch, raise_on_error=True)
    return replies


@contextmanager
def glide_sync_client(url: str) -> Iterator[Any]:
    import glide_sync

    address = urlsplit(url)
    node = glide_sync.NodeAddress(address.hostname or "localhost", address.port or 6379)
    client = glide_sync.GlideClient.create(
        glide_sync.GlideClientConfiguration([node], request_timeout=60_000)
    )
    try:
        yield client
    finally:
        client.close()


def glide_sync_batch(client: Any, fill: Callable[[Any], object]) -> Sequence[Any]:
    from glide_sync import Batch

    batch = Batch(is_atomic=False)
    fill(batch)
    replies: Sequence[Any] = client.exec(batch, raise_on_error=True)
    return replies
