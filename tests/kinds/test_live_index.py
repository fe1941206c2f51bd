"""Live indexes: expired records do not show up, and those that came back are not dropped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from keywright import (
    Call,
    Database,
    Id,
    Keyspace,
    LiveIndex,
    Record,
    Set,
    SnowflakeId,
    SortedSet,
    Value,
    connect,
    expires_in,
    gather_list,
)
from keywright.errors import DeclarationError, EngineError
from keywright.testing import RedisServer, wait_until
from racing import race

space = Keyspace("lounge", "Guests who leave by themselves.")
INSTANT = timedelta(milliseconds=1)
NOON = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)


class Drink(msgspec.Struct):
    name: str
    strong: bool | None = None


class Guest(Value[str], key="guest:<guest>", space=space, expiry=expires_in(timedelta(hours=1))):
    """One guest."""

    guest: Id


class Guests(Set[Id], key="guests", space=space):
    """Every guest."""


class Order(Record[Drink], key="order:<table>:<seat>", space=space, expiry=expires_in(timedelta(hours=1))):
    """What someone ordered."""

    table: Id
    seat: SnowflakeId


class Orders(Set[SnowflakeId], key="orders:<table>", space=space):
    """The seats of a table that ordered."""

    table: Id


class Talk(Value[str], key="talk:{<room>}:<talk>", space=space):
    """A talk."""

    room: Id
    talk: Id


class Talks(SortedSet[Id, datetime], key="talks:{<room>}", space=space):
    """The talks of a room by their start."""

    room: Id


guests = LiveIndex(of=Guest, by=Guests)
orders = LiveIndex(of=Order, by=Orders)
talks = LiveIndex(of=Talk, by=Talks)


def arrive(name: str) -> Call[None]:
    return guests.put(Guest(name), Guest(name).set("here"))


def expire(db: Database, *names: str) -> None:
    db.run(gather_list(Guest(name).expire(INSTANT) for name in names))
    wait_until(lambda: not any(db.run(gather_list(Guest(n).exists() for n in names))), "they expire")


def test_living_members_show_up(db: Database) -> None:
    db.run(gather_list(map(arrive, ("ann", "bob"))))
    assert sorted(db.run(guests.members())) == ["ann", "bob"]


def test_an_empty_index_has_no_members(db: Database) -> None:
    assert db.run(guests.members()) == []
    assert db.run(guests.page()) == (0, [])


def test_an_expired_record_leaves_the_index_when_met(db: Database) -> None:
    db.run(gather_list(map(arrive, ("ann", "bob", "cid"))))
    expire(db, "ann", "cid")
    assert db.run(Guests().members()) == {"ann", "bob", "cid"}
    assert db.run(guests.members()) == ["bob"]
    assert db.run(Guests().members()) == {"bob"}


def test_putting_renews_the_declared_expiry(db: Database) -> None:
    db.run(arrive("ann"))
    assert timedelta(minutes=59) < (db.run(Guest("ann").ttl()) or INSTANT) <= timedelta(hours=1)


def test_a_whole_record_is_put_with_its_index(db: Database) -> None:
    seat = SnowflakeId(2**63 + 1)
    db.run(orders.put(Order("t1", seat), Order("t1", seat).put(Drink("tea", strong=True))))
    db.run(orders.put(Order("t1", seat), Order("t1", seat).put(Drink("milk"))))
    assert db.run(Order("t1", seat).get()) == Drink("milk")
    assert db.run(orders.members("t1")) == [seat]
    assert db.run(orders.members("t2")) == []


def test_deleting_drops_the_member_too(db: Database) -> None:
    db.run(gather_list(map(arrive, ("ann", "bob"))))
    db.run(guests.delete(Guest("ann")))
    assert db.run(Guests().members()) == {"bob"}
    assert not db.run(Guest("ann").exists())


def test_a_sorted_index_lists_by_score(db: Database) -> None:
    for hours, name in enumerate(("late", "later", "latest")):
        talk = Talk("blue", name)
        db.run(talks.put(talk, talk.set("…"), score=NOON + timedelta(hours=hours)))
    db.run(Talks("blue").add("early", NOON - timedelta(hours=1)))
    db.run(Talks("blue").add("later", NOON - timedelta(hours=2)))
    assert db.run(talks.members("blue")) == ["later", "late", "latest"]
    assert not db.run(Talks("blue").has("early"))


def test_a_large_index_is_read_in_bounded_pages(db: Database) -> None:
    names = [f"g{i}" for i in range(3000)]
    db.run(Guest.set_many((name, "here") for name in names))
    db.run(Guests().add(*names, *(f"gone{i}" for i in range(1500))))
    seen: set[str] = set()
    cursor, pages = 0, 0
    while pages == 0 or cursor:
        cursor, page = db.run(guests.page(cursor=cursor, count=100))
        assert len(page) < 1000
        seen, pages = seen | set(page), pages + 1
    assert seen == set(names)
    assert pages > 10
    assert db.run(Guests().size()) == 3000


def test_many_readers_agree_while_records_die(db: Database) -> None:
    db.run(gather_list(arrive(f"g{i}") for i in range(100)))
    expire(db, *(f"g{i}" for i in range(50)))
    for found in race(8, lambda _: db.run(guests.members())):
        assert set(found) == {f"g{i}" for i in range(50, 100)}


def test_records_that_come_back_stay_in_the_index(db: Database) -> None:
    """Writers let records die and bring them back while readers drop those that look dead."""
    rounds = 10 if db.context.sharded else 60
    names = [f"g{i}" for i in range(6)]

    def live_and_die(name: str) -> None:
        for _ in range(rounds):
            db.run(Guest(name).delete())
            db.run(arrive(name))
            # Nobody may drop it from now on: it exists.
            assert db.run(Guests().has(name))
            assert db.run(Guest(name).exists())

    def act(number: int) -> None:
        if number < len(names):
            live_and_die(names[number])
        else:
            for _ in range(rounds * 2):
                db.run(guests.members())

    race(len(names) + 4, act)
    assert db.run(Guests().members()) == set(names) == set(db.run(guests.members()))


def test_record_first_then_member_is_safe_on_one_server(redis_url: str) -> None:
    """For writers in bulk that go around put()."""
    with connect(redis_url) as db:

        def act(number: int) -> None:
            for _ in range(100):
                if number:
                    db.run(guests.members())
                else:
                    db.run(Guest("ann").delete())
                    db.run(Guest("ann").set("here"))
                    db.run(Guests().add("ann"))
                    assert db.run(Guests().has("ann"))

        race(5, act)


def test_a_refusal_while_dropping_is_not_hidden(redis_url: str, keywright_server: RedisServer) -> None:
    with connect(redis_url) as db:
        db.run(Guests().add("gone"))
        keywright_server.call("ACL", "SETUSER", "default", "-srem")
        try:
            with pytest.raises(EngineError):
                db.run(guests.members())
        finally:
            keywright_server.call("ACL", "SETUSER", "default", "+srem")


@pytest.mark.parametrize(("of", "by"), [(Order, Guests), (Guest, Orders), (Order, Talks)])
def test_an_index_that_cannot_name_its_records_is_refused(of: Any, by: Any) -> None:
    with pytest.raises(DeclarationError):
        LiveIndex(of=of, by=by)


def test_an_index_of_other_ids_is_refused() -> None:
    class Numbers(Set[int], key="numbers", space=space):
        """Not what guests are called."""

    with pytest.raises(DeclarationError, match="same id type"):
        LiveIndex(of=Guest, by=Numbers)
