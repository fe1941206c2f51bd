"""The registry's cache: one cached lookup, a thousand at once, a stampede, and the query that a hit saves.

The peers are a bare redis-py GET of the same bytes, without decoding or checks; redis-py's pipeline with
msgpack, which returns a dict; and the metadata database itself, PostgreSQL if it can be started.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgpack
import msgspec
import redis
import redis.asyncio

from benchmarks.measuring import FULL, Contest, Effort, Result, blocking, in_loop
from benchmarks.placement import Placement, placed
from benchmarks.workload import opened
from keywright import AsyncDatabase, Database, connect
from keywright.errors import EngineError
from keywright.testing import RedisServer
from keywright_registry import go_encoding as encoding
from keywright_registry.cache import RepositoryCache
from keywright_registry.metadata import Metadata, open_metadata
from keywright_registry.registry import Registry
from keywright_registry.repository import Repository
from keywright_registry.schema import CachedRepository
from keywright_registry.testing.postgres import PostgresServer

BULK = 1000
WAITERS = 500
LOOKUPS = 200
LOOKUP_ROUNDS = 41
AT_MOST = 1.2
AT_LEAST = 5.0
PATH = "gitlab-org/gitlab/container-0"

decode_plainly = msgspec.msgpack.Decoder().decode


def measure(server: RedisServer, effort: Effort = FULL) -> Iterator[Result]:
    """Yield all comparisons; those with the database, which must be started, not in a quick run."""
    for placement in Placement:
        with placed(placement, server):
            yield _cached_lookup(server.url, placement, effort)
            yield _cached_find(server.url, placement, effort)
    with connect(server.url) as db, redis.Redis.from_url(server.url) as client:
        yield from _bulk(db, client, effort)
    if effort.quick:
        return
    with _database() as (kind, url):
        yield from _against_the_database(server.url, kind, url)


def _cached_lookup(url: str, placement: Placement, effort: Effort) -> Result:
    cache = RepositoryCache()
    with connect(url) as db, redis.Redis.from_url(url) as client:
        db.run(cache.set(repositories(1)[0]))
        name = _name(PATH)
        assert db.run(cache.get(PATH)) == repositories(1)[0]
        return Contest(
            "registry",
            f"sync cached lookup, {placement.value}",
            blocking(lambda: db.run(cache.get(PATH)), LOOKUPS),
            "redis-py sync, bare GET",
            blocking(lambda: client.get(name), LOOKUPS),
            effort.rounds(LOOKUP_ROUNDS),
        ).latency(at_most=AT_MOST)


def _cached_find(url: str, placement: Placement, effort: Effort) -> Result:
    with asyncio.Runner() as runner:
        db = runner.run(opened(url))
        client = redis.asyncio.Redis.from_url(url)
        registry = Registry(db, Unasked())
        runner.run(db.run(registry.cache.set(repositories(1)[0])))
        name = _name(PATH)
        assert runner.run(registry.find(PATH)) == repositories(1)[0]
        try:
            return Contest(
                "registry",
                f"asyncio cached find, {placement.value}",
                in_loop(runner, lambda: registry.find(PATH), LOOKUPS),
                "redis-py asyncio, bare GET",
                in_loop(runner, lambda: client.get(name), LOOKUPS),
                effort.rounds(LOOKUP_ROUNDS),
            ).latency(at_most=AT_MOST)
        finally:
            runner.run(db.close())
            runner.run(client.aclose())


def _bulk(db: Database, client: Any, effort: Effort) -> Iterator[Result]:
    cache, wanted = RepositoryCache(), repositories(BULK)
    paths = [repository.path for repository in wanted]
    for repository in wanted:
        db.run(cache.set(repository))

    def ours() -> dict[str, Repository]:
        return db.run(cache.get_many(paths))

    def pipelined() -> list[Any]:
        with client.pipeline(transaction=False) as pipe:
            for path in paths:
                pipe.get(_name(path))
            replies: list[Any] = pipe.execute()
            return replies

    def with_msgpack() -> list[Any]:
        return [msgpack.unpackb(data, timestamp=3) for data in pipelined()]

    def with_msgspec() -> list[Any]:
        return [decode_plainly(data) for data in pipelined()]

    def ours_first_seen() -> dict[str, Repository]:
        encoding.remembered.clear()
        return ours()

    stored = pipelined()
    (codec,) = CachedRepository.declaration.codecs

    def decoded() -> list[Any]:
        encoding.remembered.clear()
        return codec.decode_many(stored)

    assert list(ours().values()) == decoded() == wanted
    assert [found["ID"] for found in with_msgpack()] == [repository.id for repository in wanted]
    assert with_msgspec() == with_msgpack()
    for read, seen, theirs, peer, target in (
        (ours, "seen before", with_msgpack, "redis-py pipeline, msgpack", AT_LEAST),
        (ours_first_seen, "first seen", with_msgpack, "redis-py pipeline, msgpack", AT_LEAST),
        (ours_first_seen, "first seen", with_msgspec, "redis-py pipeline, msgspec", None),
        (ours_first_seen, "first seen", decoded, "the codec alone", None),
    ):
        contest = Contest(
            "registry",
            f"sync {BULK:,} lookups, {seen}",
            blocking(read, 10),
            peer,
            blocking(theirs, 10),
            effort.rounds(),
        )
        yield contest.throughput(BULK, at_least=target)


def _against_the_database(redis_url: str, kind: str, url: str) -> Iterator[Result]:
    with asyncio.Runner() as runner:
        db, metadata = runner.run(opened(redis_url)), runner.run(_filled(url))
        try:
            yield _stampede(runner, db, metadata, kind)
            yield _hit(runner, db, metadata, kind)
        finally:
            runner.run(metadata.close())
            runner.run(db.close())


def _stampede(runner: asyncio.Runner, db: AsyncDatabase, metadata: Metadata, kind: str) -> Result:
    counting = Counting(metadata)
    registry = Registry(db, counting)

    async def ours() -> None:
        await db.run(registry.cache.delete(PATH))
        counting.queries = 0
        await asyncio.gather(*(registry.find(PATH) for _ in range(WAITERS)))
        assert counting.queries == 1

    async def theirs() -> None:
        await asyncio.gather(*(metadata.find(PATH) for _ in range(WAITERS)))

    return Contest(
        "registry",
        f"{WAITERS} concurrent misses of one path, one query",
        in_loop(runner, ours, 3),
        f"{kind}, each asks",
        in_loop(runner, theirs, 3),
    ).throughput(WAITERS)


def _hit(runner: asyncio.Runner, db: AsyncDatabase, metadata: Metadata, kind: str) -> Result:
    registry = Registry(db, metadata)
    assert runner.run(registry.find(PATH)) == runner.run(metadata.find(PATH))
    return Contest(
        "registry",
        "a hit, against the query that it saves",
        in_loop(runner, lambda: registry.find(PATH), LOOKUPS),
        kind,
        in_loop(runner, lambda: metadata.find(PATH), LOOKUPS),
    ).latency(at_most=1.0)


class Counting:
    """A metadata database that counts its queries."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self.queries = 0

    async def find(self, path: str) -> Repository | None:
        self.queries += 1
        return await self._metadata.find(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metadata, name)


