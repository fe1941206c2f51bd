"""The pulls and pushes of a repository: in Redis, in a batch under way, and in the database."""

from __future__ import annotations

from keywright import AsyncDatabase, gather
from keywright_registry.counters import pending
from keywright_registry.metadata import Metadata
from keywright_registry.repository import Counts
from keywright_registry.schema import BatchedCounts, CountBatch

__all__ = ["total"]

_ATTEMPTS = 5


async def total(redis: AsyncDatabase, metadata: Metadata | None, path: str) -> Counts:
    """Return the sum of the counts in Redis, in a batch under way, and in the database, if there is one.

    A flush between the two reads changes the batch or lowers the counters, and both are read again then.
    """
    waiting, batch = await _in_redis(redis, path)
    found = _sum(path, waiting, _of(batch))
    if metadata is None:
        return found
    for _ in range(_ATTEMPTS):
        stored, added = await metadata.counts_with(path, batch.id if batch else "")
        found = _sum(path, waiting, stored, Counts(path) if added else _of(batch))
        before, (waiting, batch) = (waiting, batch), await _in_redis(redis, path)
        if before[1] == batch and not _is_less(waiting, before[0]):
            break
    return found


async def _in_redis(redis: AsyncDatabase, path: str) -> tuple[Counts, BatchedCounts | None]:
    return await redis.run(gather(pending(path), CountBatch.of(path).get()))


def _is_less(now: Counts, before: Counts) -> bool:
    return now.pulls < before.pulls or now.pushes < before.pushes


def _of(batch: BatchedCounts | None) -> Counts:
    return Counts(batch.path, batch.pulls, batch.pushes) if batch else Counts("")


def _sum(path: str, *parts: Counts) -> Counts:
    return Counts(path, sum(part.pulls for part in parts), sum(part.pushes for part in parts))
