"""Read-through: one query for concurrent misses, no stale fills, and answers without Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from keywright import AsyncDatabase, aconnect, new_token
from keywright.testing import Proxy, Raw
from keywright_registry.cache import RepositoryCache
from keywright_registry.cache_metrics import CacheEvent, CacheEventCounter, PrometheusCacheMetrics
from keywright_registry.go_encoding import GoRepository
from keywright_registry.lookup import LookupTimings
from keywright_registry.registry import Registry
from keywright_registry.repository import Repository
from keywright_registry.schema import CachedRepository, FillLease

from .registry_doubles import CountingMetadata, two, until
from .registry_vectors import repository_at

pytestmark = pytest.mark.anyio

PATH = "acme/web"
WAITERS = 500
NEVER_SAMPLED = LookupTimings(refresh_sample=0)
ALWAYS_SAMPLED = LookupTimings(refresh_sample=1)
HOLD = timedelta(seconds=30)


class Bench:
    """A registry on Redis with a counting database, and its metrics."""

    def __init__(
        self,
        redis: AsyncDatabase,
        timings: LookupTimings = NEVER_SAMPLED,
        *,
        absence: bool = False,
        reset_seconds: float = 0.25,
    ) -> None:
        self.redis = redis
        self.metadata = CountingMetadata([repository_at(PATH)])
        self.metrics = CacheEventCounter()
        self.registry = Registry(
            redis,
            self.metadata,
            cache=RepositoryCache(absence=absence),
            metrics=self.metrics,
            timings=timings,
            reset_seconds=reset_seconds,
        )


async def test_a_miss_queries_the_database_and_the_next_lookup_does_not(redis: AsyncDatabase) -> None:
    bench = Bench(redis)
    for _ in range(3):
        assert await bench.registry.find(PATH) == repository_at(PATH)
    assert bench.metadata.queries == 1
    assert bench.metrics == {
        CacheEvent.MISS: 1,
        CacheEvent.QUERIED: 1,
        CacheEvent.FILLED: 1,
        CacheEvent.FILL_REFUSED: 0,
        CacheEvent.HIT: 2,
    }


async def test_five_hundred_concurrent_misses_run_one_query(redis: AsyncDatabase) -> None:
    bench = Bench(redis)
    bench.metadata.gate.clear()
    waiting = [asyncio.create_task(bench.registry.find(PATH)) for _ in range(WAITERS)]
    await bench.metadata.asked.wait()
    bench.metadata.gate.set()
    assert await asyncio.gather(*waiting) == [repository_at(PATH)] * WAITERS
    assert bench.metadata.queries == 1


async def test_misses_of_two_processes_run_one_query(redis_url: str) -> None:
    async with two(redis_url) as (one, other):
        asking, waiting = Bench(one), Bench(other)
        asking.metadata.gate.clear()
        first = asyncio.create_task(asking.registry.find(PATH))
        await asking.metadata.asked.wait()
        others = [asyncio.create_task(waiting.registry.find(PATH)) for _ in range(50)]
        await until(lambda: _missed(waiting, 50))
        asking.metadata.gate.set()
        assert await asyncio.gather(first, *others) == [repository_at(PATH)] * 51
        assert (asking.metadata.queries, waiting.metadata.queries) == (1, 0)


async def test_a_waiting_process_takes_over_when_the_other_gives_up(redis_url: str) -> None:
    async with two(redis_url) as (one, other):
        asking, waiting = Bench(one), Bench(other)
        asking.metadata.gate.clear()
        asking.metadata.failing = RuntimeError("the database is gone")
        first = asyncio.create_task(asking.registry.find(PATH))
        await asking.metadata.asked.wait()
        second = asyncio.create_task(waiting.registry.find(PATH))
        asking.metadata.gate.set()
        with pytest.raises(RuntimeError, match="gone"):
            await first
        assert await second == repository_at(PATH)
        assert waiting.metrics[CacheEvent.FILLED] == 1


async def test_a_process_that_waited_long_enough_queries_without_filling(redis: AsyncDatabase) -> None:
    bench = Bench(redis, LookupTimings(refresh_sample=0, wait_for_fill=timedelta(milliseconds=50)))
    await redis.run(FillLease.of(PATH).acquire("a process that hangs", HOLD))
    assert await bench.registry.find(PATH) == repository_at(PATH)
    assert bench.metadata.queries == 1
    assert await redis.run(CachedRepository.of(PATH).get()) is None


async def test_a_waiter_that_is_cancelled_leaves_the_others_waiting(redis: AsyncDatabase) -> None:
    bench = Bench(redis)
    bench.metadata.gate.clear()
    first, second = (asyncio.create_task(bench.registry.find(PATH)) for _ in range(2))
    await bench.metadata.asked.wait()
    first.cancel()
    bench.metadata.gate.set()
    assert await second == repository_at(PATH)
    assert first.cancelled()


async def test_an_error_of_the_database_reaches_every_waiter_and_is_not_cached(redis: AsyncDatabase) -> None:
    bench = Bench(redis)
    bench.metadata.failing = RuntimeError("refused")
    outcomes = await asyncio.gather(*(bench.registry.find(PATH) for _ in range(5)), return_exceptions=True)
    assert [str(each) for each in outcomes] == ["refused"] * 5
    bench.metadata.failing = None
    assert await bench.registry.find(PATH) == repository_at(PATH)


async def test_a_value_read_before_a_change_is_not_cached_after_it(redis: AsyncDatabase) -> None:
    bench = Bench(redis)
    bench.metadata.gate.clear()
    reading = asyncio.create_task(bench.registry.find(PATH))
    await bench.metadata.asked.wait()
    newer = bench.metadata.rows[PATH] = repository_at(PATH, number=2)
    await redis.run(bench.registry.cache.set(newer))
    bench.metadata.gate.set()
    assert await reading == repository_at(PATH)
    assert bench.metrics[CacheEvent.FILL_REFUSED] == 1
    assert await bench.registry.find(PATH) == newer


async def test_absence_is_cached_on_request(redis: AsyncDatabase) -> None:
    for absence, queries in ((False, 3), (True, 1)):
        bench = Bench(redis, absence=absence)
        for _ in range(3):
            assert await bench.registry.find("no/such") is None
        assert bench.metadata.queries == queries
        assert bench.metrics[CacheEvent.KNOWN_ABSENT] == 3 - queries


async def test_a_frequently_read_repository_is_refreshed_before_it_expires(
    redis: AsyncDatabase, raw: Raw
) -> None:
    bench = Bench(redis, ALWAYS_SAMPLED)
    await bench.registry.find(PATH)
    await bench.registry.find(PATH)
    assert bench.metadata.queries == 1
    newer = bench.metadata.rows[PATH] = repository_at(PATH, number=2)
    await redis.run(CachedRepository.of(PATH).expire(timedelta(minutes=30)))
    assert await bench.registry.find(PATH) == repository_at(PATH)  # answered by the old one
    assert bench.metrics[CacheEvent.REFRESHED] == 1
    await until(lambda: _found(bench, newer))
    assert bench.metadata.queries == 2
    assert (await redis.run(CachedRepository.of(PATH).ttl()) or HOLD) > timedelta(hours=5)


async def test_a_rarely_read_repository_is_not_refreshed(redis: AsyncDatabase) -> None:
    bench = Bench(redis, NEVER_SAMPLED)
    await bench.registry.find(PATH)
    await redis.run(CachedRepository.of(PATH).expire(timedelta(minutes=30)))
    await bench.registry.find(PATH)
    assert bench.metrics[CacheEvent.REFRESHED] == 0


async def test_a_mismatch_and_malformed_data_are_counted_misses(redis: AsyncDatabase, raw: Raw) -> None:
    name = b"registry:" + bytes(CachedRepository.of(PATH))
    for stored, event in (
        (GoRepository().encode(repository_at("other/web")), CacheEvent.MISMATCH),
        (b"rubbish", CacheEvent.UNDECODABLE),
    ):
        raw("SET", name, stored)
        bench = Bench(redis)
        assert await bench.registry.find(PATH) == repository_at(PATH)
        assert bench.metrics[event] == bench.metadata.queries == 1
        assert await bench.registry.find(PATH) == repository_at(PATH)
        assert bench.metadata.queries == 1


async def test_many_are_found_with_one_query_for_all_that_miss(redis: AsyncDatabase) -> None:
    bench = Bench(redis)
    paths = [f"acme/{number}" for number in range(100)]
    bench.metadata.rows = {path: repository_at(path) for path in paths[:80]}
    for path in paths[:10]:
        await bench.registry.find(path)
    bench.metadata.queries = 0
    assert await bench.registry.find_many([*paths, paths[0]]) == bench.metadata.rows
    assert bench.metadata.queries == 1
    assert await bench.registry.find_many(paths[:80]) == bench.metadata.rows
    assert bench.metadata.queries == 1
    assert await bench.registry.find_many([]) == {}


async def test_a_silent_redis_costs_one_deadline_then_the_database_answers_at_once(
    redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)
    async with aconnect(proxy.url) as redis:
        bench = Bench(redis)
        await bench.registry.find(PATH)
        proxy.delay(30)
        clock = asyncio.get_running_loop().time
        start = clock()
        assert await bench.registry.find(PATH) == repository_at(PATH)
        waited = clock() - start
        assert waited >= 0.4  # it was waited for, and not for long: 30 seconds would end the test
        assert bench.metrics[CacheEvent.UNREACHABLE] == 1
        for _ in range(20):
            assert await bench.registry.find(PATH) == repository_at(PATH)
        assert bench.metrics[CacheEvent.SKIPPED] > 0
        proxy.heal()
        await until(lambda: _hits_again(bench))
        await bench.registry.close()


def test_events_are_counted_for_prometheus() -> None:
    prometheus = pytest.importorskip("prometheus_client")
    collected = prometheus.CollectorRegistry()
    metrics = PrometheusCacheMetrics(collected)
    metrics(CacheEvent.HIT)
    metrics(CacheEvent.UNREACHABLE, 3)
    assert collected.get_sample_value("registry_cache_events_total", {"event": "hit"}) == 1
    assert collected.get_sample_value("registry_cache_events_total", {"event": "unreachable"}) == 3


async def test_a_closed_registry_leaves_no_task_behind(redis_url: str) -> None:
    before = asyncio.all_tasks()
    async with aconnect(redis_url) as redis:
        bench = Bench(redis)
        bench.metadata.gate.clear()
        asking = asyncio.create_task(bench.registry.find(PATH))
        await bench.metadata.asked.wait()
        await bench.registry.close()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert asyncio.all_tasks() == before
        assert await redis.run(FillLease.of(PATH).acquire(new_token(), HOLD))


async def test_a_closed_registry_leaves_no_outdated_query_behind(redis_url: str) -> None:
    before = asyncio.all_tasks()
    async with aconnect(redis_url) as redis:
        bench = Bench(redis)
        bench.metadata.gate.clear()
        asking = asyncio.create_task(bench.registry.find(PATH))
        await bench.metadata.asked.wait()
        await bench.registry.invalidate_size(PATH)
        await bench.registry.close()
        assert asyncio.all_tasks() <= {*before, asking}
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_a_failed_query_for_many_releases_their_fill_leases(redis: AsyncDatabase) -> None:
    bench = Bench(redis)
    bench.metadata.failing = RuntimeError("the database is gone")
    with pytest.raises(RuntimeError, match="gone"):
        await bench.registry.find_many([PATH, "acme/api"])
    for path in (PATH, "acme/api"):
        assert await redis.run(FillLease.of(path).acquire(new_token(), HOLD))


async def test_an_empty_lookup_does_not_close_the_circuit(
    redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)
    async with aconnect(proxy.url) as redis:
        bench = Bench(redis, reset_seconds=0)
        proxy.refuse()
        proxy.cut()
        assert await bench.registry.find(PATH) == repository_at(PATH)
        assert await bench.registry.find_many([]) == {}
        await asyncio.gather(*(bench.registry.find(f"acme/{number}") for number in range(10)))
        assert bench.metrics[CacheEvent.UNREACHABLE] == 2
        assert bench.metrics[CacheEvent.SKIPPED] == 9  # the trial of one is enough


async def _found(bench: Bench, wanted: Repository) -> bool:
    return await bench.registry.find(PATH) == wanted


async def _hits_again(bench: Bench) -> bool:
    before = bench.metrics[CacheEvent.HIT]
    await bench.registry.find(PATH)
    return bench.metrics[CacheEvent.HIT] > before


async def _missed(bench: Bench, times: int) -> bool:
    return bench.metrics[CacheEvent.MISS] >= times
