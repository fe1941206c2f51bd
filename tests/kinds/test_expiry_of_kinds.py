"""Every kind gets its declared expiry on write, keeps it, renews it, and lets a binding override it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from keywright import (
    Call,
    Context,
    Counter,
    Database,
    Id,
    Key,
    Keyspace,
    List,
    Map,
    Record,
    Set,
    SortedSet,
    Stream,
    Value,
    atomic,
    connect,
    expires_at,
    expires_in,
    gather,
    preview,
)
from keywright.errors import DeclarationError
from keywright.operations import commit
from keywright.testing import RedisServer, wait_until
from keywright.testing.runs import OpenRun, Raw, Run
from old_redis import old_binary

space = Keyspace("market", "Stalls of a market, all of them passing.")

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
HOUR = expires_in(timedelta(hours=1))
FIXED = expires_in(timedelta(hours=1), since="first write")
SLIDING = expires_in(timedelta(hours=1), since="last use")
CLOSING = datetime(2100, 1, 1, tzinfo=UTC)


class Fruit(msgspec.Struct):
    name: str
    count: int = 1
    best_before: datetime | None = None


class Motto(Value[str], key="motto:<stall>", space=space, expiry=HOUR):
    """A value."""

    stall: Id


class Sold(Counter, key="sold:<stall>", space=space, expiry=HOUR):
    """A counter."""

    stall: Id


class Best(Record[Fruit], key="best:<stall>", space=space, expiry=HOUR):
    """A record."""

    stall: Id


class Prices(Map[Id, int], key="prices:<stall>", space=space, expiry=HOUR):
    """A map."""

    stall: Id


class Sellers(Set[Id], key="{stalls}:sellers:<stall>", space=space, expiry=HOUR):
    """A set."""

    stall: Id


class Ranks(SortedSet[Id, int], key="ranks:<stall>", space=space, expiry=HOUR):
    """A sorted set."""

    stall: Id


class Line(List[Id], key="{stalls}:line:<stall>", space=space, expiry=HOUR):
    """A list."""

    stall: Id


class Sales(Stream[Fruit], key="sales:<stall>", space=space, expiry=HOUR):
    """A stream."""

    stall: Id


WRITES: list[tuple[Key, Call[Any]]] = [
    (Motto("a"), Motto("a").set("fresh")),
    (Motto("a"), Motto("a").swap("fresh")),
    (Motto("a"), Motto("a").append("fresh")),
    (Motto("a"), Motto.set_many([("a", "fresh")])),
    (Sold("a"), Sold("a").add()),
    (Sold("a"), Sold("a").set(1)),
    (Sold("a"), Sold("a").swap(1)),
    (Best("a"), Best("a").put(Fruit("fig"))),
    (Best("a"), Best("a").create(Fruit("fig"))),
    (Best("a"), Best("a").add("count")),
    (Prices("a"), Prices("a").put("fig", 1)),
    (Prices("a"), Prices("a").put_many({"fig": 1})),
    (Prices("a"), Prices("a").put_if_absent("fig", 1)),
    (Prices("a"), Prices("a").replace({"fig": 1})),
    (Prices("a"), Prices("a").add("fig")),
    (Sellers("a"), Sellers("a").add("ann")),
    (Sellers("a"), Sellers("a").replace(["ann"])),
    (Ranks("a"), Ranks("a").add("ann", 1)),
    (Ranks("a"), Ranks("a").add_many({"ann": 1})),
    (Ranks("a"), Ranks("a").replace({"ann": 1})),
    (Ranks("a"), Ranks("a").increase("ann", 1)),
    (Line("a"), Line("a").push("ann")),
    (Line("a"), Line("a").replace(["ann"])),
    (Sales("a"), Sales("a").add(Fruit("fig"))),
]


def _shown(item: object) -> str:
    return f"{item!r}"


def _pttl(run: Run, raw: Raw, key: Key) -> int:
    left: int = raw("PTTL", run.context.name(key))
    return left


@pytest.mark.parametrize(("key", "write"), WRITES, ids=_shown)
def test_a_write_sets_the_declared_expiry(run: Run, raw: Raw, key: Key, write: Call[Any]) -> None:
    run(write)
    assert HOUR_MS - MINUTE_MS < _pttl(run, raw, key) <= HOUR_MS


@pytest.mark.parametrize(("key", "write"), WRITES, ids=_shown)
def test_a_binding_of_none_leaves_the_key_for_good(
    open_run: OpenRun, redis_url: str, raw: Raw, key: Key, write: Call[Any]
) -> None:
    run = open_run(redis_url, space.bind(expiry={type(key): None}))
    run(write)
    assert _pttl(run, raw, key) == -1


RENEWALS: list[tuple[Key, Call[Any], Call[Any]]] = [
    (Motto("a"), Motto("a").set("x"), Motto("a").set("y")),
    (Motto("a"), Motto("a").set("x"), Motto("a").append("y")),
    (Sold("a"), Sold("a").add(), Sold("a").add()),
    (Best("a"), Best("a").put(Fruit("fig")), Best("a").update(count=2)),
    (Best("a"), Best("a").put(Fruit("fig")), Best("a").add("count")),
    (Prices("a"), Prices("a").put_many({"fig": 1, "nut": 2}), Prices("a").remove("nut")),
    (Sellers("a"), Sellers("a").add("ann", "bob"), Sellers("a").remove("bob")),
    (Sellers("a"), Sellers("a").add("ann", "bob"), Sellers("a").pop()),
    (Sellers("a"), Sellers("a").add("ann", "bob", "cat"), Sellers("a").pop_many(1)),
    (Ranks("a"), Ranks("a").add_many({"ann": 1, "bob": 2}), Ranks("a").remove("bob")),
    (Ranks("a"), Ranks("a").add_many({"ann": 1, "bob": 2}), Ranks("a").remove_by_score(2)),
    (Ranks("a"), Ranks("a").add_many({"ann": 1, "bob": 2}), Ranks("a").remove_by_rank(0, 0)),
    (Ranks("a"), Ranks("a").add_many({"ann": 1, "bob": 2}), Ranks("a").pop_lowest()),
    (Ranks("a"), Ranks("a").add_many({"ann": 1, "bob": 2}), Ranks("a").pop_highest()),
    (Line("a"), Line("a").push("ann", "bob"), Line("a").pop()),
    (Line("a"), Line("a").push("ann", "bob", "cat"), Line("a").pop_many(1)),
    (Line("a"), Line("a").push("ann", "bob"), Line("a").put_at(0, "cat")),
    (Line("a"), Line("a").push("ann", "bob"), Line("a").insert("cat", before="bob")),
    (Line("a"), Line("a").push("ann", "bob"), Line("a").remove("bob")),
    (Line("a"), Line("a").push("ann", "bob"), Line("a").trim(0, 0)),
    (Sales("a"), Sales("a").add(Fruit("fig")), Sales("a").add(Fruit("nut"))),
    (Sales("a"), Sales("a").add(Fruit("fig")), Sales("a").trim(max_length=5)),
    (Sales("a"), Sales("a").add(Fruit("fig")), Sales("a").remove("1-1")),
]


@pytest.mark.parametrize(("key", "write", "change"), RENEWALS, ids=_shown)
def test_every_later_write_renews_the_expiry(
    run: Run, raw: Raw, key: Key, write: Call[Any], change: Call[Any]
) -> None:
    run(write)
    run(key.expire(timedelta(minutes=1)))
    run(change)
    assert _pttl(run, raw, key) > HOUR_MS - MINUTE_MS


@pytest.mark.parametrize(
    ("source", "target", "fill", "move"),
    [
        (Sellers("a"), Sellers("b"), Sellers("a").add("x", "y"), Sellers("a").move("x", Sellers("b"))),
        (Line("a"), Line("b"), Line("a").push("x", "y"), Line("a").move(Line("b"))),
    ],
)
def test_a_move_gives_both_keys_their_expiry(
    run: Run, raw: Raw, source: Key, target: Key, fill: Call[Any], move: Call[Any]
) -> None:
    run(fill)
    run(source.expire(timedelta(minutes=1)))
    assert run(move)
    assert _pttl(run, raw, source) > HOUR_MS - MINUTE_MS
    assert _pttl(run, raw, target) > HOUR_MS - MINUTE_MS


READS: list[tuple[Call[Any], Call[Any]]] = [
    (Motto("a").set("x"), Motto("a").get()),
    (Motto("a").set("x"), Motto("a").length()),
    (Motto("a").set("x"), Motto.get_many(["a", "b"])),
    (Sold("a").add(), Sold.get_many(["b", "a"])),
    (Best("a").put(Fruit("fig")), Best.get_many(["a", "b"])),
    (Sold("a").add(), Sold("a").get()),
    (Best("a").put(Fruit("fig")), Best("a").get()),
    (Best("a").put(Fruit("fig")), Best("a").pick("name")),
    (Prices("a").put("fig", 1), Prices("a").get("fig")),
    (Prices("a").put("fig", 1), Prices("a").all()),
    (Prices("a").put("fig", 1), Prices("a").scan()),
    (Sellers("a").add("ann"), Sellers("a").members()),
    (Sellers("a").add("ann"), Sellers("a").has("bob")),
    (Ranks("a").add("ann", 1), Ranks("a").range()),
    (Ranks("a").add("ann", 1), Ranks("a").score("ann")),
    (Line("a").push("ann"), Line("a").range()),
    (Line("a").push("ann"), Line("a").at(0)),
    (Sales("a").add(Fruit("fig")), Sales("a").range()),
    (Sales("a").add(Fruit("fig")), Sales("a").newest(1)),
]


@pytest.mark.parametrize(("write", "read"), READS, ids=_shown)
def test_a_read_renews_an_expiry_that_slides_and_no_other(
    open_run: OpenRun, redis_url: str, raw: Raw, write: Call[Any], read: Call[Any]
) -> None:
    run = open_run(redis_url)
    run(write)
    (name,) = raw.names()
    raw("PEXPIRE", name, MINUTE_MS)
    run(read)
    assert raw("PTTL", name) <= MINUTE_MS
    kind = type(space.parse(name))
    sliding = open_run(redis_url, space.bind(expiry={kind: SLIDING}))
    assert sliding(read) == run(read)
    assert raw("PTTL", name) > HOUR_MS - MINUTE_MS


@pytest.fixture(scope="module")
def old_server() -> Iterator[RedisServer]:
    with RedisServer(tcp=True, binary=old_binary()) as server:
        yield server


@pytest.fixture(params=["redis_url", "old_server", pytest.param("cluster_url", marks=pytest.mark.cluster)])
def fixed(request: pytest.FixtureRequest) -> Iterator[Database]:
    """An empty server, one of Redis 6.2 and a cluster, on which every time counts from the first write."""
    server = request.getfixturevalue(request.param)
    if isinstance(server, RedisServer):
        server.call("FLUSHALL")
    url = server.tcp_url if isinstance(server, RedisServer) else server
    with connect(url, space.bind(expiry=dict.fromkeys(space, FIXED))) as db:
        yield db


def _left(db: Database, key: Key) -> int:
    left = db.run(key.ttl())
    return -1 if left is None else left // timedelta(milliseconds=1)


@pytest.mark.parametrize(("key", "write"), WRITES, ids=_shown)
def test_the_first_write_sets_a_fixed_expiry(fixed: Database, key: Key, write: Call[Any]) -> None:
    fixed.run(write)
    assert HOUR_MS - MINUTE_MS < _left(fixed, key) <= HOUR_MS


CHANGES = [
    each for each in RENEWALS if each[2].__class__.__name__ != "Expiring"
]  # SET writes the whole value


@pytest.mark.parametrize(("key", "write", "change"), CHANGES, ids=_shown)
def test_a_later_change_leaves_a_fixed_expiry_as_it_is(
    fixed: Database, key: Key, write: Call[Any], change: Call[Any]
) -> None:
    fixed.run(write)
    fixed.run(key.expire(timedelta(minutes=1)))
    fixed.run(change)
    assert 0 < _left(fixed, key) <= MINUTE_MS


# An update is a commit of its own.
COMMITTED = [each for each in CHANGES if "update" not in repr(each[2])]


@pytest.mark.parametrize(("key", "write", "change"), COMMITTED, ids=_shown)
def test_a_change_in_a_commit_leaves_a_fixed_expiry_as_it_is(
    fixed: Database, key: Key, write: Call[Any], change: Call[Any]
) -> None:
    fixed.run(write)
    fixed.run(key.expire(timedelta(minutes=1)))
    fixed.run(commit("change", [], [change]))
    assert 0 < _left(fixed, key) <= MINUTE_MS


WHOLE: list[tuple[Key, Call[Any]]] = [
    (Motto("a"), Motto("a").set("x")),
    (Motto("a"), Motto("a").swap("x")),
    (Sold("a"), Sold("a").set(7)),
    (Sold("a"), Sold("a").swap(7)),
    (Best("a"), Best("a").put(Fruit("fig"))),
    (Prices("a"), Prices("a").replace({"fig": 1})),
    (Sellers("a"), Sellers("a").replace(["ann"])),
    (Ranks("a"), Ranks("a").replace({"ann": 1})),
    (Line("a"), Line("a").replace(["ann"])),
]


@pytest.mark.parametrize(("key", "write"), WHOLE, ids=_shown)
def test_a_write_of_the_whole_value_starts_a_fixed_expiry_again(
    fixed: Database, key: Key, write: Call[Any]
) -> None:
    fixed.run(write)
    fixed.run(key.expire(timedelta(minutes=1)))
    fixed.run(write)
    assert _left(fixed, key) > HOUR_MS - MINUTE_MS


def test_a_counter_with_a_fixed_expiry_is_a_window(fixed: Database) -> None:
    assert [fixed.run(Sold("a").add()) for _ in range(3)] == [1, 2, 3]
    fixed.run(Sold("a").expire(timedelta(milliseconds=1)))
    wait_until(lambda: not fixed.run(Sold("a").exists()), "the window ends")
    assert fixed.run(Sold("a").add()) == 1
    assert _left(fixed, Sold("a")) > HOUR_MS - MINUTE_MS


def test_a_fixed_expiry_is_set_in_transactions_batches_and_commits(fixed: Database) -> None:
    assert fixed.run(atomic(Sold("a").add(), Sold("a").add(5))) == (1, 6)
    assert fixed.run(gather(Sold("a").add(), Sold("b").add(), Sold("a").add())) == (7, 1, 8)
    assert fixed.run(commit("count", [], [Sold("a").add(), Sold("c").add()]))
    assert fixed.run(gather(Sold("a").get(), Sold("c").get())) == (9, 1)
    assert all(_left(fixed, Sold(name)) > HOUR_MS - MINUTE_MS for name in "abc")


def test_a_key_without_expiry_gets_a_fixed_one_with_the_next_change(fixed: Database) -> None:
    fixed.run(Sold("a").add())
    fixed.run(Sold("a").persist())
    fixed.run(Sold("a").add())
    assert _left(fixed, Sold("a")) > HOUR_MS - MINUTE_MS


def test_a_read_leaves_a_fixed_expiry_as_it_is(fixed: Database) -> None:
    fixed.run(Sold("a").add())
    fixed.run(Sold("a").expire(timedelta(minutes=1)))
    assert fixed.run(gather(Sold("a").get(), Sold.get_many(["a"]))) == (1, [1])
    assert 0 < _left(fixed, Sold("a")) <= MINUTE_MS


def test_a_move_leaves_the_fixed_expiry_of_its_source_and_gives_its_target_one(fixed: Database) -> None:
    fixed.run(Sellers("a").add("x", "y"))
    fixed.run(Sellers("a").expire(timedelta(minutes=1)))
    assert fixed.run(Sellers("a").move("x", Sellers("b")))
    assert 0 < _left(fixed, Sellers("a")) <= MINUTE_MS
    assert _left(fixed, Sellers("b")) > HOUR_MS - MINUTE_MS


def test_a_time_since_anything_else_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"cannot count since 'now'. Use one of 'first write', 'last"):
        expires_in(timedelta(hours=1), since="now")  # type: ignore[arg-type]  # which is the point


def test_keep_ttl_leaves_the_expiry_as_it_is(run: Run, raw: Raw) -> None:
    run(Motto("a").set("x"))
    run(Motto("a").expire(timedelta(minutes=1)))
    run(Motto("a").set("y", keep_ttl=True))
    assert 0 < raw("PTTL", "motto:a") <= MINUTE_MS
    assert raw("GET", "motto:a") == b"y"


def test_one_write_may_have_an_expiry_of_its_own(run: Run, raw: Raw) -> None:
    run(Motto("a").set("x", expiry=expires_in(timedelta(minutes=1))))
    assert 0 < raw("PTTL", "motto:a") <= MINUTE_MS
    run(Motto("a").set("x", expiry=expires_at(CLOSING)))
    assert raw.expires_at("motto:a") == pytest.approx(CLOSING.timestamp(), abs=1)
    run(Motto("a").set("x", expiry=None))
    assert raw("PTTL", "motto:a") == -1
    run(Motto("a").swap("x", expiry=expires_in(timedelta(minutes=1))))
    assert 0 < raw("PTTL", "motto:a") <= MINUTE_MS


def test_a_refused_write_does_not_renew(run: Run, raw: Raw) -> None:
    run(Motto("a").set("x"))
    run(Motto("a").expire(timedelta(minutes=1)))
    assert run(Motto("a").set("y", when="absent")) is False
    assert raw("PTTL", "motto:a") <= MINUTE_MS


def test_jitter_spreads_within_its_bounds(open_run: OpenRun, redis_url: str, raw: Raw) -> None:
    run = open_run(redis_url, space.bind(expiry={Motto: expires_in(timedelta(hours=1), jitter=0.1)}))
    run(Motto.set_many((str(number), "x") for number in range(200)))
    left = [raw("PTTL", f"motto:{number}") for number in range(200)]
    assert all(0.9 * HOUR_MS - MINUTE_MS < ttl <= 1.1 * HOUR_MS for ttl in left)
    assert max(left) - min(left) > 0.1 * HOUR_MS


def test_jitter_follows_the_given_randomness() -> None:
    def drawn() -> object:
        bound = space.bind(expiry={Motto: expires_in(timedelta(hours=1), jitter=0.1)})
        return preview(Motto("a").set("x"), Context([bound], randomness=random.Random(7)))[0].arguments

    assert drawn() == drawn()


@pytest.mark.parametrize(
    "write",
    [lambda: Motto("a").set("x"), lambda: Motto("a").swap("x"), lambda: Motto.set_many([("a", "x")])],
)
def test_a_moment_in_the_value_is_its_expiry(
    open_run: OpenRun, redis_url: str, raw: Raw, write: Callable[[], Call[Any]]
) -> None:
    run = open_run(redis_url, space.bind(expiry={Motto: expires_at(lambda _: CLOSING)}))
    run(write())
    assert raw.expires_at("motto:a") == pytest.approx(CLOSING.timestamp(), abs=1)


def test_a_value_without_a_moment_stays(open_run: OpenRun, redis_url: str, raw: Raw) -> None:
    run = open_run(redis_url, space.bind(expiry={Motto: expires_at(lambda _: None)}))
    run(Motto("a").set("x"))
    assert raw("PTTL", "motto:a") == -1


def test_a_binding_cannot_override_keys_of_another_keyspace() -> None:
    with pytest.raises(DeclarationError, match="is not a key of"):
        Keyspace("other", "Another market.").bind(expiry={Motto: None})
