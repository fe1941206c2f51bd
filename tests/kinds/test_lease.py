"""Leases: one holder at a time, and no holder harms the next."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from keywright import Counter, Database, Id, Keyspace, Lease, Retry, Settings, connect, expires_in, new_token
from keywright.errors import DeclarationError, EngineError
from keywright.operations import commit
from keywright.testing import Proxy, wait_until
from racing import race

space = Keyspace("leaders", "Who does what alone.")
LONG = timedelta(minutes=5)
INSTANT = timedelta(milliseconds=1)


class Leader(Lease, key="leader:{<task>}", space=space):
    """Who does a task."""

    task: Id


class Steps(Counter, key="steps:{<task>}", space=space):
    """How far a task is."""

    task: Id


def test_a_lease_names_its_holder_until_it_is_released(db: Database) -> None:
    lease = Leader("sweep")
    assert db.run(lease.holder()) is None
    assert db.run(lease.acquire("a", LONG))
    assert db.run(lease.holder()) == "a"
    assert db.run(lease.release("a"))
    assert db.run(lease.holder()) is None


def test_of_sixteen_that_race_one_acquires(db: Database) -> None:
    tokens = [new_token() for _ in range(16)]

    def acquire_all(number: int) -> list[bool]:
        return [db.run(Leader(f"t{task}").acquire(tokens[number], LONG)) for task in range(20)]

    won = race(16, acquire_all)
    for task in range(20):
        winners = [token for token, mine in zip(tokens, won, strict=True) if mine[task]]
        assert winners == [db.run(Leader(f"t{task}").holder())]


def test_acquiring_again_renews_the_hold(db: Database) -> None:
    lease = Leader("sweep")
    db.run(lease.acquire("a", timedelta(seconds=10)))
    assert db.run(lease.acquire("a", LONG))
    assert (db.run(lease.ttl()) or INSTANT) > timedelta(seconds=60)


def test_others_cannot_acquire_extend_or_release(db: Database) -> None:
    lease = Leader("sweep")
    db.run(lease.acquire("a", LONG))
    assert not db.run(lease.acquire("b", LONG))
    assert not db.run(lease.extend("b", LONG))
    assert not db.run(lease.release("b"))
    assert db.run(lease.holder()) == "a"


def test_a_hold_that_ran_out_leaves_the_next_one_alone(db: Database) -> None:
    lease = Leader("sweep")
    db.run(lease.acquire("a", INSTANT))
    wait_until(lambda: db.run(lease.acquire("b", LONG)), "the hold runs out")
    assert not db.run(lease.extend("a", LONG))
    assert not db.run(lease.release("a"))
    assert not db.run(lease.acquire("a", LONG))
    assert db.run(lease.holder()) == "b"


def test_a_lease_that_ran_out_cannot_be_extended(db: Database) -> None:
    lease = Leader("sweep")
    db.run(lease.acquire("a", INSTANT))
    wait_until(lambda: db.run(lease.holder()) is None, "the hold runs out")
    assert not db.run(lease.extend("a", LONG))
    assert db.run(lease.holder()) is None


def test_a_holder_that_is_cut_off_loses_the_lease(redis_url: str, make_proxy: Callable[[str], Proxy]) -> None:
    proxy, lease = make_proxy(redis_url), Leader("sweep")
    with (
        connect(redis_url) as other,
        connect(proxy.url, settings=Settings(retry=Retry(attempts=1))) as dying,
    ):
        assert dying.run(lease.acquire("a", timedelta(milliseconds=200)))
        proxy.refuse()
        proxy.cut()
        with pytest.raises(EngineError):
            dying.run(lease.extend("a", LONG))
        wait_until(lambda: other.run(lease.acquire("b", LONG)), "the hold runs out")


def test_a_lost_reply_does_not_lose_the_lease(redis_url: str, make_proxy: Callable[[str], Proxy]) -> None:
    proxy, lease = make_proxy(redis_url), Leader("sweep")
    with connect(proxy.url) as db:
        for step in (lease.acquire("a", LONG), lease.extend("a", LONG)):
            proxy.cut_before_reply()
            assert db.run(step)


def test_only_the_holder_writes_where_a_commit_asks_for_it(db: Database) -> None:
    lease = Leader("sweep")

    def work(number: int) -> int:
        """Leases that run out all the time; what counts is that nobody writes without one."""
        token, written = f"t{number}", 0
        for _ in range(25):
            db.run(lease.acquire(token, timedelta(milliseconds=2)))
            done = db.run(commit("step", [lease.held_by(token)], [Steps("sweep").add()]))
            written += bool(done)
        return written

    written = sum(race(16, work))
    assert 0 < written == db.run(Steps("sweep").get())


def test_a_lease_has_no_expiry_of_its_own() -> None:
    with pytest.raises(DeclarationError, match="as long as it is held"):

        class Odd(Lease, key="odd", space=Keyspace("odd", "…"), expiry=expires_in(LONG)):
            """Never made."""
