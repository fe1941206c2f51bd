"""Counts reach the database on schedule and at the end, from one process at a time, despite crashes."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from keywright import RoundTrip, aconnect, connect
from keywright.testing import RedisServer, wait_until
from keywright_registry.cache import RepositoryCache
from keywright_registry.counters import CountFlusher, count, pending
from keywright_registry.metadata import Metadata
from keywright_registry.repository import Counts
from keywright_registry.schema import FlushLease
from keywright_registry.service.flusher import ScheduledFlusher
from keywright_registry.service.metrics import RegistryMetrics
from keywright_registry.service.totals import total
from keywright_registry.testing.postgres import PostgresServer

from ..registry_databases import opened
from ..registry_service import EVENTS_V1, configuration, envelope, event, post, served, serving

pytestmark = pytest.mark.anyio

SOON = timedelta(milliseconds=10)
NEVER = timedelta(hours=1)


async def stored(database_url: str, path: str = "acme/web") -> Counts:
    async with opened(database_url) as metadata:
        return await metadata.counts(path)


async def flushed_to(metadata: Metadata, path: str, wanted: Counts) -> None:
    async with asyncio.timeout(30):
        while await metadata.counts(path) != wanted:  # noqa: ASYNC110  # a flush is waited for
            await asyncio.sleep(0.01)


async def test_counts_reach_the_database_on_schedule(redis_url: str, database_url: str) -> None:
    settings = configuration(redis_url, database_url=database_url, flush_every="10ms")
    async with serving(settings) as client, opened(database_url) as metadata:
        await post(client, event("pull"), event("push"), event("push", "other"))
        await flushed_to(metadata, "acme/web", Counts("acme/web", 1, 1))
        await flushed_to(metadata, "other", Counts("other", 0, 1))
        await post(client, event("pull"))
        await flushed_to(metadata, "acme/web", Counts("acme/web", 2, 1))
        assert (await client.get("/counts/acme/web")).json()["pulls"] == 2
        assert 'counts_flushed_total{kind="pushes"} 2.0' in (await client.get("/metrics")).text


@pytest.mark.parametrize("cached", ["false", "true"], ids=["not cached", "cached"])
async def test_a_push_creates_the_repository_and_a_pull_does_not(
    redis_url: str, database_url: str, cached: str
) -> None:
    settings = configuration(
        redis_url, database_url=database_url, flush_every="10ms", cache_repositories=cached
    )
    async with serving(settings) as client, opened(database_url) as metadata:
        assert (await client.get("/repositories/acme/web")).status_code == 404
        await post(client, event("push", "acme/web", method="PUT"), event("pull", "acme/other"))
        await flushed_to(metadata, "acme/web", Counts("acme/web", 0, 1))
        await flushed_to(metadata, "acme/other", Counts("acme/other", 1, 0))
        found = await client.get("/repositories/acme/web")
        assert (found.status_code, found.json()["path"], found.json()["name"]) == (200, "acme/web", "web")
        assert (await client.get("/repositories/acme/other")).status_code == 404
        listed = await client.get("/repositories")
        assert [each["path"] for each in listed.json()["repositories"]] == ["acme", "acme/web"]
        await post(client, event("push", "acme/web", method="PUT"))
        await flushed_to(metadata, "acme/web", Counts("acme/web", 0, 2))
        assert (await client.get("/repositories/acme/web")).json()["id"] == found.json()["id"]
    with connect(redis_url) as db:
        in_redis = db.run(RepositoryCache().get("acme/web"))
    assert (in_redis is not None) == (cached == "true"), "a GitLab registry may read these keys"


async def test_a_repository_is_created_again_when_the_first_attempt_failed(
    redis_url: str, database_url: str
) -> None:
    class FailingError(Exception):
        pass

    async with aconnect(redis_url) as redis, opened(database_url) as metadata:
        failures = [FailingError()]

        async def before(counts: Counts) -> None:
            if failures:
                raise failures.pop()
            async with metadata.transaction() as transaction:
                await transaction.create_or_find(counts.path)

        await redis.run(count("acme/web", pushes=1))
        flusher = CountFlusher(redis, metadata, before=before)
        with pytest.raises(FailingError):
            await flusher.flush()
        assert await metadata.counts("acme/web") == Counts("acme/web")
        await flusher.flush()
        assert await metadata.counts("acme/web") == Counts("acme/web", 0, 1)
        assert await metadata.find("acme/web")


async def test_a_clean_stop_moves_all_counts(redis_url: str, database_url: str) -> None:
    settings = configuration(redis_url, database_url=database_url, flush_every="1h")
    async with serving(settings) as client:
        # One after the other: all of them are there before the end, none is flushed on schedule.
        for _ in range(5):
            await post(client, event("pull"))
    assert await stored(database_url) == Counts("acme/web", 5, 0)
    with connect(redis_url) as db:
        assert db.run(pending("acme/web")) == Counts("acme/web")
        assert db.run(FlushLease().holder()) is None, "the next process has its turn at once"


async def test_one_of_several_processes_flushes(redis_url: str, database_url: str) -> None:
    asked: list[RoundTrip] = []

    def observe(trip: RoundTrip) -> None:
        asked.append(trip)

    async with (
        aconnect(redis_url, observers=[observe]) as redis,
        aconnect(redis_url) as other,
        opened(database_url) as metadata,
    ):
        await other.run(FlushLease().acquire("another", timedelta(minutes=1)))
        await other.run(count("acme/web", pulls=1))
        metrics = RegistryMetrics()
        flusher = ScheduledFlusher(redis, metadata, metrics, every=SOON)
        stopping = asyncio.Event()
        running = asyncio.create_task(flusher.run(stopping))
        async with asyncio.timeout(30):
            while len(asked) < 5:  # noqa: ASYNC110  # it asks whose turn it is, again and again
                await asyncio.sleep(0.01)
        assert await metadata.counts("acme/web") == Counts("acme/web")
        assert b"keywright_registry_flushing 0.0" in metrics.exposition()
        await other.run(FlushLease().release("another"))
        await flushed_to(metadata, "acme/web", Counts("acme/web", 1, 0))
        async with asyncio.timeout(30):
            # The lease is so short here that a busy machine may lose and regain it.
            while b"keywright_registry_flushing 1.0" not in metrics.exposition():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        stopping.set()
        await running


async def test_a_failed_flush_is_retried(
    redis_url: str, postgres_url: str, keywright_postgres: PostgresServer
) -> None:
    async with aconnect(redis_url) as redis, opened(postgres_url) as metadata:
        metrics = RegistryMetrics()
        flusher = ScheduledFlusher(redis, metadata, metrics, every=SOON)
        keywright_postgres.stop()
        await redis.run(count("acme/web", pulls=3))
        stopping = asyncio.Event()
        running = asyncio.create_task(flusher.run(stopping))
        async with asyncio.timeout(30):
            while b"flush_failures_total 0.0" in metrics.exposition():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        keywright_postgres.start()
        await flushed_to(metadata, "acme/web", Counts("acme/web", 3, 0))
        stopping.set()
        await running


async def test_a_redis_that_is_away_for_a_while_does_not_end_the_flusher(
    keywright_server: RedisServer, redis_url: str, database_url: str
) -> None:
    async with aconnect(redis_url) as redis, opened(database_url) as metadata:
        flusher = ScheduledFlusher(redis, metadata, RegistryMetrics(), every=SOON)
        stopping = asyncio.Event()
        running = asyncio.create_task(flusher.run(stopping))
        keywright_server.restart()
        async with aconnect(redis_url) as other:
            await other.run(count("acme/web", pushes=1))
        await flushed_to(metadata, "acme/web", Counts("acme/web", 0, 1))
        stopping.set()
        await running


async def test_totals_include_a_batch_under_way(redis_url: str, database_url: str) -> None:
    class DyingError(Exception): ...

    class DiesBefore:
        """A database that is never reached."""

        async def add_counts(self, batch: str, counts: object) -> bool:
            raise DyingError

    class DiesAfter:
        """A database whose answer is lost."""

        def __init__(self, metadata: Metadata) -> None:
            self._metadata = metadata

        async def add_counts(self, batch: str, counts: Any) -> bool:
            await self._metadata.add_counts(batch, counts)
            raise DyingError

    async with aconnect(redis_url) as redis, opened(database_url) as metadata:
        await redis.run(count("acme/web", pulls=2, pushes=1))
        expected = Counts("acme/web", 2, 1)
        doomed: Any
        for doomed in (DiesBefore(), DiesAfter(metadata)):
            with pytest.raises(DyingError):
                await CountFlusher(redis, doomed).flush()
            assert await total(redis, metadata, "acme/web") == expected
        await redis.run(count("acme/web", pulls=1))
        assert await total(redis, metadata, "acme/web") == Counts("acme/web", 3, 1)
        assert await total(redis, None, "acme/web") == Counts("acme/web", 3, 1)
        await CountFlusher(redis, metadata).flush()
        await CountFlusher(redis, metadata).flush()
        assert await total(redis, metadata, "acme/web") == Counts("acme/web", 3, 1)


async def test_a_flush_between_the_reads_of_redis_and_the_database_counts_nothing_twice(
    redis_url: str, database_url: str
) -> None:
    async with aconnect(redis_url) as redis, opened(database_url) as metadata:
        await redis.run(count("acme/web", pulls=2, pushes=1))

        class Overtaken:
            """A database that gets a whole flush before it answers for the first time."""

            flushes = 1

            async def counts_with(self, path: str, batch: str) -> tuple[Counts, bool]:
                if self.flushes:
                    self.flushes -= 1
                    await CountFlusher(redis, metadata).flush()
                return await metadata.counts_with(path, batch)

        overtaken: Any = Overtaken()
        assert await total(redis, overtaken, "acme/web") == Counts("acme/web", 2, 1)


class Sender:
    """Sends events as the registry does: one at a time, each again until it is acknowledged."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self.pending: dict[str, Any] | None = None

    def has_sent(self, number: int) -> bool:
        return self.acknowledged >= number

    def send(self, url: str, number: int) -> None:
        """Send `number` more events, or fewer when the service goes away."""
        with httpx.Client(base_url=url, timeout=30) as client:
            for _ in range(number):
                self.pending = self.pending or event("pull")
                answer = client.post(
                    "/notifications", content=envelope(self.pending), headers={"Content-Type": EVENTS_V1}
                )
                if answer.status_code != 200:
                    return
                self.acknowledged += 1
                self.pending = None


