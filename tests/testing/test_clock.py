"""The manual clock moves only when a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from keywright.errors import UsageError
from keywright.testing import ManualClock


def test_it_stands_still_until_it_is_advanced(manual_clock: ManualClock) -> None:
    before = manual_clock()
    assert manual_clock.now() == before
    assert manual_clock.advance(timedelta(hours=1), seconds=2) == before + timedelta(hours=1, seconds=2)
    assert manual_clock() == before + timedelta(hours=1, seconds=2)


def test_its_three_readings_move_together() -> None:
    clock = ManualClock(datetime(1970, 1, 1, tzinfo=UTC))
    clock.advance(milliseconds=1500)
    assert clock.now_ms() == 1500
    assert clock.monotonic() == 1.5


def test_it_returns_utc_whatever_zone_it_started_in() -> None:
    clock = ManualClock(datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))))
    assert clock.now() == datetime(2024, 1, 1, tzinfo=UTC)
    assert clock.now().tzinfo is UTC


def test_it_does_not_go_backwards(manual_clock: ManualClock) -> None:
    with pytest.raises(UsageError, match="cannot advance"):
        manual_clock.advance(seconds=-1)


def test_it_needs_a_time_zone() -> None:
    with pytest.raises(UsageError, match="aware datetime"):
        ManualClock(datetime(2024, 1, 1))
