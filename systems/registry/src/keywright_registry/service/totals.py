"""How often a repository was pulled from and pushed to, wherever that is counted at the moment."""

from __future__ import annotations

from keywright import AsyncDatabase, gather
from keywright_registry.counters import pending
from keywright_registry.metadata import Metadata
from keywright_registry.repository import Counts
from keywright_registry.schema import BatchedCounts, CountBatch

__all__ = ["total"]

_ATTEMPTS = 5


async def total(redis: AsyncDatabase, metadata: Metadata | None, path: str) -> Counts:
    """Return the sum of the counts in Redis, on their way to the database, and in the database, if any.

    A flush between the look at Redis and the one at the database is noticed, since then another batch is on
    its way or less is waiting, and both are asked again.
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