class Unasked(Counting):
    """A metadata database that fails on every query: every lookup must be a hit."""

    def __init__(self) -> None:
        self.queries = 0

    async def find(self, path: str) -> Repository | None:
        raise AssertionError(f"{path} was not cached")


async def _filled(url: str) -> Metadata:
    metadata = await open_metadata(url)
    await metadata.migrate()
    async with metadata.transaction() as transaction:
        for repository in repositories(BULK):
            await transaction.create_or_find(repository.path)
    return metadata


@contextmanager
def _database() -> Iterator[tuple[str, str]]:
    with ExitStack() as stack:
        try:
            server = stack.enter_context(PostgresServer())
        except EngineError:
            folder = stack.enter_context(TemporaryDirectory())
            yield "SQLite", f"sqlite:///{Path(folder)}/registry.db"
        else:
            yield "PostgreSQL", server.url


def repositories(count: int) -> Sequence[Repository]:
    """Return repositories of about 250 bytes each."""
    first = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
    return [
        Repository(
            id=1_000_000 + number,
            namespace_id=1,
            name=f"container-{number}",
            path=f"gitlab-org/gitlab/container-{number}",
            parent_id=7,
            created_at=first + timedelta(minutes=number),
            updated_at=first + timedelta(days=1, minutes=number),
            size=number * 1_048_576,
        )
        for number in range(count)
    ]


def _name(path: str) -> str:
    """Return the key of a repository, as a user of redis-py builds it."""
    digest = hashlib.sha256(path.encode()).hexdigest()
    return f"registry:db:{{repository:{path.partition('/')[0]}:{digest}}}"
