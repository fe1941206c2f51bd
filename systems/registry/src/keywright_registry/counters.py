"""Pulls and pushes: counted in Redis, moved to the database without losing or doubling any.

1. One script moves both counters of a repository into a batch with an id of its own.
2. The database adds the batch, unless it knows the id.
3. The batch is deleted, if it is still the same.

A process that dies leaves counters (before 1) or a batch (before 3), and the next flush continues there: with
a batch under way step 1 returns that one instead of a new one, and step 2 adds it once. All keys of a
repository live in one slot, so this holds on a cluster. Counters have no expiry.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias

import msgspec

from keywright import AsyncDatabase, Call, Int64, atomic, gather, gather_list, new_token
from keywright.errors import ConnectionLostError, DeadlineError, OutcomeUnknownError
from keywright.operations import Effect, Ready, Reply, Script, nothing
from keywright_registry.batches import batched
from keywright_registry.circuit_breaker import CircuitBreaker
from keywright_registry.errors import MetadataUnreachableError
from keywright_registry.metadata.contract import Metadata
from keywright_registry.repository import Counts
from keywright_registry.schema import BatchedCounts, CountBatch, CountedPath, PullCount, PushCount

__all__ = ["CountFlusher", "Flushed", "count", "move_counts", "pending"]

# Sent again it returns the batch of the first time, which stays until it is settled.
TAKE_COUNTS = Script("keywright_registry", "take_counts", Effect.REPEATABLE)
SETTLE_BATCH = Script("keywright_registry", "settle_batch", Effect.REPEATABLE)

CONCURRENCY = 16
UNREACHABLE = (ConnectionLostError, DeadlineError, OutcomeUnknownError, MetadataUnreachableError)

RepositoryKey: TypeAlias = CountedPath | CountBatch
"""A key that a flush finds; its variables are those of all keys of the repository."""

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
    """Return the counts that are not in a batch yet."""
    return gather(PullCount.of(path).get(), PushCount.of(path).get()).map(lambda found: Counts(path, *found))


def take(key: RepositoryKey, batch: str, path: str = "") -> Call[BatchedCounts | None]:
    """Step 1: return a batch of the pending counts of a repository, or the batch that is under way.

    `path` names a repository whose counters were written by a program that does not store the path.
    """
    keys = [kind(*_variables(key)) for kind in (PullCount, PushCount, CountedPath, CountBatch)]
    return TAKE_COUNTS.call(keys, (batch, path), _batch)


def settle(key: RepositoryKey, batch: BatchedCounts) -> Call[bool]:
    """Step 3: delete a batch of a repository, which the database has now."""
    return SETTLE_BATCH.call([CountBatch(*_variables(key))], (batch.id,), bool)


class Flushed(msgspec.Struct, frozen=True):
    """The result of a flush: batches, how many of them the database knew, and the counts of the others."""

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
    """Moves counts to the database. Several may run at once: they only repeat each other's work.

    `before` is awaited with the counts of each batch before the database adds them, again after a crash.
    """

    def __init__(
        self,
        redis: AsyncDatabase,
        metadata: Metadata,
        *,
        concurrency: int = CONCURRENCY,
        before: Callable[[Counts], Awaitable[None]] | None = None,
    ) -> None:
        self._redis = redis
        self._metadata = metadata
        self._before = before
        self._slots = asyncio.Semaphore(concurrency)

    async def flush(self, paths: Iterable[str] | None = None) -> Flushed:
        """Move the counts of these repositories, or of all that SCAN finds.

        Continue after an error unless a server is unreachable, then raise the first error. Counts that were
        not moved stay for the next flush.
        """
        tasks: list[asyncio.Task[Flushed]] = []
        try:
            await self._start_all(self._counted() if paths is None else _named(paths), tasks)
        finally:
            await asyncio.gather(*tasks, return_exceptions=True)
        return sum((task.result() for task in tasks), Flushed())

    async def _start_all(
        self, found: AsyncGenerator[tuple[RepositoryKey, str], None], tasks: list[asyncio.Task[Flushed]]
    ) -> None:
        seen: set[tuple[str, str]] = set()
        unreachable = asyncio.Event()
        async with aclosing(found) as keys:
            async for key, path in keys:
                if _variables(key) in seen:
                    continue
                seen.add(_variables(key))
                await self._slots.acquire()
                tasks.append(asyncio.create_task(self._move(key, path, unreachable)))
                if unreachable.is_set():
                    return

    async def _counted(self) -> AsyncGenerator[tuple[RepositoryKey, str], None]:
        kinds: tuple[type[RepositoryKey], ...] = (CountBatch, CountedPath)
        for kind in kinds:
            async for key in self._redis.scan(kind):
                yield key, ""

    async def _move(self, key: RepositoryKey, path: str, unreachable: asyncio.Event) -> Flushed:
        try:
            batch = await self._redis.run(take(key, new_token(), path))
            if batch is None:
                return Flushed()
            counts = Counts(batch.path, batch.pulls, batch.pushes)
            if self._before is not None:
                await self._before(counts)
            new = await self._metadata.add_counts(batch.id, [counts])
            await self._redis.run(settle(key, batch))
            return Flushed(1, 0, batch.pulls, batch.pushes) if new else Flushed(1, 1)
        except UNREACHABLE:
            unreachable.set()
            raise
        finally:
            self._slots.release()


async def move_counts(redis: CircuitBreaker, metadata: Metadata, renamed: Mapping[str, str]) -> None:
    """Move the counts of renamed paths to the new paths: batches under way, then counts that came since.

    A batch that is taken here names the new path, so any process that finishes it adds it there.
    """
    for some in batched(renamed.items()):
        if moved := await _move_batches(redis, metadata, some):
            await _move_batches(redis, metadata, moved)


async def _move_batches(
    redis: CircuitBreaker, metadata: Metadata, renamed: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Move one batch of each path; return the renames that had one."""
    taken = await redis.run(gather_list([take(CountBatch.of(old), new_token(), new) for old, new in renamed]))
    batches = {rename: batch for rename, batch in zip(renamed, taken, strict=True) if batch}
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
