"""Prefix and version belong to the database: every name, scan and parse honours them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from keywright import (
    Call,
    Context,
    Counter,
    Id,
    Keyspace,
    List,
    Map,
    Record,
    Set,
    SortedSet,
    Stream,
    Value,
    atomic,
    many_to_one,
    preview,
)
from keywright.errors import UnknownKeyError
from keywright.operations import slot_of
from keywright.testing.runs import OpenRun, Raw, Run

space = Keyspace("zoo", "Animals and houses.", prefix="zoo", version="v1")


class Facts(msgspec.Struct):
    legs: int


class Name(Value[str], key="name:<animal>", space=space):
    """What an animal is called."""

    animal: Id


class Meals(Counter, key="meals:<animal>", space=space):
    """Meals an animal had."""

    animal: Id


class FactsOf(Record[Facts], key="facts:<animal>", space=space):
    """What is known of an animal."""

    animal: Id


class Food(Map[Id, int], key="food:<animal>", space=space):
    """What it eats, in grams."""

    animal: Id


class Friends(Set[Id], key="friends:<animal>", space=space):
    """Whom it likes."""

    animal: Id


class Weights(SortedSet[Id, float], key="weights", space=space):
    """Animals by weight."""


class Queue(List[Id], key="queue", space=space):
    """Who is fed next."""


class Events(Stream[Facts], key="events", space=space):
    """What happened."""


class HouseOf(Value[Id], key="house_of:<animal>", space=space):
    """The house an animal lives in."""

    animal: Id


class Inhabitants(Set[Id], key="inhabitants:<house>", space=space):
    """The animals of a house."""

    house: Id


lives_in = many_to_one(HouseOf, inverse=Inhabitants)

WRITES: list[Call[Any]] = [
    Name("a").set("Anna"),
    Name.set_many([("b", "Bert"), ("c", "Cleo")]),
    Meals("a").add(),
    FactsOf("a").put(Facts(4)),
    FactsOf("b").create(Facts(2)),
    FactsOf("b").update(legs=3),
    Food("a").put("hay", 100),
    Friends("a").add("b"),
    Friends("b").replace(["a", "c"]),
    Weights().add("a", 4.5),
    Queue().push("a"),
    Events().add(Facts(4)),
    Events().create_group("log"),
    lives_in.assign("a", "north"),
]
NAMES = {
    *(b"name:a", b"name:b", b"name:c", b"meals:a", b"facts:a", b"facts:b", b"food:a"),
    *(b"friends:a", b"friends:b", b"weights", b"queue", b"events", b"house_of:a", b"inhabitants:north"),
}
READS: list[tuple[Call[Any], object]] = [
    (Name.get_many(["a", "b", "c"]), ["Anna", "Bert", "Cleo"]),
    (Name("a").get(), "Anna"),
    (Name("a").ttl(), None),
    (Name("a").stored_type(), "string"),
    (Meals.get_many(["a", "b"]), [1, 0]),
    (FactsOf.get_many(["a", "b"]), [Facts(4), Facts(3)]),
    (Food("a").all(), {"hay": 100}),
    (Weights().range(), [("a", 4.5)]),
    (Queue().range(), ["a"]),
    (Events().length(), 1),
    (Events().consume("log", "ann").map(len), 1),
    (lives_in.of("a"), "north"),
    (lives_in.inverse_of("north"), {"a"}),
]
PREFIXES = [
    pytest.param(space.bind(), b"zoo:v1:", id="declared"),
    pytest.param(space.bind(prefix="eu:zürich:*"), "eu:zürich:*:v1:".encode(), id="colons and a star"),
    pytest.param(space.bind(version="v2"), b"zoo:v2:", id="version"),
    pytest.param(space.bind(prefix="", version=""), b"", id="none"),
    pytest.param(space.bind(prefix="{app}"), b"{app}:v1:", id="hash tag"),
]


@pytest.mark.parametrize(("binding", "lead"), PREFIXES)
def test_every_name_begins_with_prefix_and_version(
    open_run: OpenRun, redis_url: str, raw: Raw, binding: Any, lead: bytes
) -> None:
    run = open_run(redis_url, binding)
    for write in WRITES:
        run(write)
    assert raw.names() == {lead + name for name in NAMES}
    for read, value in READS:
        assert run(read) == value


@pytest.mark.parametrize(("binding", "lead"), PREFIXES)
def test_scan_and_parse_know_the_prefix(
    open_run: OpenRun, redis_url: str, raw: Raw, binding: Any, lead: bytes
) -> None:
    run = open_run(redis_url, binding)
    run(Name("a").set("Anna"))
    raw("SET", "name:stranger" if lead else "other:name:stranger", "x")
    raw("SADD", lead + b"name:wrong-type", "x")
    assert run.scan(Name) == [Name("a")]
    assert run.scan(Name, animal="a") == [Name("a")]
    assert run.scan(Name, animal="b") == []
    assert space.parse(lead + b"name:a", run.context) == Name("a")
    with pytest.raises(UnknownKeyError):
        space.parse(b"elsewhere:name:a", run.context)


def test_one_keyspace_lives_twice_in_one_server(open_run: OpenRun, redis_url: str, raw: Raw) -> None:
    north = open_run(redis_url, space.bind(prefix="north"))
    south = open_run(redis_url, space.bind(prefix="south"))
    north(Name("a").set("Anna"))
    south(Name("a").set("Alma"))
    assert (north(Name("a").get()), south(Name("a").get())) == ("Anna", "Alma")
    assert raw.names() == {b"north:v1:name:a", b"south:v1:name:a"}


def test_an_unbound_keyspace_has_its_declared_prefix(run: Run, raw: Raw) -> None:
    run(Name("a").set("Anna"))
    assert raw.names() == {b"zoo:v1:name:a"}


def test_a_preview_shows_bound_names() -> None:
    context = Context([space.bind(prefix="eu:north")])
    (wire,) = preview(Name.get_many(["a", "b"]), context)
    assert wire.arguments == (b"MGET", b"eu:north:v1:name:a", b"eu:north:v1:name:b")


def test_a_hash_tag_in_the_prefix_keeps_a_keyspace_in_one_slot(
    open_run: OpenRun, cluster_url: str, raw_cluster: Raw
) -> None:
    run = open_run(cluster_url, space.bind(prefix="{app}"))
    for write in WRITES:
        run(write)
    names = {name for name in raw_cluster.names() if name.startswith(b"{app}")}
    assert names == {b"{app}:v1:" + name for name in NAMES}
    assert {slot_of(name) for name in names} == {slot_of(b"app")}
    for read, value in READS:
        assert run(read) == value
    assert run(Friends("a").union(Friends("b"))) == {"a", "b", "c"}
    assert run(atomic(Name("a").get(), Meals("a").get())) == ("Anna", 1)
    assert set(run.scan(Name)) == {Name("a"), Name("b"), Name("c")}


def test_a_spread_keyspace_works_on_a_cluster_as_on_one_server(cluster_run: Run, raw_cluster: Raw) -> None:
    for write in WRITES:
        cluster_run(write)
    stored = {name for name in raw_cluster.names() if name.startswith(b"zoo:")}
    assert stored == {b"zoo:v1:" + name for name in NAMES}
    for read, value in READS:
        assert cluster_run(read) == value
    assert set(cluster_run.scan(Name)) == {Name("a"), Name("b"), Name("c")}
