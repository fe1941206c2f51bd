"""Pulls and pushes reach the database once, wherever a flush was cut."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from keywright import AsyncDatabase, Retry, Settings, aconnect
from keywright.errors import EngineError, StoredDataError
from keywright.testing import Proxy, Raw, Run
from keywright_registry import counters
from keywright_registry.counters import CountFlusher, Flushed, count, pending
from keywright_registry.metadata.contract import Metadata
from keywright_registry.repository import Counts
from keywright_registry.schema import CountBatch, PullCount

from .registry_databases import opened
from .registry_doubles import CountingMetadata

pytestmark = pytest.mark.anyio

PATHS = ("acme/web", "acme/api", "other")
IMPATIENT = Settings(timeout_seconds=5, connect_seconds=5, retry=Retry(attempts=1))


class Dying(CountingMetadata):
    """Fails before or after it has added a batch, a given number of times."""

    def __init__(self, inner: Metadata) -> None:
        super().__init__()
        self.inner = inner
        self.before = self.after = 0
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def add_counts(self, batch: str, counts: Sequence[Counts]) -> bool:
        if self.before:
            self.before -= 1
            raise RuntimeError("died before")
        added = await self.inner.add_counts(batch, counts)
        if self.meanwhile is not None:
            await self.meanwhile()
        if self.after:
            self.after -= 1
            raise RuntimeError("died after")
        return added


def test_counts_are_the_published_counters(run: Run, raw: Raw) -> None:
    run(count("acme/web", pulls=2))
    run(count("acme/web", pulls=1, pushes=4))
    assert run(pending("acme/web")) == Counts("acme/web", 3, 4)
    name = b"registry:" + bytes(PullCount.of("acme/web"))
    assert raw("GET", name) == b"3"
    assert raw("TTL", name) == -1
    run(count("acme/web"))
    assert run(pending("other")) == Counts("other")


async def test_a_flush_moves_everything_and_leaves_nothing(redis: AsyncDatabase, raw: Raw) -> None:
    metadata = CountingMetadata()
    for number, path in enumerate(PATHS, 1):
        await redis.run(count(path, pulls=number, pushes=10 * number))
    flusher = CountFlusher(redis, metadata)
    assert await flusher.flush() == Flushed(3, 0, 6, 60)
    assert raw.names() == set()
    assert await flusher.flush() == Flushed()
    assert [await metadata.counts(path) for path in PATHS] == [
        Counts(path, number, 10 * number) for number, path in enumerate(PATHS, 1)
    ]


async def test_named_repositories_are_flushed_without_a_scan(
    redis: AsyncDatabase,
) -> None:
    """The Go registry increments, but stores no path."""
    metadata = CountingMetadata()
    await redis.run(PullCount.of("acme/web").add(5))
    flusher = CountFlusher(redis, metadata)
    assert await flusher.flush() == Flushed()
    assert await flusher.flush(["acme/web", "acme/web", "unknown"]) == Flushed(1, 0, 5, 0)
    assert await metadata.counts("acme/web") == Counts("acme/web", 5, 0)


@pytest.mark.parametrize("fault", ["cut_after_commands", "cut_before_reply"])
async def test_a_flush_that_is_cut_at_any_command_loses_and_doubles_nothing(
    fault: str, redis_url: str, make_proxy: Callable[[str], Proxy], tmp_path: Path, raw: Raw
) -> None:
    proxy = make_proxy(redis_url)
    async with opened(f"sqlite:///{tmp_path}/registry.db") as metadata, aconnect(redis_url) as sound:
        completed, step, expected = False, 0, 0
        while not completed:
            for path in PATHS:
                await sound.run(count(path, pulls=1, pushes=2))
            expected += 1
            completed = await _cut_flush(proxy, fault, step, metadata)
            step += 1
            await CountFlusher(sound, metadata).flush()
            totals = [await metadata.counts(path) for path in PATHS]
            assert totals == [Counts(path, expected, 2 * expected) for path in PATHS], f"cut at {step}"
            assert raw.names() == set()
        assert step > 2 * len(PATHS)  # takes and settles, one by one


async def _cut_flush(proxy: Proxy, fault: str, step: int, metadata: Metadata) -> bool:
    """Flush over a connection that breaks for good at one command; whether it got through before."""
    async with aconnect(proxy.url, settings=IMPATIENT) as redis:
        flusher = CountFlusher(redis, metadata, concurrency=1)
        proxy.refuse()
        getattr(proxy, fault)(step + (fault == "cut_before_reply"))
        try:
            await flusher.flush()
        except EngineError:
            return False
        finally:
            proxy.heal()
        return True


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_flush_whose_database_fails_is_taken_up_by_the_next(
    moment: str, redis: AsyncDatabase, tmp_path: Path, raw: Raw
) -> None:
    async with opened(f"sqlite:///{tmp_path}/registry.db") as inner:
        metadata = Dying(inner)
        await redis.run(count("acme/web", pulls=3))
        setattr(metadata, moment, 1)
        with pytest.raises(RuntimeError, match=moment):
            await CountFlusher(redis, metadata).flush()
        await redis.run(count("acme/web", pulls=4))
        repeated = await CountFlusher(redis, metadata).flush()
        assert repeated == (Flushed(1, 0, 3, 0) if moment == "before" else Flushed(1, 1, 0, 0))
        await CountFlusher(redis, metadata).flush()
        assert await inner.counts("acme/web") == Counts("acme/web", 7, 0)
        assert raw.names() == set()


async def test_counts_that_arrive_during_a_flush_stay_for_the_next(
    redis: AsyncDatabase, tmp_path: Path
) -> None:
    async with opened(f"sqlite:///{tmp_path}/registry.db") as inner:
        metadata = Dying(inner)
        metadata.meanwhile = lambda: redis.run(count("acme/web", pulls=10))
        await redis.run(count("acme/web", pulls=1))
        flusher = CountFlusher(redis, metadata)
        await flusher.flush()
        assert await redis.run(pending("acme/web")) == Counts("acme/web", 10, 0)
        metadata.meanwhile = None
        await flusher.flush()
        assert await inner.counts("acme/web") == Counts("acme/web", 11, 0)


async def test_flushers_that_run_at_once_add_every_count_once(redis: AsyncDatabase, tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path}/registry.db") as metadata:
        for turn in range(1, 11):
            counted = [redis.run(count(path, pulls=1)) for path in PATHS]
            await asyncio.gather(*counted, *(CountFlusher(redis, metadata).flush() for _ in range(4)))
            await CountFlusher(redis, metadata).flush()
            await CountFlusher(redis, metadata).flush()
            assert [await metadata.counts(path) for path in PATHS] == [Counts(path, turn) for path in PATHS]


async def test_one_repository_that_cannot_be_flushed_does_not_stop_the_others(
    redis: AsyncDatabase, raw: Raw
) -> None:
    metadata = CountingMetadata()
    for path in PATHS:
        await redis.run(count(path, pulls=1))
    raw("SET", b"registry:" + bytes(PullCount.of(PATHS[0])), "many")
    with pytest.raises(StoredDataError):
        await CountFlusher(redis, metadata).flush()
    assert [await metadata.counts(path) for path in PATHS] == [
        Counts(PATHS[0]),
        *(Counts(p, 1) for p in PATHS[1:]),
    ]


def test_settling_leaves_a_batch_that_took_the_place_alone(run: Run) -> None:
    key = CountBatch.of("a")
    run(count("a", pulls=1))
    first = run(counters.take(key, "first"))
    assert first is not None
    assert run(counters.settle(key, first))
    run(count("a", pulls=2))
    assert run(counters.take(key, "second")) == run(counters.take(key, "third"))
    assert not run(counters.settle(key, first))
    assert run(key.get()) is not None
