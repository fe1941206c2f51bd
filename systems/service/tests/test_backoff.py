"""Back-off: pauses that grow to a limit, with jitter; and retrying until it works."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright.errors import EngineError, UsageError
from keywright_service.backoff import Backoff, retry

pytestmark = pytest.mark.anyio


class Flaky:
    """Fails so many times, then works; remembers the pauses."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls = 0
        self.pauses: list[float] = []

    async def work(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise EngineError(f"away {self.calls}")
        return "done"

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def test_pauses_double_up_to_the_longest() -> None:
    backoff = Backoff(1.0, 10.0, jitter=0.0)
    assert [backoff.pause(failures) for failures in range(1, 7)] == [1, 2, 4, 8, 10, 10]


def test_a_constant_pause_stays_the_same() -> None:
    assert {Backoff.constant(900).pause(failures) for failures in (1, 2, 50)} == {900}


@given(st.integers(1, 10**6), st.floats(0.0, 1.0))
def test_jitter_takes_away_at_most_its_part(failures: int, chance: float) -> None:
    full = Backoff(0.25, 60.0, jitter=0.0).pause(failures)
    assert full / 2 <= Backoff(0.25, 60.0).pause(failures, lambda: chance) <= full <= 60.0


async def test_it_is_tried_until_it_works_and_logged_twice(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "keywright.service")
    flaky = Flaky(3)
    backoff = Backoff(1.0, 2.0, jitter=0.0)
    found = await retry(flaky.work, "write it", on=EngineError, backoff=backoff, sleep=flaky.sleep)
    assert (found, flaky.pauses) == ("done", [1.0, 2.0, 2.0])
    assert caplog.messages == [
        "cannot write it, trying on: away 1",
        "could write it again, after 3 failures",
    ]


async def test_after_the_last_attempt_the_error_is_raised() -> None:
    flaky = Flaky(5)
    with pytest.raises(EngineError, match="away 3"):
        await retry(flaky.work, "write it", on=EngineError, attempts=3, sleep=flaky.sleep)
    assert len(flaky.pauses) == 2


async def test_an_error_that_is_not_named_is_raised_at_once() -> None:
    flaky = Flaky(1)
    with pytest.raises(EngineError):
        await retry(flaky.work, "write it", on=(UsageError, OSError), sleep=flaky.sleep)
    assert flaky.pauses == []
