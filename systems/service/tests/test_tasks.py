"""Periodic tasks: when they are due, what they survive, one process at a time, and a clean end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from keywright import AsyncDatabase, Id, Keyspace, Lease, aconnect
from keywright.errors import EngineError
from keywright.testing import ManualClock, Proxy
from keywright.testing.runs import Raw
from keywright_service.backoff import Backoff
from keywright_service.errors import PlatformRefusedError, PlatformTroubleError
from keywright_service.process_lock import ProcessLock
from keywright_service.tasks import PeriodicTask, Recovery, TaskHealth, daily, next_hour, running

pytestmark = pytest.mark.anyio

PERIOD, RETRY, LIMIT = timedelta(minutes=15), timedelta(minutes=5), timedelta(seconds=360)
HOLD = LIMIT + timedelta(seconds=30)
AS_BEFORE = Recovery(Backoff.constant(RETRY.total_seconds()))

space = Keyspace("kit-tests", "Leases of the tasks in these tests.")


class TaskLease(Lease, key="lock:task:<task>", space=space):
    """The process that runs a task."""

    task: Id


@pytest.fixture
async def db(redis_url: str) -> AsyncIterator[AsyncDatabase]:
    async with aconnect(redis_url) as database:
        yield database


def task(clock: ManualClock, work: Any, db: AsyncDatabase | None = None, **how: Any) -> PeriodicTask:
    settings: dict[str, Any] = {"schedule": PERIOD, "recovery": AS_BEFORE, "limit": LIMIT} | how
    if db is not None:
        settings["lock"] = ProcessLock(db, TaskLease("sync"), HOLD)
    return PeriodicTask("sync", work, clock=clock, **settings)


class Steps:
    """Work that has these outcomes, one a run: an exception is raised, anything else returned."""

    def __init__(self, *outcomes: object) -> None:
        self._outcomes = list(outcomes)
        self.runs = 0

    async def __call__(self) -> Any:
        self.runs += 1
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


async def until(condition: Callable[[], object]) -> None:
    """Let other tasks of this event loop go on until something is true."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  # what is waited for is another task, or Redis
            await asyncio.sleep(0.001)


async def test_success_makes_it_due_after_a_period_and_failure_after_a_pause() -> None:
    clock = ManualClock()
    sync = task(clock, Steps(None, PlatformTroubleError("Meetup", "events", "status 503"), None))
    assert sync.due == clock()
    assert await sync.attempt()
    assert sync.due == clock() + PERIOD
    clock.advance(PERIOD)
    assert not await sync.attempt()
    assert sync.due == clock() + RETRY
    assert "status 503" in str(sync.health.trouble)
    assert not sync.health.ok
    clock.advance(RETRY)
    assert await sync.attempt()
    assert sync.health == TaskHealth("sync", clock() + PERIOD, clock())


@pytest.mark.parametrize("again", [datetime(2030, 5, 6, tzinfo=UTC), timedelta(seconds=7), timedelta()])
async def test_the_work_may_say_when_it_is_due_again(again: datetime | timedelta) -> None:
    clock = ManualClock()
    sync = task(clock, Steps(again))
    assert await sync.attempt()
    assert sync.due == (again if isinstance(again, datetime) else clock() + again)


@pytest.mark.parametrize(
    ("now", "due"),
    [("2024-01-01T18:29", "2024-01-01T18:30"), ("2024-01-01T18:30", "2024-01-02T18:30")],
)
async def test_a_daily_task_is_due_at_the_next_such_time(now: str, due: str) -> None:
    clock = ManualClock(datetime.fromisoformat(f"{now}+00:00"))
    sync = task(clock, Steps(None), schedule=daily(time(18, 30)))
    assert await sync.attempt()
    assert sync.due == datetime.fromisoformat(f"{due}+00:00")


async def test_an_hourly_task_is_due_at_the_full_hour() -> None:
    clock = ManualClock(datetime(2024, 1, 1, 10, 59, 59, tzinfo=UTC))
    sync = task(clock, Steps(None), schedule=next_hour)
    assert await sync.attempt()
    assert sync.due == datetime(2024, 1, 1, 11, tzinfo=UTC)


async def test_without_a_schedule_it_ends_with_the_first_success() -> None:
    work = Steps(EngineError("away"), EngineError("away"), None)
    once = task(ManualClock(), work, schedule=None, recovery=Recovery(Backoff.constant(0)))
    async with asyncio.timeout(10):
        await once.run(asyncio.Event())
    assert work.runs == 3


async def test_pauses_grow_and_a_refusal_may_have_longer_ones() -> None:
    clock, pauses = ManualClock(), []
    trouble = PlatformTroubleError("Reddit", "the log", "status 503")
    refusal = PlatformRefusedError("Reddit", "a post", "it is forbidden", "Approve the account.")
    recovery = Recovery(Backoff(1.0, 4.0, jitter=0.0), refused=Backoff(1.0, 600.0, jitter=0.0))
    feed = task(clock, Steps(*[trouble] * 4, *[refusal] * 2), recovery=recovery)
    for _ in range(6):
        await feed.attempt()
        pauses.append((feed.due - clock()).total_seconds())
    assert pauses == [1, 2, 4, 4, 16, 32]


async def test_a_rate_limit_is_waited_for_as_long_as_the_platform_says() -> None:
    clock = ManualClock()
    limited = PlatformTroubleError("Reddit", "the log", "a rate limit", retry_after=100.0)
    feed = task(clock, Steps(limited), recovery=Recovery(Backoff(1.0, 60.0)))
    await feed.attempt()
    assert timedelta(seconds=100) <= feed.due - clock() <= timedelta(seconds=101)