@contextmanager
def sending(sender: Sender, url: str) -> Iterator[None]:
    """Send without end in a thread until the service is gone."""

    def work() -> None:
        try:
            sender.send(url, 1_000_000)
        except httpx.TransportError:
            return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join()


async def test_a_killed_service_loses_and_doubles_nothing(
    redis_url: str, database_url: str, tmp_path: Path
) -> None:
    sender = Sender()
    for life in range(2):
        log = tmp_path / f"{life}.log"
        with served(log, redis_url, database_url, "--flush-every", "0.01") as service:
            wanted = sender.acknowledged + 60
            with sending(sender, service.url):
                wait_until(partial(sender.has_sent, wanted), "events are acknowledged")
                service.child.kill()
    with served(tmp_path / "last.log", redis_url, database_url) as service:
        sender.send(service.url, 1)
        service.child.send_signal(signal.SIGTERM)
        assert service.child.wait(30) == 0
    assert sender.pending is None
    assert await stored(database_url) == Counts("acme/web", sender.acknowledged, 0)


async def test_a_sigterm_in_the_middle_of_a_flush_finishes_it(
    redis_url: str, postgres_url: str, tmp_path: Path
) -> None:
    with connect(redis_url) as db:
        for number in range(30):
            db.run(count(f"n{number}", pulls=2))
    async with opened(postgres_url):
        pass  # the tables exist now
    with psycopg.connect(postgres_url) as blocking:
        # Flushes wait at this lock, so the signal arrives in the middle of one.
        blocking.execute("LOCK TABLE repository_counts IN EXCLUSIVE MODE")
        with served(tmp_path / "log", redis_url, postgres_url, "--flush-every", "0.01") as service:
            wait_until(lambda: _waiting(postgres_url), "a flush waits for the lock")
            service.child.send_signal(signal.SIGTERM)
            wait_until(lambda: "stopping: SIGTERM" in service.log.read_text(), "it is stopping")
            assert service.child.poll() is None, "it does not leave its flush"
            blocking.rollback()
            assert service.child.wait(30) == 0
    async with opened(postgres_url) as metadata:
        assert {(await metadata.counts(f"n{number}")).pulls for number in range(30)} == {2}


async def test_a_sigterm_while_events_are_posted_loses_none(
    redis_url: str, postgres_url: str, tmp_path: Path
) -> None:
    sender = Sender()
    with (
        served(tmp_path / "log", redis_url, postgres_url, "--flush-every", "1000") as service,
        sending(sender, service.url),
    ):
        wait_until(lambda: sender.acknowledged > 30, "events are acknowledged")
        service.child.send_signal(signal.SIGTERM)
        assert service.child.wait(30) == 0
    found = (await stored(postgres_url)).pulls
    # One under way may be counted though its answer was cut off; it comes again, and does not count twice.
    assert sender.acknowledged <= found <= sender.acknowledged + (sender.pending is not None)


def _waiting(postgres_url: str) -> bool:
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'repository_counts'::regclass"
        ).fetchone()
    return bool(row and row[0])
