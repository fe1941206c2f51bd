"""The pace of walks: rests in proportion to work, full speed, rates. No time passes here."""

from __future__ import annotations

import asyncio
from itertools import repeat

import pytest

from keywright.tools.pace import (
    BEFORE_RESTS_SECONDS,
    CATCH_UP_SECONDS,
    FULL_SPEED,
    GENTLE,
    GENTLE_PAGE,
    GENTLE_SHARE,
    LONGEST_REST_SECONDS,
    SMALLEST_PAGE,
    Clock,
    Pace,
    Pacemaker,
)

BATCH_SECONDS = 0.005


class StillClock(Clock):
    """A clock that only sleep and work move."""

    def __init__(self) -> None:
        self.time = self.processor = self.slept = 0.0

    def now(self) -> float:
        return self.time

    def worked(self) -> float:
        return self.processor

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        self.slept += seconds

    def work(self, seconds: float) -> None:
        self.time += seconds
        self.processor += seconds


def walked(pace: Pace, pages: int, *, work: float = 0.0, waiting: float = 0.0, keys: int = 100) -> StillClock:
    """Return the clock after a walk of pages, each with some work and some waiting for replies."""
    clock = StillClock()
    pacemaker = Pacemaker(pace, clock)

    async def walk() -> None:
        for _ in repeat(None, pages):
            clock.work(work)
            clock.time += waiting
            await pacemaker.wait(keys)

    asyncio.run(walk())
    return clock


def test_a_gentle_walk_works_for_its_share_of_the_time() -> None:
    clock = walked(GENTLE, 10_000, work=BATCH_SECONDS)
    assert clock.processor / clock.time == pytest.approx(GENTLE_SHARE, rel=0.01)


def test_no_rest_is_long() -> None:
    clock = walked(GENTLE, 101, work=BEFORE_RESTS_SECONDS)
    assert clock.slept == pytest.approx(100 * LONGEST_REST_SECONDS)


def test_a_walk_over_few_keys_does_not_rest() -> None:
    assert walked(GENTLE, 9, work=BEFORE_RESTS_SECONDS / 10).slept == 0


def test_full_speed_never_rests() -> None:
    assert walked(FULL_SPEED, 1000, work=1.0).slept == 0


def test_waiting_for_a_distant_server_is_rest() -> None:
    waiting = BEFORE_RESTS_SECONDS / GENTLE_SHARE
    assert walked(GENTLE, 100, work=BEFORE_RESTS_SECONDS, waiting=waiting).slept == 0


def test_work_of_others_during_a_rest_does_not_prolong_the_next_one() -> None:
    class SharedClock(StillClock):
        async def sleep(self, seconds: float) -> None:
            self.processor += seconds  # the thread serves others meanwhile
            await super().sleep(seconds)

    clock = SharedClock()
    pacemaker = Pacemaker(GENTLE, clock)
    rests = []
    for work in (BEFORE_RESTS_SECONDS, *[BATCH_SECONDS] * 9):
        clock.work(work)
        before = clock.slept
        asyncio.run(pacemaker.wait(1))
        rests.append(clock.slept - before)
    assert rests[0] == 0
    assert rests[1:] == pytest.approx([BATCH_SECONDS * (1 / GENTLE_SHARE - 1)] * 9)


@pytest.mark.parametrize("pace", [Pace(1000), Pace(1000, full_speed=True)])
def test_a_rate_is_held_at_either_pace(pace: Pace) -> None:
    assert 100 * 100 / walked(pace, 100).time == pytest.approx(1000)


def test_a_rate_that_is_lower_than_the_rests_allow_counts_them() -> None:
    slow = Pace(1000)
    work = GENTLE_SHARE * 100 / 1000 / 2
    assert walked(slow, 1000, work=work).time == pytest.approx(walked(slow, 1000).time)


def test_time_that_was_lost_is_not_made_up_for() -> None:
    clock = StillClock()
    pacemaker = Pacemaker(Pace(1000, full_speed=True), clock)
    clock.time = 60.0  # a server that hung

    async def walk() -> None:
        for _ in range(10):
            await pacemaker.wait(100)

    asyncio.run(walk())
    assert clock.slept == pytest.approx(1.0 - CATCH_UP_SECONDS)


def test_pages_are_small_and_one_at_a_time_unless_at_full_speed() -> None:
    assert (GENTLE.page(500), GENTLE.together(3)) == (GENTLE_PAGE, 1)
    assert (FULL_SPEED.page(500), FULL_SPEED.together(3)) == (500, 3)
    assert Pace(1000, full_speed=True).page(500) == 20
    assert Pace(100, full_speed=True).page(500) == SMALLEST_PAGE
