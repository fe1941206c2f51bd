"""Log positions only advance, exactly, with any number of writers in any order."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keywright import connect
from keywright.errors import StoredDataError, ValueRefusedError
from keywright.testing import OpenRun, Raw, Run
from keywright_registry.lsn import advance, format_lsn, parse_lsn, position
from keywright_registry.schema import RepositoryLsn, registry

NAME = b"registry:" + bytes(RepositoryLsn.of("a/b"))
lsns = st.integers(0, 2**64 - 1)


def test_a_position_is_read_back_and_lasts_an_hour(run: Run, raw: Raw) -> None:
    assert run(position("a/b")) is None
    assert run(advance("a/b", parse_lsn("16/B374D848")))
    assert run(position("a/b")) == 0x16_B374D848
    assert raw("GET", NAME) == b"16/B374D848"
    assert 3_590_000 < raw("PTTL", NAME) <= 3_600_000


def test_only_a_higher_position_is_written_and_renews_the_expiry(run: Run, raw: Raw) -> None:
    run(advance("a/b", 100))
    raw("PEXPIRE", NAME, 1000)
    assert not run(advance("a/b", 100))
    assert not run(advance("a/b", 99))
    assert raw("PTTL", NAME) <= 1000
    assert run(advance("a/b", 101))
    assert raw("PTTL", NAME) > 1000


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        ("200000/0", "200000/1"),  # where a double of both halves ends
        ("FFFFFFFF/FFFFFFFE", "FFFFFFFF/FFFFFFFF"),
        ("0/FFFFFFFF", "1/0"),
        ("9/0", "10/0"),  # not by text
        ("1/9", "1/10"),
    ],
)
def test_positions_are_compared_exactly(run: Run, lower: str, higher: str) -> None:
    """The registry compares doubles, which are exact below 2**53 only (docs/resolutions.md#mistake-3)."""
    assert run(advance("a/b", parse_lsn(lower)))
    assert run(advance("a/b", parse_lsn(higher)))
    assert not run(advance("a/b", parse_lsn(lower)))
    assert format_lsn(run(position("a/b")) or 0) == higher


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(lsns | st.integers(2**53 - 3, 2**53 + 3), min_size=1, max_size=8))
def test_the_highest_of_any_wins(redis_url: str, written: list[int]) -> None:
    with connect(redis_url) as redis:
        redis.run(RepositoryLsn.of("a/b").delete())
        advanced = [redis.run(advance("a/b", lsn)) for lsn in written]
        assert redis.run(position("a/b")) == max(written)
        assert advanced == [lsn > max(written[:index], default=-1) for index, lsn in enumerate(written)]


def test_concurrent_writers_leave_the_highest(redis_url: str) -> None:
    written = [2**60 + number for number in range(200)]
    random.Random(7).shuffle(written)
    with connect(redis_url) as redis, ThreadPoolExecutor(10) as writers:
        list(writers.map(lambda lsn: redis.run(advance("a/b", lsn)), written))
        assert redis.run(position("a/b")) == max(written)
        assert redis.run(RepositoryLsn.of("a/b").ttl()) is not None


@pytest.mark.parametrize("rubbish", ["", "rubbish", "1/", "/1", "1/2/3", "x/1", "123456789/0"])
def test_a_malformed_stored_position_is_reported_and_overwritten(run: Run, raw: Raw, rubbish: str) -> None:
    """The registry's script fails, so such a key stays broken (docs/resolutions.md#mistake-3)."""
    raw("SET", NAME, rubbish)
    with pytest.raises(StoredDataError):
        run(position("a/b"))
    assert run(advance("a/b", 1))
    assert run(position("a/b")) == 1


@pytest.mark.parametrize("lsn", [-1, 2**64])
def test_a_number_beyond_64_bits_is_refused(lsn: int) -> None:
    with pytest.raises(ValueRefusedError):
        advance("a/b", lsn)


def test_a_malformed_position_is_refused() -> None:
    with pytest.raises(ValueError, match="log position"):
        parse_lsn("16-B374D848")


def test_a_binding_may_keep_positions_forever(open_run: OpenRun, redis_url: str) -> None:
    run = open_run(redis_url, registry.bind(expiry={RepositoryLsn: None}))
    run(advance("a/b", 1))
    assert run(RepositoryLsn.of("a/b").ttl()) is None
