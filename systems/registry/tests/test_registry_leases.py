"""A lease has one holder at a time, and only the holder renews or releases it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import msgspec

from keywright import connect, new_token
from keywright.testing import Raw, Run
from keywright_registry.leases import RENAME_HOLD, RenameLease, blocked, project
from keywright_registry.schema import MetricsLock, RepositoryLease

LEASE = RenameLease("group/new")
NAME = b"registry:" + bytes(RepositoryLease.of("group/new"))
SECONDS = timedelta(seconds=5)


def test_a_rename_lease_has_the_bytes_that_go_reads(run: Run, raw: Raw) -> None:
    assert run(LEASE.acquire("group/old"))
    assert msgspec.msgpack.decode(raw("GET", NAME)) == {
        "GrantedTo": "group/old",
        "Path": "group/new",
        "Type": "rename_lease",
    }
    assert raw("GET", NAME) == (
        b"\x83\xa9GrantedTo\xa9group/old\xa4Path\xa9group/new\xa4Type\xacrename_lease"
    )
    assert 59_000 < raw("PTTL", NAME) <= 60_000


def test_the_same_grantee_renews_and_another_is_refused(run: Run, raw: Raw) -> None:
    assert run(LEASE.acquire("group/old", SECONDS))
    assert not run(LEASE.acquire("group/other"))
    assert run(LEASE.holder()) == "group/old"
    assert run(LEASE.acquire("group/old", RENAME_HOLD))
    assert raw("PTTL", NAME) > 5000
    assert run(LEASE.extend("group/old", SECONDS))
    assert not run(LEASE.extend("group/other"))
    assert raw("PTTL", NAME) <= 5000


def test_of_two_grantees_one_wins(redis_url: str) -> None:
    """In the registry both may win (docs/resolutions.md#mistake-7)."""
    with connect(redis_url) as redis, ThreadPoolExecutor(8) as grantees:
        for turn in range(20):
            lease = RenameLease(f"group/{turn}")
            won = list(grantees.map(lambda n, lease=lease: redis.run(lease.acquire(f"old/{n}")), range(8)))
            assert sum(won) == 1
            assert redis.run(lease.holder()) == f"old/{won.index(True)}"


def test_a_lease_is_released_only_by_its_holder(run: Run) -> None:
    """The registry deletes the lease of any holder (docs/resolutions.md#mistake-7)."""
    run(LEASE.acquire("group/old"))
    assert not run(LEASE.release("group/other"))
    assert run(LEASE.holder()) == "group/old"
    assert run(LEASE.release("group/old"))
    assert run(LEASE.holder()) is None


def test_the_remaining_time_is_the_holders_only_in_one_transaction(run: Run, raw: Raw) -> None:
    assert run(LEASE.remaining("group/old")) == timedelta(0)
    run(LEASE.acquire("group/old", SECONDS))
    assert timedelta(seconds=4) < run(LEASE.remaining("group/old")) <= SECONDS
    assert run(LEASE.remaining("group/other")) == timedelta(0)
    assert raw.calls_of("exec") > 0


def test_a_project_that_is_renamed_blocks_itself_and_all_below(run: Run) -> None:
    ours, theirs = new_token(), new_token()
    assert run(project("group/app").acquire(ours, SECONDS))
    assert not run(project("group/app").acquire(theirs, SECONDS))
    paths = ("group/app", "group/app/api/v1", "group", "group/application", "other")
    assert [run(blocked(path)) for path in paths] == [True, True, False, False, False]
    assert not run(project("group/app").release(theirs))
    assert run(project("group/app").release(ours))
    assert not run(blocked("group/app"))


def test_one_instance_collects_a_gauge(run: Run) -> None:
    lock = MetricsLock("row_count_lock")
    assert run(lock.acquire("one", timedelta(seconds=30)))
    assert not run(lock.acquire("two", timedelta(seconds=30)))
    assert run(MetricsLock("bbm_progress_lock").acquire("two", timedelta(seconds=30)))
