"""Claims: work is done once, by one of several processes, through deaths."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from keywright import (
    Claim,
    ClaimState,
    Counter,
    Database,
    Id,
    Keyspace,
    Retry,
    Set,
    Settings,
    aconnect,
    connect,
    expires_in,
    new_token,
)
from keywright.errors import CrossSlotError, EngineError, OutcomeUnknownError, UsageError, WrongTypeError
from keywright.operations import commit
from keywright.testing import Proxy, RedisServer, wait_until
from racing import race

space = Keyspace("events", "Events that arrive more than once.")
LONG = timedelta(minutes=5)
SHORT = timedelta(milliseconds=200)
INSTANT = timedelta(milliseconds=1)


class Seen(Claim, key="event:{<event>}", space=space, expiry=expires_in(timedelta(days=14))):
    """Whether an event was handled."""

    event: Id


class Welcomed(Claim, key="welcomed:<user>", space=space):
    """Whether a user was welcomed, without expiry."""

    user: Id


class Handled(Counter, key="handled:{<event>}", space=space):
    """How often an event took effect."""

    event: Id


class Total(Counter, key="total", space=space):
    """How many events took effect."""


def test_a_claim_goes_from_free_to_held_to_done(db: Database) -> None:
    claim = Seen("e1")
    assert db.run(claim.state()) is ClaimState.FREE
    assert db.run(claim.begin("a", LONG))
    assert db.run(claim.state()) is ClaimState.HELD
    assert db.run(claim.finish("a"))
    assert db.run(claim.state()) is ClaimState.DONE


async def _handled_once(url: str) -> list[bool]:
    async with aconnect(url) as db:
        claim = Seen("e1")
        began = [await db.run(claim.begin(token, LONG)) for token in "ab"]
        return [*began, await db.run(claim.finish("b")), await db.run(claim.finish("a"))]


def test_claims_run_on_asyncio(url: str) -> None:
    assert asyncio.run(_handled_once(url)) == [True, False, False, True]


def test_a_claim_that_is_held_or_done_is_refused_to_others(db: Database) -> None:
    claim = Seen("e1")
    assert db.run(claim.begin("a", LONG))
    assert not db.run(claim.begin("b", LONG))
    assert db.run(claim.finish("a"))
    assert not db.run(claim.begin("b", LONG))
    assert not db.run(claim.begin("a", LONG))


def test_of_sixteen_that_race_one_begins(db: Database) -> None:
    def begin_all(number: int) -> list[bool]:
        return [db.run(Seen(f"e{event}").begin(f"t{number}", LONG)) for event in range(20)]

    assert [sum(began) for began in zip(*race(16, begin_all), strict=True)] == [1] * 20


def test_others_cannot_finish_extend_or_release(db: Database) -> None:
    claim = Seen("e1")
    db.run(claim.begin("a", LONG))
    assert not db.run(claim.finish("b"))
    assert not db.run(claim.extend("b", LONG))
    assert not db.run(claim.release("b"))
    assert db.run(claim.state()) is ClaimState.HELD


def test_a_hold_that_ran_out_leaves_the_next_one_alone(db: Database) -> None:
    claim = Seen("e1")
    db.run(claim.begin("a", INSTANT))
    wait_until(lambda: db.run(claim.begin("b", LONG)), "the hold runs out")
    assert not db.run(claim.extend("a", LONG))
    assert not db.run(claim.finish("a"))
    assert not db.run(claim.release("a"))
    assert db.run(claim.finish("b"))


def test_a_hold_that_ran_out_finishes_nothing(db: Database) -> None:
    claim = Seen("e1")
    db.run(claim.begin("a", INSTANT))
    wait_until(lambda: db.run(claim.state()) is ClaimState.FREE, "the hold runs out")
    assert not db.run(claim.finish("a", also=[Handled("e1").add()]))
    assert db.run(claim.state()) is ClaimState.FREE
    assert db.run(Handled("e1").get()) == 0


def test_a_released_claim_is_free_at_once(db: Database) -> None:
    claim = Seen("e1")
    db.run(claim.begin("a", LONG))
    assert db.run(claim.release("a"))
    assert db.run(claim.begin("b", LONG))


def test_beginning_again_and_extending_renew_the_hold(db: Database) -> None:
    claim = Seen("e1")
    db.run(claim.begin("a", timedelta(seconds=10)))
    assert db.run(claim.begin("a", timedelta(seconds=60)))
    assert (db.run(claim.ttl()) or SHORT) > timedelta(seconds=30)
    assert db.run(claim.extend("a", LONG))
    assert (db.run(claim.ttl()) or SHORT) > timedelta(seconds=90)


def test_done_markers_live_as_declared(db: Database) -> None:
    for claim in (Seen("e1"), Welcomed("u1")):
        db.run(claim.begin("a", LONG))
        assert db.run(claim.finish("a"))
    assert timedelta(days=13) < (db.run(Seen("e1").ttl()) or SHORT) <= timedelta(days=14)
    assert db.run(Welcomed("u1").exists())
    assert db.run(Welcomed("u1").ttl()) is None


def test_the_stored_bytes_distinguish_a_holder_from_a_marker(
    redis_url: str, keywright_server: RedisServer
) -> None:
    with connect(redis_url) as db:
        db.run(Welcomed("u1").begin("a", LONG))
        assert keywright_server.call("GET", "welcomed:u1") == b"claim:a"
        db.run(Welcomed("u1").finish("a", 1700000000000))
        assert keywright_server.call("GET", "welcomed:u1") == b"1700000000000"


def test_a_marker_that_looks_like_a_holder_is_refused() -> None:
    with pytest.raises(UsageError, match="marker"):
        Seen("e1").finish("a", "claim:b")


@pytest.mark.parametrize("hold", [timedelta(), timedelta(microseconds=1), timedelta(seconds=-1)])
def test_a_hold_that_cannot_pass_is_refused(hold: timedelta) -> None:
    with pytest.raises(UsageError, match="at least 1 ms"):
        Seen("e1").begin("a", hold)


def test_an_empty_token_is_refused() -> None:
    with pytest.raises(UsageError, match="new_token"):
        Seen("e1").begin("", LONG)


def test_tokens_are_not_repeated() -> None:
    assert len({new_token() for _ in range(1000)}) == 1000


def test_another_type_under_the_name_is_reported(db: Database) -> None:
    class Stray(Set[str], key="welcomed:<user>", space=Keyspace("stray", "Another writer's idea.")):
        """The same name as a set."""

        user: Id

    db.run(Stray("u1").add("x"))
    with pytest.raises(WrongTypeError):
        db.run(Welcomed("u1").begin("a", LONG))


def test_work_in_also_takes_effect_once_however_many_try(db: Database) -> None:
    claim = Seen("e1")

    def try_until_done(number: int) -> int:
        finished = 0
        while db.run(claim.state()) is not ClaimState.DONE:
            # Holds run out all the time, so several believe that the event is theirs.
            db.run(claim.begin(f"t{number}", timedelta(milliseconds=3)))
            finished += db.run(claim.finish(f"t{number}", also=[Handled("e1").add()]))
        return finished

    assert sum(race(16, try_until_done)) == 1
    assert db.run(Handled("e1").get()) == 1


def test_work_in_another_slot_is_refused_on_a_cluster(cluster_url: str) -> None:
    with connect(cluster_url) as db:
        db.run(Seen("e1").begin("a", LONG))
        with pytest.raises(CrossSlotError):
            db.run(Seen("e1").finish("a", also=[Total().add()]))
        assert db.run(Seen("e1").state()) is ClaimState.HELD


def test_a_commit_can_check_the_holder(db: Database) -> None:
    db.run(Seen("e1").begin("a", LONG))
    for token, applied in (("b", False), ("a", True)):
        done = db.run(commit("count", [Seen("e1").held_by(token)], [Handled("e1").add()]))
        assert bool(done) is applied
    assert db.run(Handled("e1").get()) == 1


def test_a_process_that_is_cut_off_frees_its_claim(
    redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy, claim = make_proxy(redis_url), Seen("e1")
    with (
        connect(redis_url) as other,
        connect(proxy.url, settings=Settings(retry=Retry(attempts=1))) as dying,
    ):
        assert dying.run(claim.begin("a", SHORT))
        proxy.refuse()
        proxy.cut()
        with pytest.raises(EngineError):
            dying.run(claim.finish("a"))
        assert not other.run(claim.begin("b", LONG))
        wait_until(lambda: other.run(claim.begin("b", LONG)), "the hold runs out")
        proxy.heal()
        assert not dying.run(claim.finish("a"))


def test_a_lost_reply_does_not_lose_a_begun_claim(redis_url: str, make_proxy: Callable[[str], Proxy]) -> None:
    proxy = make_proxy(redis_url)
    with connect(proxy.url) as db:
        db.run(Seen("warm").begin("a", LONG))
        proxy.cut_before_reply()
        assert db.run(Seen("e1").begin("a", LONG))


def test_a_finish_without_a_reply_is_not_guessed(redis_url: str, make_proxy: Callable[[str], Proxy]) -> None:
    proxy = make_proxy(redis_url)
    with connect(proxy.url) as db:
        db.run(Seen("warm").begin("a", LONG))
        db.run(Seen("warm").finish("a"))
        db.run(Seen("e1").begin("a", LONG))
        proxy.cut_before_reply()
        with pytest.raises(OutcomeUnknownError):
            db.run(Seen("e1").finish("a"))
        assert db.run(Seen("e1").state()) is ClaimState.DONE
