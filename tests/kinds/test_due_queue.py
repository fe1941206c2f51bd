"""Due queues: a due member is claimed by one worker, and comes back when that one dies."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated

import pytest

from keywright import Claimed, Database, DueQueue, Id, Keyspace, Sealed, SnowflakeId, connect, expires_in
from keywright.errors import DeclarationError, OutcomeUnknownError, StoredDataError, UsageError
from keywright.keyspace.codecs import Text
from keywright.testing import ManualClock, Proxy, RedisServer
from racing import race

space = Keyspace("chores", "What is to be done when.")
HOLD = timedelta(seconds=30)
HOUR = timedelta(hours=1)


class Chores(DueQueue[Id], key="chores", space=space):
    """Chores by the time they are due."""


class Checks(DueQueue[SnowflakeId], key="checks:<guild>", space=space):
    """Users to look at again."""

    guild: Id


@pytest.fixture
def timed(url: str, manual_clock: ManualClock) -> Iterator[Database]:
    with connect(url, clock=manual_clock) as database:
        yield database


def names(claimed: list[Claimed[str]]) -> list[str]:
    return [each.member for each in claimed]


def test_due_members_are_claimed_longest_due_first(timed: Database, manual_clock: ManualClock) -> None:
    now, queue = manual_clock(), Chores()
    timed.run(queue.schedule_many({"late": now - HOUR, "now": now, "early": now + HOUR}))
    assert timed.run(queue.due_count()) == 2
    assert names(timed.run(queue.claim_due(10, HOLD))) == ["late", "now"]
    assert timed.run(queue.due_count()) == 0


def test_a_claim_takes_no_more_than_its_limit(timed: Database, manual_clock: ManualClock) -> None:
    timed.run(Chores().schedule_many({f"c{i}": manual_clock() for i in range(5)}))
    assert [len(timed.run(Chores().claim_due(2, HOLD))) for _ in range(4)] == [2, 2, 1, 0]


def test_a_claim_of_thousands_moves_them_all(timed: Database, manual_clock: ManualClock) -> None:
    timed.run(Chores().schedule_many({f"c{i}": manual_clock() for i in range(10_001)}))
    assert len(timed.run(Chores().claim_due(20_000, HOLD))) == 10_001
    assert timed.run(Chores().due_count()) == 0


def test_snowflakes_come_back_exactly(timed: Database, manual_clock: ManualClock) -> None:
    users = {SnowflakeId(2**53 + 1), SnowflakeId(2**64 - 1)}
    timed.run(Checks("g1").schedule_many(dict.fromkeys(users, manual_clock())))
    assert {each.member for each in timed.run(Checks("g1").claim_due(10, HOLD))} == users


def test_unfinished_members_come_back_when_the_hold_ends(timed: Database, manual_clock: ManualClock) -> None:
    timed.run(Chores().schedule("wash", manual_clock()))
    (first,) = timed.run(Chores().claim_due(10, HOLD))
    assert first.until == manual_clock() + HOLD
    manual_clock.advance(HOLD - timedelta(milliseconds=1))
    assert timed.run(Chores().claim_due(10, HOLD)) == []
    manual_clock.advance(milliseconds=1)
    assert names(timed.run(Chores().claim_due(10, HOLD))) == ["wash"]


def test_a_finished_member_is_gone(timed: Database, manual_clock: ManualClock) -> None:
    timed.run(Chores().schedule("wash", manual_clock()))
    (claimed,) = timed.run(Chores().claim_due(10, HOLD))
    assert timed.run(Chores().finish(claimed))
    assert not timed.run(Chores().finish(claimed))
    assert timed.run(Chores().size()) == 0


def test_a_rescheduled_member_is_due_then(timed: Database, manual_clock: ManualClock) -> None:
    timed.run(Chores().schedule("wash", manual_clock()))
    (claimed,) = timed.run(Chores().claim_due(10, HOLD))
    assert timed.run(Chores().reschedule(claimed, manual_clock() + HOUR))
    assert timed.run(Chores().next_due()) == manual_clock() + HOUR
    manual_clock.advance(HOUR)
    assert names(timed.run(Chores().claim_due(10, HOLD))) == ["wash"]


def test_a_worker_that_needs_longer_moves_the_end_of_its_hold(
    timed: Database, manual_clock: ManualClock
) -> None:
    timed.run(Chores().schedule("wash", manual_clock()))
    (claimed,) = timed.run(Chores().claim_due(10, HOLD))
    longer = Claimed(claimed.member, claimed.until + HOLD)
    assert timed.run(Chores().reschedule(claimed, longer.until))
    manual_clock.advance(HOLD)
    assert timed.run(Chores().claim_due(10, HOLD)) == []
    assert timed.run(Chores().finish(longer))


def test_a_claim_that_ran_out_cannot_end_the_next_one(timed: Database, manual_clock: ManualClock) -> None:
    timed.run(Chores().schedule("wash", manual_clock()))
    (slow,) = timed.run(Chores().claim_due(10, HOLD))
    manual_clock.advance(HOLD)
    (quick,) = timed.run(Chores().claim_due(10, HOLD))
    assert not timed.run(Chores().finish(slow))
    assert not timed.run(Chores().reschedule(slow, manual_clock()))
    assert timed.run(Chores().due_count()) == 0
    assert timed.run(Chores().finish(quick))


def test_a_member_scheduled_during_a_claim_is_not_lost(timed: Database, manual_clock: ManualClock) -> None:
    timed.run(Chores().schedule("wash", manual_clock()))
    (claimed,) = timed.run(Chores().claim_due(10, HOLD))
    timed.run(Chores().schedule("wash", manual_clock() + HOUR))
    assert not timed.run(Chores().finish(claimed))
    assert timed.run(Chores().next_due()) == manual_clock() + HOUR


def test_an_earlier_time_is_kept_where_asked(timed: Database, manual_clock: ManualClock) -> None:
    now, queue = manual_clock(), Chores()
    assert timed.run(queue.schedule("wash", now, keep_earlier=True))
    assert not timed.run(queue.schedule("wash", now + HOUR, keep_earlier=True))
    assert timed.run(queue.schedule_many({"wash": now + HOUR, "cook": now + HOUR}, keep_earlier=True)) == 1
    assert timed.run(queue.next_due()) == now
    assert timed.run(queue.schedule("wash", now + HOUR))
    assert timed.run(queue.due_count()) == 0


def test_an_empty_queue_has_nothing_due(timed: Database) -> None:
    assert timed.run(Chores().next_due()) is None
    assert timed.run(Chores().due_count()) == 0
    assert timed.run(Chores().claim_due(1, HOLD)) == []


def test_without_a_clock_the_servers_time_counts(db: Database) -> None:
    now = datetime.now(UTC)
    db.run(Chores().schedule_many({"past": now - HOUR, "future": now + HOUR}))
    assert db.run(Chores().due_count()) == 1
    (claimed,) = db.run(Chores().claim_due(10, HOLD))
    assert claimed.member == "past"
    assert abs(claimed.until - datetime.now(UTC) - HOLD) < timedelta(seconds=10)


def test_claimers_that_race_never_share_a_member(db: Database) -> None:
    past = datetime.now(UTC) - HOUR
    db.run(Chores().schedule_many({f"c{i}": past + timedelta(seconds=i) for i in range(1000)}))

    def claim_all(number: int) -> list[str]:
        mine: list[str] = []
        while claimed := db.run(Chores().claim_due(7, HOLD)):
            mine += names(claimed)
        return mine

    shares = race(8, claim_all)
    assert Tally(name for share in shares for name in share) == Tally(f"c{i}" for i in range(1000))


def test_members_of_a_killed_claimer_come_back_once(timed: Database, manual_clock: ManualClock) -> None:
    timed.run(Chores().schedule_many({f"c{i}": manual_clock() for i in range(100)}))
    lost = set(names(timed.run(Chores().claim_due(40, HOLD))))  # and dies
    for claimed in timed.run(Chores().claim_due(100, HOLD)):
        assert timed.run(Chores().finish(claimed))
    manual_clock.advance(HOLD)
    again = [name for share in race(4, lambda _: _claimed(timed)) for name in share]
    assert Tally(again) == Tally(lost)


def _claimed(db: Database) -> list[str]:
    return names(db.run(Chores().claim_due(100, HOLD)))


def test_a_claim_without_a_reply_comes_back(
    redis_url: str, make_proxy: Callable[[str], Proxy], manual_clock: ManualClock
) -> None:
    proxy = make_proxy(redis_url)
    with connect(proxy.url, clock=manual_clock) as db:
        db.run(Chores().schedule("wash", manual_clock()))
        db.run(Checks("warm").claim_due(1, HOLD))
        proxy.cut_before_reply()
        with pytest.raises(OutcomeUnknownError):
            db.run(Chores().claim_due(1, HOLD))
        assert db.run(Chores().claim_due(1, HOLD)) == []
        manual_clock.advance(HOLD)
        assert names(db.run(Chores().claim_due(1, HOLD))) == ["wash"]


def test_a_member_that_does_not_decode_does_not_stop_the_queue(
    redis_url: str, keywright_server: RedisServer, manual_clock: ManualClock
) -> None:
    with connect(redis_url, clock=manual_clock) as db:
        keywright_server.call("ZADD", "chores", 0, b"\xff stray")
        db.run(Chores().schedule_many({"wash": manual_clock(), "cook": manual_clock()}))
        with pytest.raises(StoredDataError):
            db.run(Chores().claim_due(2, HOLD))
        assert names(db.run(Chores().claim_due(2, HOLD))) == ["wash"]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_claims_nothing_is_refused(limit: int) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        Chores().claim_due(limit, HOLD)


def test_a_queue_that_would_lose_members_is_refused() -> None:
    with pytest.raises(DeclarationError, match="loses its members"):

        class Fading(DueQueue[Id], key="fading", space=Keyspace("x", "…"), expiry=expires_in(HOLD)):
            """Never made."""

    with pytest.raises(DeclarationError, match="never equals itself"):

        class Hidden(DueQueue[Annotated[str, Sealed(Text())]], key="hidden", space=Keyspace("x", "…")):
            """Never made."""
