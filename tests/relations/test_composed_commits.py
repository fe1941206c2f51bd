"""Relations as parts of a commit of one's own: their writes, their checks, and sets compared whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keywright import Call, Database, Id, Keyspace, List, Set, SortedSet, Value
from keywright.errors import WrongTypeError
from keywright.operations import Command, commit, owned, stored_set_equals
from keywright.testing.runs import Raw
from kinship import Residents, assert_whole, desk, home, survey


@pytest.fixture(params=["server", pytest.param("cluster", marks=pytest.mark.cluster)])
def anywhere(
    request: pytest.FixtureRequest, open_database: Callable[[str], Database]
) -> tuple[Database, Raw]:
    names = ("redis_url", "raw") if request.param == "server" else ("cluster_url", "raw_cluster")
    url, raw = map(request.getfixturevalue, names)
    return open_database(url), raw


def test_two_relations_are_written_and_ended_in_one_commit(anywhere: tuple[Database, Raw]) -> None:
    db, raw = anywhere
    free = [home.holds("ann", None), desk.holds("ann", None), desk.reversed().holds("two", None)]
    writes = [*home.joined("ann", "one"), *desk.joined("ann", "two")]
    assert db.run(commit("settle", free, writes)).applied
    found = survey(raw)
    assert_whole(found)
    assert (found.values["person:ann:home"], found.values["desk:two:occupant"]) == ("one", "ann")
    assert not db.run(commit("settle", free, writes)).applied
    held = [home.holds("ann", "one"), desk.holds("ann", "two")]
    assert db.run(commit("leave", held, [*home.parted("ann", "one"), *desk.parted("ann", "two")])).applied
    assert raw.names() == set()


@pytest.mark.parametrize(
    ("members", "holds"), [({"ann", "bob"}, True), ({"ann"}, False), ({"ann", "cleo"}, False), (set(), False)]
)
def test_a_set_is_compared_whole(members: set[str], holds: bool, anywhere: tuple[Database, Raw]) -> None:
    db, _ = anywhere
    key = Residents("one")
    db.run(key.add("ann", "bob"))
    check = stored_set_equals(key, [member.encode() for member in members])
    assert db.run(commit("compare", [check], [key.add("dora")])).applied is holds


def test_no_set_is_the_empty_set(anywhere: tuple[Database, Raw]) -> None:
    db, _ = anywhere
    key = Residents("none")
    assert db.run(commit("compare", [stored_set_equals(key, [])], [key.add("ann")])).applied


crowd = Keyspace("crowd", "More than a script takes at once.")


class Ranks(SortedSet[Id, int], key="ranks", space=crowd):
    """Who stands where."""


class Waiting(List[str], key="waiting", space=crowd):
    """Who waits."""


class Here(Set[Id], key="here", space=crowd):
    """Who is here."""


class Sealing(Value[str], key="sealing", space=crowd):
    """Written in the same commit."""


CROWD = [f"p{number}" for number in range(9_001)]
ORDER = {name: number for number, name in enumerate(CROWD)}


@pytest.mark.parametrize(
    ("write", "read", "found"),
    [
        (Ranks().add_many(ORDER), Ranks().range(), list(ORDER.items())),
        (Ranks().add_many(ORDER, when="absent"), Ranks().range(), list(ORDER.items())),
        (Waiting().push(*CROWD, end="left"), Waiting().range(), CROWD[::-1]),
        (Waiting().push(*CROWD), Waiting().range(), CROWD),
        (Here().add(*CROWD), Here().members(), set(CROWD)),
    ],
    ids=["ZADD", "ZADD NX", "LPUSH", "RPUSH", "SADD"],
)
def test_a_commit_may_write_more_than_lua_takes_at_once(
    write: Call[object], read: Call[object], found: object, anywhere: tuple[Database, Raw]
) -> None:
    db, _ = anywhere
    assert db.run(commit("gather", [owned(Sealing())], [Sealing().set("x"), write])).applied
    assert db.run(read) == found


def test_a_commit_may_remove_more_than_lua_takes_at_once(anywhere: tuple[Database, Raw]) -> None:
    db, _ = anywhere
    db.run(Ranks().add_many(ORDER))
    assert db.run(commit("leave", [owned(Ranks())], [Ranks().remove(*CROWD)])).applied
    assert db.run(Ranks().size()) == 0


@pytest.mark.parametrize(
    "write",
    [Sealing().take(), Sealing().swap("y"), Ranks().pop_highest(), Ranks().pop_lowest(), Here().add("ann")],
    ids=["GETDEL", "SET GET", "ZPOPMAX", "ZPOPMIN", "SADD"],
)
def test_a_commit_that_meets_another_type_writes_nothing(
    write: Command[object], anywhere: tuple[Database, Raw]
) -> None:
    db, raw = anywhere
    name = db.context.name(write.key)
    raw("RPUSH", name, "stray")
    with pytest.raises(WrongTypeError):
        db.run(commit("gather", [owned(Waiting())], [Waiting().push("ann"), write]))
    assert raw.names() == {name}


def test_a_commit_may_replace_a_key_of_another_type(anywhere: tuple[Database, Raw]) -> None:
    db, raw = anywhere
    raw("RPUSH", "sealing", "stray")
    assert db.run(
        commit("replace", [owned(Waiting())], [Waiting().push("ann"), Sealing().set("GET")])
    ).applied
    assert db.run(Sealing().get()) == "GET"
