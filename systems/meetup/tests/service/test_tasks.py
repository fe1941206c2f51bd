"""Tasks on their schedules: when they are due, what becomes of failures, and one bot at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from keywright import AsyncDatabase, aconnect
from keywright.testing import ManualClock, Proxy
from keywright.testing.runs import Raw
from keywright_meetup.schema import TaskLease
from keywright_meetup.service.tasks import Task, TaskHealth, daily, every
from keywright_service.errors import PlatformTroubleError

PERIOD, RETRY, LIMIT = timedelta(minutes=15), timedelta(minutes=5), timedelta(seconds=360)


def run(redis_url: str, work: Callable[[AsyncDatabase, ManualClock], Awaitable[None]]) -> None:
    async def session() -> None:
        async with aconnect(redis_url) as db:
            await work(db, ManualClock())

    asyncio.run(session())


def task(db: AsyncDatabase, clock: ManualClock, work: Any, **how: Any) -> Task:
    settings: dict[str, Any] = {"following": every(PERIOD), "retry": RETRY, "limit": LIMIT} | how
    return Task("sync", work, db=db, clock=clock, **settings)


def test_success_makes_it_due_after_a_period_and_failure_after_a_pause(redis_url: str) -> None:
    outcomes: list[Exception | None] = [None, PlatformTroubleError("Meetup", "events", "status 503"), None]

    async def step() -> None:
        if (outcome := outcomes.pop(0)) is not None:
            raise outcome

    async def work(db: AsyncDatabase, clock: ManualClock) -> None:
        sync = task(db, clock, step)
        assert sync.due == clock()
        assert await sync.attempt()
        assert sync.due == clock() + PERIOD
        clock.advance(PERIOD)
        assert not await sync.attempt()
        assert sync.due == clock() + RETRY
        assert sync.health.trouble is not None
        assert "status 503" in sync.health.trouble
        clock.advance(RETRY)
        assert await sync.attempt()
        assert sync.health == TaskHealth("sync", clock() + PERIOD, clock())

    run(redis_url, work)


def test_the_work_may_say_when_it_is_due_again(redis_url: str) -> None:
    moment = datetime(2030, 5, 6, tzinfo=UTC)

    async def step() -> datetime:
        return moment

    async def work(db: AsyncDatabase, clock: ManualClock) -> None:
        sync = task(db, clock, step)
        assert await sync.attempt()
        assert sync.due == moment

    run(redis_url, work)


@pytest.mark.parametrize(
    ("now", "due"),
    [("2024-01-01T18:29", "2024-01-01T18:30"), ("2024-01-01T18:30", "2024-01-02T18:30")],
)
def test_a_daily_task_is_due_at_the_next_such_time(now: str, due: str) -> None:
    following = daily(time(18, 30))
    assert following(datetime.fromisoformat(f"{now}+00:00")) == datetime.fromisoformat(f"{due}+00:00")


def test_of_several_bots_one_is_at_it(redis_url: str) -> None:
    running, most = 0, 0

    async def step() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1

    async def work(db: AsyncDatabase, clock: ManualClock) -> None:
        bots = [task(db, clock, step) for _ in range(4)]
        done = await asyncio.gather(*(bot.attempt() for bot in bots))
        assert sorted(done) == [False, False, False, True]
        assert most == 1
        busy = [bot for bot, did in zip(bots, done, strict=True) if not did]
        assert all(clock() < bot.due < clock() + PERIOD and bot.health.trouble is None for bot in busy)
        assert await busy[0].attempt()

    run(redis_url, work)


def test_work_that_takes_too_long_is_cut_off_and_frees_the_lease(redis_url: str) -> None:
    async def step() -> None:
        await asyncio.Event().wait()

    async def work(db: AsyncDatabase, clock: ManualClock) -> None:
        sync = task(db, clock, step, limit=timedelta(seconds=0.05))
        assert not await sync.attempt()
        assert "longer than" in str(sync.health.trouble)
        assert await db.run(TaskLease("sync").holder()) is None

    run(redis_url, work)


def test_the_lease_is_held_longer_than_the_work_may_take(redis_url: str) -> None:
    async def work(db: AsyncDatabase, clock: ManualClock) -> None:
        async def step() -> None:
            assert await db.run(TaskLease("sync").holder()) is not None
            left = await db.run(TaskLease("sync").ttl())
            assert left is not None
            assert left > LIMIT

        assert await task(db, clock, step).attempt()

    run(redis_url, work)


def test_a_bug_ends_the_task_instead_of_being_passed_over(redis_url: str) -> None:
    async def step() -> None:
        raise ZeroDivisionError

    async def work(db: AsyncDatabase, clock: ManualClock) -> None:
        with pytest.raises(ZeroDivisionError):
            await task(db, clock, step).run(asyncio.Event())

    run(redis_url, work)


def test_it_runs_when_due_and_stops_when_told(redis_url: str) -> None:
    async def work(db: AsyncDatabase, clock: ManualClock) -> None:
        stopping, ran = asyncio.Event(), 0

        async def step() -> None:
            nonlocal ran
            ran += 1

        running = asyncio.create_task(task(db, clock, step).run(stopping))
        while not ran:  # noqa: ASYNC110  # the step is another task of this loop
            await asyncio.sleep(0.001)
        stopping.set()
        await running
        assert ran == 1

    run(redis_url, work)


def test_a_task_that_is_cut_off_while_it_takes_the_lease_frees_it(
    redis_url: str, raw: Raw, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)

    async def step() -> None:
        raise AssertionError

    async def work(db: AsyncDatabase, clock: ManualClock) -> None:
        await db.run(TaskLease("sync").holder())
        proxy.delay(60)
        attempt = asyncio.create_task(task(db, clock, step).attempt())
        async with asyncio.timeout(10):
            while not raw("EXISTS", "lock:meetup_task:sync"):  # noqa: ASYNC110  # Redis
                await asyncio.sleep(0.001)
        attempt.cancel()
        await asyncio.sleep(0)
        proxy.heal()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        assert not raw("EXISTS", "lock:meetup_task:sync")

    run(proxy.url, work)
