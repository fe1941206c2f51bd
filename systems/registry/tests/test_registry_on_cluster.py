"""Every operation on one repository on a six-node cluster: one slot each, so no CROSSSLOT error."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from keywright import Call, Context, aconnect
from keywright.operations import Wire, slot_of
from keywright.testing import Run
from keywright_registry import blobs, counters
from keywright_registry.cache import RepositoryCache
from keywright_registry.counters import CountFlusher, Flushed, count, pending
from keywright_registry.leases import RenameLease, blocked
from keywright_registry.lsn import advance, position
from keywright_registry.rate_limit import RateLimiter
from keywright_registry.registry import Registry
from keywright_registry.repository import Counts
from keywright_registry.schema import BatchedCounts, BlobDescriptor, CountBatch, keys_of
from keywright_registry.sizes import known_size, remember_size, remember_timeout

from .registry_doubles import CountingMetadata
from .registry_vectors import repository_at

pytestmark = pytest.mark.anyio

PATH = "acme"
HOLD = timedelta(seconds=30)
cache = RepositoryCache(absence=True)
DIGEST = "sha256:" + "b" * 64


def operations() -> list[Call[Any]]:
    """Each operation on one repository that reaches more than one key."""
    repository = repository_at(PATH, size=3)
    key = CountBatch.of(PATH)
    return [
        cache.set(repository),
        cache.look(PATH),
        cache.invalidate_size(PATH),
        cache.begin_fill(PATH, "token", HOLD),
        cache.fill(PATH, repository, "token"),
        cache.begin_fill(PATH, "token", HOLD),
        cache.fill(PATH, None, "token"),
        cache.appeared(PATH),
        cache.delete(PATH),
        count(PATH, pulls=1, pushes=2),
        pending(PATH),
        counters.take(key, "batch"),
        counters.settle(key, BatchedCounts("batch", PATH, 1, 2)),
        remember_size(PATH, 1),
        remember_timeout(PATH),
        known_size(PATH),
        advance(PATH, 5),
        RenameLease(PATH).acquire("old"),
        RenameLease(PATH).remaining("old"),
        RateLimiter(1, HOLD, 1, "push").take("192.0.2.7"),
    ]


def test_every_operation_of_a_repository_works_on_the_cluster(cluster_run: Run) -> None:
    answers = [cluster_run(call) for call in operations()]
    assert answers[1] == repository_at(PATH, size=3)
    assert answers[2] is True
    assert answers[4] is answers[6] is True
    assert answers[10] == Counts(PATH, 1, 2)
    assert cluster_run(position(PATH)) == 5


def test_no_operation_sends_a_command_or_a_transaction_for_two_slots() -> None:
    """Read from the commands themselves, without a server."""
    sharded = Context(sharded=True)
    slots = {slot_of(sharded.name(key)) for key in keys_of(PATH)}
    assert len(slots) == 1
    for call in operations():
        for wire in next(call.rounds(sharded)):
            assert len({slot_of(name) for name in _names(wire)}) == 1, call


def _names(wire: Wire) -> set[bytes]:
    """Return the arguments of a wire that begin like a key of the registry."""
    flat = [part for arguments in [wire.arguments] for part in _flattened(arguments)]
    return {part for part in flat if isinstance(part, bytes) and part.startswith(b"registry:")}


def _flattened(arguments: tuple[Any, ...]) -> list[Any]:
    return [inner for part in arguments for inner in (part if isinstance(part, tuple) else (part,))]


async def test_many_repositories_are_read_renamed_and_flushed_across_slots(cluster_url: str) -> None:
    paths = [f"acme/{number}" for number in range(100)]
    async with aconnect(cluster_url) as redis:
        metadata = CountingMetadata(map(repository_at, paths))
        registry = Registry(redis, metadata, deadline_seconds=60)
        assert await registry.find_many(paths) == metadata.rows
        assert await registry.find_many(paths) == metadata.rows
        assert metadata.queries == 1
        moved = [(path, repository_at(path.replace("acme", "other"))) for path in paths]
        await redis.run(registry.cache.rename(moved))
        assert await redis.run(registry.cache.get_many(paths)) == {}
        assert len(await redis.run(registry.cache.get_many(new.path for _, new in moved))) == 100
        await asyncio.gather(*(registry.count(path, pulls=1) for path in paths))
        assert await CountFlusher(redis, metadata).flush() == Flushed(100, 0, 100, 0)
        assert await redis.run(blocked("acme/1/deep/path")) is False
        await redis.run(blobs.remember(paths[0], BlobDescriptor(DIGEST, 1, "x")))
        await redis.run(blobs.forget(DIGEST, *paths))
        await registry.close()


async def test_concurrent_misses_on_the_cluster_run_one_query(cluster_url: str) -> None:
    async with aconnect(cluster_url) as redis:
        metadata = CountingMetadata([repository_at(PATH)])
        registry = Registry(redis, metadata, deadline_seconds=60)
        assert await asyncio.gather(*(registry.find(PATH) for _ in range(500))) == [repository_at(PATH)] * 500
        assert metadata.queries == 1
        await registry.close()