@pytest.mark.parametrize(("every", "logged"), [(False, 1), (True, 3)])
async def test_an_outage_is_logged_when_it_begins_and_when_it_ends(
    every: bool, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "keywright.service")
    sync = task(ManualClock(), Steps(*[EngineError("away")] * 3, None), recovery=Recovery(log_every=every))
    for _ in range(4):
        await sync.attempt()
    assert caplog.messages == ["sync: away"] * logged + ["sync: works again, after 3 failures"]


async def test_of_several_processes_one_is_at_it(db: AsyncDatabase) -> None:
    running, most = 0, 0

    async def step() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1

    clock = ManualClock()
    tasks = [task(clock, step, db) for _ in range(4)]
    done = await asyncio.gather(*(each.attempt() for each in tasks))
    assert sorted(done) == [False, False, False, True]
    assert most == 1
    busy = [each for each, did in zip(tasks, done, strict=True) if not did]
    assert all(clock() < each.due < clock() + PERIOD and each.health.trouble is None for each in busy)
    assert await busy[0].attempt()


async def test_work_that_takes_too_long_is_cut_off_and_frees_the_lease(db: AsyncDatabase) -> None:
    async def step() -> None:
        await asyncio.Event().wait()

    sync = task(ManualClock(), step, db, limit=timedelta(seconds=0.05))
    assert not await sync.attempt()
    assert "longer than" in str(sync.health.trouble)
    assert await db.run(TaskLease("sync").holder()) is None


async def test_the_lease_is_held_longer_than_the_work_may_take(db: AsyncDatabase) -> None:
    async def step() -> None:
        assert await db.run(TaskLease("sync").holder()) is not None
        left = await db.run(TaskLease("sync").ttl())
        assert left is not None
        assert left > LIMIT

    assert await task(ManualClock(), step, db).attempt()


async def test_a_lock_that_is_kept_stays_with_its_process_between_runs(db: AsyncDatabase) -> None:
    ours, other = (ProcessLock(db, TaskLease("sync"), HOLD, keep=True) for _ in range(2))
    async with ours.held() as held:
        assert held
    async with other.held() as held:
        assert not held
    async with ours.held() as held:
        assert held
    assert (ours.ours, other.ours) == (True, False)
    await other.release()
    assert await db.run(TaskLease("sync").holder()) is not None
    await ours.release()
    async with other.held() as held:
        assert held


async def test_a_bug_ends_the_task_instead_of_being_passed_over() -> None:
    with pytest.raises(ZeroDivisionError):
        await task(ManualClock(), Steps(ZeroDivisionError())).run(asyncio.Event())


async def test_a_task_survives_only_what_it_is_declared_to_survive() -> None:
    trouble, clock = PlatformTroubleError("Reddit", "me", "status 503"), ManualClock()
    assert not await task(clock, Steps(trouble)).attempt()
    strict = task(clock, Steps(trouble), recovery=Recovery(survives=(EngineError,)))
    with pytest.raises(PlatformTroubleError):
        await strict.attempt()


async def test_it_runs_when_due_and_stops_when_told() -> None:
    stopping, work = asyncio.Event(), Steps(None)
    running = asyncio.create_task(task(ManualClock(), work).run(stopping))
    await until(lambda: work.runs)
    stopping.set()
    await running
    assert work.runs == 1


async def test_a_clock_that_is_set_back_makes_no_pause_longer() -> None:
    clock, stopping, back = ManualClock(), asyncio.Event(), timedelta()
    work = Steps(timedelta(milliseconds=20), None)
    sync = PeriodicTask("sync", work, PERIOD, clock=lambda: clock() - back)
    running = asyncio.create_task(sync.run(stopping))
    await until(lambda: sync.health.last)
    back = timedelta(days=1)
    await until(lambda: work.runs == 2)
    stopping.set()
    await running


async def test_a_task_that_is_cut_off_while_it_takes_the_lease_frees_it(
    redis_url: str, raw: Raw, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)
    async with aconnect(proxy.url) as db:
        await db.run(TaskLease("sync").holder())
        proxy.delay(60)
        attempt = asyncio.create_task(task(ManualClock(), Steps(), db).attempt())
        await until(lambda: raw("EXISTS", "lock:task:sync"))
        attempt.cancel()
        await asyncio.sleep(0)
        proxy.heal()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        assert not raw("EXISTS", "lock:task:sync")


class Endless:
    """Runs until it is stopped, or without end if it ignores the stop."""

    name = "endless"

    def __init__(self, *, deaf: bool = False) -> None:
        self.ended = False
        self._deaf = deaf

    async def run(self, stopping: asyncio.Event) -> None:
        await (asyncio.Event() if self._deaf else stopping).wait()
        self.ended = True


async def test_tasks_run_until_the_end_of_the_block_and_finish_then() -> None:
    failed = asyncio.Event()
    one, other = Endless(), Endless()
    async with running([one, other], on_failure=failed.set):
        await asyncio.sleep(0)
        assert not one.ended
    assert (one.ended, other.ended, failed.is_set()) == (True, True, False)


async def test_a_task_that_does_not_finish_is_cut_off_and_named(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "keywright.service")
    deaf = Endless(deaf=True)
    async with running([deaf], on_failure=lambda: None, grace=0.01):
        pass
    assert not deaf.ended
    assert caplog.messages == ["endless did not finish in time"]


async def test_the_error_of_a_task_is_reported_at_once_and_raised_at_the_end() -> None:
    failed, other = asyncio.Event(), Endless()
    failing = task(ManualClock(), Steps(ZeroDivisionError()))

    async def block() -> None:
        async with running([failing, other], on_failure=failed.set), asyncio.timeout(10):
            await failed.wait()
            assert not other.ended

    with pytest.raises(ZeroDivisionError):
        await block()
    assert other.ended
