"""A limiter allows its rate, and a client that keeps asking is not refused forever."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from datetime import timedelta

import pytest

from keywright import Database, connect
from keywright.errors import DeclarationError, UsageError
from keywright.testing import ManualClock, Raw, Run
from keywright_registry.rate_limit import RateLimiter
from keywright_registry.schema import RateLimit

ADDRESS = "192.0.2.7"
MINUTE = timedelta(minutes=1)
ONE_A_MINUTE = RateLimiter(1, MINUTE, 1)


@pytest.fixture
def timed(redis_url: str, manual_clock: ManualClock) -> Iterator[Database]:
    with connect(redis_url, clock=manual_clock) as redis:
        yield redis


def test_a_client_that_asks_every_ten_seconds_passes_once_a_minute(
    timed: Database, manual_clock: ManualClock
) -> None:
    """The registry refuses it 13 times out of 13 (docs/resolutions.md#mistake-1)."""
    passed = []
    for _ in range(25):
        passed.append(timed.run(ONE_A_MINUTE.take(ADDRESS)).allowed)
        manual_clock.advance(timedelta(seconds=10))
    assert passed == [index % 6 == 0 for index in range(25)]


def test_a_refusal_says_exactly_when_to_come_back(timed: Database, manual_clock: ManualClock) -> None:
    timed.run(ONE_A_MINUTE.take(ADDRESS))
    manual_clock.advance(timedelta(seconds=10.5))
    refused = timed.run(ONE_A_MINUTE.take(ADDRESS))
    assert not refused.allowed
    assert abs(refused.retry_after - timedelta(seconds=49.5)) <= timedelta(milliseconds=1)
    manual_clock.advance(refused.retry_after + timedelta(milliseconds=1))
    assert timed.run(ONE_A_MINUTE.take(ADDRESS)).allowed


def test_a_burst_passes_and_then_the_rate(timed: Database, manual_clock: ManualClock) -> None:
    # Long enough that the bucket's own expiry, which is in the server's time, cannot pass meanwhile.
    limiter = RateLimiter(10, timedelta(hours=1), 5)
    verdicts = [timed.run(limiter.take(ADDRESS)) for _ in range(7)]
    assert [each.allowed for each in verdicts] == [True] * 5 + [False] * 2
    assert [each.remaining for each in verdicts] == [4, 3, 2, 1, 0, 0, 0]
    assert verdicts[0].retry_after == timedelta(0)
    assert verdicts[0].reset_after == timedelta(minutes=6)
    passed = 0
    for _ in range(100):
        manual_clock.advance(timedelta(seconds=133.2))
        passed += timed.run(limiter.take(ADDRESS)).allowed
    assert 36 <= passed <= 37


def test_the_time_is_the_servers_and_counts_in_fractions(run: Run, raw: Raw) -> None:
    limiter = RateLimiter(1, timedelta(hours=1), 1)
    assert run(limiter.take(ADDRESS)).allowed
    refused = run(limiter.take(ADDRESS))
    assert not refused.allowed
    assert timedelta(0) < refused.retry_after <= timedelta(hours=1)
    bucket = run(RateLimit(base64.b64encode(ADDRESS.encode()).decode()).get())
    assert bucket is not None
    assert bucket.tokens == 0
    seconds, microseconds = raw("TIME")
    assert 0 <= seconds + microseconds / 1_000_000 - bucket.last_refill < 3600
    assert bucket.last_refill % 1  # one in a million is a whole second


def test_a_clock_that_goes_back_neither_gives_nor_takes(
    redis_url: str, timed: Database, manual_clock: ManualClock
) -> None:
    limiter = RateLimiter(1, MINUTE, 2)
    timed.run(limiter.take(ADDRESS))
    with connect(redis_url, clock=ManualClock(manual_clock() - timedelta(hours=1))) as earlier:
        assert earlier.run(limiter.take(ADDRESS)).allowed
        assert not earlier.run(limiter.take(ADDRESS)).allowed
    assert not timed.run(limiter.take(ADDRESS)).allowed


def test_a_client_that_comes_exactly_at_its_rate_always_passes(
    timed: Database, manual_clock: ManualClock
) -> None:
    limiter = RateLimiter(3, timedelta(seconds=1), 1)
    for number in range(200):
        assert timed.run(limiter.take(ADDRESS)).allowed, number
        manual_clock.advance(timedelta(microseconds=333_334))


def test_a_bucket_expires_when_it_is_full(run: Run, raw: Raw) -> None:
    run(RateLimiter(2, MINUTE, 4).take(ADDRESS))
    (name,) = raw.names()
    assert name == b"registry:api:{rate-limit:ip:MTkyLjAuMi43}"
    assert 29_000 < raw("PTTL", name) <= 30_000


def test_two_limiters_do_not_share_a_bucket(run: Run) -> None:
    """In the registry they do: its key lacks the name of the limiter (docs/resolutions.md#mistake-2)."""
    default, pushes = RateLimiter(1, MINUTE, 1), RateLimiter(1, MINUTE, 1, "push")
    assert run(default.take(ADDRESS)).allowed
    assert run(pushes.take(ADDRESS)).allowed
    assert not run(default.take(ADDRESS)).allowed
    assert not run(pushes.take(ADDRESS)).allowed
    assert bytes(pushes.key(ADDRESS)) == bytes(default.key(ADDRESS)) + b":push"


def test_a_bucket_of_the_registry_is_used_as_it_is(run: Run, raw: Raw) -> None:
    name = b"registry:" + bytes(ONE_A_MINUTE.key(ADDRESS))
    raw("HSET", name, "tokens", "0", "last_refill", "99999999999")
    assert not run(ONE_A_MINUTE.take(ADDRESS)).allowed


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2::9", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
    ],
)
def test_a_client_is_its_address_or_its_network(address: str, client: str) -> None:
    assert ONE_A_MINUTE.key(address).address == base64.b64encode(client.encode()).decode()


@pytest.mark.parametrize("address", ["", "localhost", "192.0.2.7:80"])
def test_an_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="not an IP address"):
        ONE_A_MINUTE.take(address)


@pytest.mark.parametrize(
    ("rate", "period", "burst"),
    [
        *((rate, MINUTE, 1) for rate in (0, -1, math.nan, math.inf)),
        (1, timedelta(0), 1),
        (1, MINUTE, 0),
    ],
)
def test_an_invalid_limiter_is_refused(rate: float, period: timedelta, burst: int) -> None:
    with pytest.raises(DeclarationError, match="is not a rate limit"):
        RateLimiter(rate, period, burst)
