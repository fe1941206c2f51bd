"""Pulls and pushes: counted in Redis, moved to the database without losing or doubling any.

1. one script moves both counters of a repository into a batch with an id of its own;
2. the database adds the batch, unless it knows the id;
3. the batch is dropped, if it is still that one.

Whoever dies leaves counters (before 1) or a batch (before 3), and the next one to come goes on from there:
with a batch under way step 1 returns that instead of a new one, and step 2 adds it once. All keys of a
repository live in one slot, so this holds on a cluster. Counters never expire.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias

import msgspec

from keywright import AsyncDatabase, Call, Int64, atomic, gather, gather_list, new_token
from keywright.errors import ConnectionLostError, DeadlineError, OutcomeUnknownError
from keywright.operations import Effect, Ready, Reply, Script, nothing
from keywright_registry.batches import batched
from keywright_registry.circuit_breaker import Access
from keywright_registry.errors import MetadataUnreachableError
from keywright_registry.metadata.contract import Metadata
from keywright_registry.repository import Counts
from keywright_registry.schema import BatchedCounts, CountBatch, CountedPath, PullCount, PushCount

__all__ = ["CountFlusher", "Flushed", "carry", "count", "pending"]

# Sent again it returns the batch that the first one made: it is there until someone settles it.
TAKE_COUNTS = Script("keywright_registry", "take_counts", Effect.REPEATABLE)
SETTLE_BATCH = Script("keywright_registry", "settle_batch", Effect.REPEATABLE)

AT_ONCE = 16
UNREACHABLE = (ConnectionLostError, DeadlineError, OutcomeUnknownError, MetadataUnreachableError)

RepositoryKey: TypeAlias = CountedPath | CountBatch
"""A key that names the repository of counters: its variables are those of all keys of the repository."""

_integer = Int64()


def count(path: str, *, pulls: int = 0, pushes: int = 0) -> Call[None]:
    """Count pulls and pushes of a repository, in one transaction."""
    if not pulls and not pushes:
        return Ready(None)
    added: list[Call[Any]] = []
    if pulls:
        added.append(PullCount.of(path).add(pulls))
    if pushes:
        added.append(PushCount.of(path).add(pushes))
    return atomic(CountedPath.of(path).set(path), *added).map(nothing)


def pending(path: str) -> Call[Counts]:
    """What is counted and not in a batch yet."""
    return gather(PullCount.of(path).get(), PushCount.of(path).get()).map(lambda found: Counts(path, *found))


def take(key: RepositoryKey, batch: str, path: str = "") -> Call[BatchedCounts | None]:
    """Step 1: a batch of what was counted for the repository of a key, or the one that is under way.

    `path` names a repository whose counters were written by a program that does not store it.
    """
    keys = [kind(*_variables(key)) for kind in (PullCount, PushCount, CountedPath, CountBatch)]
    return TAKE_COUNTS.call(keys, (batch, path), _batch)


def settle(key: RepositoryKey, batch: BatchedCounts) -> Call[bool]:
    """Step 3: drop a batch of the repository of a key, which the database has now."""
    return SETTLE_BATCH.call([CountBatch(*_variables(key))], (batch.id,), bool)


class Flushed(msgspec.Struct, frozen=True):
    """What one flush moved: batches, how many of them the database knew, and the counts of the others."""

    batches: int = 0
    known: int = 0
    pulls: int = 0
    pushes: int = 0

    def __add__(self, other: Flushed) -> Flushed:
        return Flushed(
            self.batches + other.batches,
            self.known + other.known,
            self.pulls + other.pulls,
            self.pushes + other.pushes,
        )


class CountFlusher:
    """Moves counts to the database. Any number may run at once: they only repeat each other's work."""

    def __init__(self, redis: AsyncDatabase, metadata: Metadata, *, at_once: int = AT_ONCE) -> None:
        self._redis = redis
        self._metadata = metadata
        self._room = asyncio.Semaphore(at_once)

    async def flush(self, paths: Iterable[str] | None = None) -> Flushed:
        """Move the counts of these repositories, or of all that are found by SCAN.

        All are tried, until a server cannot be reached; the first error is raised then. What was not moved
        stays for the next flush.
        """
        tasks: list[asyncio.Task[Flushed]] = []
        try:
            await self._begin_all(self._counted() if paths is None else _named(paths), tasks)
        finally:
            await asyncio.gather(*tasks, return_exceptions=True)
        return sum((task.result() for task in tasks), Flushed())

    async def _begin_all(
        self, found: AsyncGenerator[tuple[RepositoryKey, str], None], tasks: list[asyncio.Task[Flushed]]
    ) -> None:
        seen: set[tuple[str, str]] = set()
        lost = asyncio.Event()
        async with aclosing(found) as keys:
            async for key, path in keys:
                if _variables(key) in seen:
                    continue
                seen.add(_variables(key))
                await self._room.acquire()
                tasks.append(asyncio.create_task(self._moving(key, path, lost)))
                if lost.is_set():
                    return

    async def _counted(self) -> AsyncGenerator[tuple[RepositoryKey, str], None]:
        kinds: tuple[type[RepositoryKey], ...] = (CountBatch, CountedPath)
        for kind in kinds:
            async for key in self._redis.scan(kind):
                yield key, ""

    async def _moving(self, key: RepositoryKey, path: str, lost: asyncio.Event) -> Flushed:
        try:
            return await self._move(key, path)
        except UNREACHABLE:
            lost.set()
            raise
        finally:
            self._room.release()

    async def _move(self, key: RepositoryKey, path: str) -> Flushed:
        batch = await self._redis.run(take(key, new_token(), path))
        if batch is None:
            return Flushed()
        new = await self._metadata.add_counts(batch.id, [Counts(batch.path, batch.pulls, batch.pushes)])
        await self._redis.run(settle(key, batch))
        return Flushed(1, 0, batch.pulls, batch.pushes) if new else Flushed(1, 1)


async def carry(redis: Access, metadata: Metadata, moved: Mapping[str, str]) -> None:
    """Move what was counted under old paths to the new ones: batches under way, and then what came since.

    A batch that is taken here names the new path, so whoever finishes it adds it there.
    """
    for some in batched(moved.items()):
        if carried := await _carry_once(redis, metadata, some):
            await _carry_once(redis, metadata, carried)


async def _carry_once(
    redis: Access, metadata: Metadata, moved: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Move a batch of each; those that had one."""
    taken = await redis.run(gather_list([take(CountBatch.of(old), new_token(), new) for old, new in moved]))
    batches = {move: batch for move, batch in zip(moved, taken, strict=True) if batch}
    for (_, new), batch in batches.items():
        await metadata.add_counts(batch.id, [Counts(new, batch.pulls, batch.pushes)])
    await redis.run(gather_list([settle(CountBatch.of(old), batch) for (old, _), batch in batches.items()]))
    return list(batches)


async def _named(paths: Iterable[str]) -> AsyncGenerator[tuple[RepositoryKey, str], None]:
    for path in paths:
        yield CountBatch.of(path), path


def _variables(key: RepositoryKey) -> tuple[str, str]:
    return key.namespace, key.path_hash


def _batch(reply: Reply) -> BatchedCounts | None:
    if reply is None:
        return None
    identity, path, pulls, pushes = reply
    return BatchedCounts(identity.decode(), path.decode(), _integer.decode(pulls), _integer.decode(pushes))
