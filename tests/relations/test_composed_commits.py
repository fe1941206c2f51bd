"""Relations as parts of a commit of one's own: their writes, their checks, and sets compared whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keywright import Database
from keywright.keyspace.guard import members_are
from keywright.keyspace.journal import commit
from kinship import Residents, assert_whole, desk, home, survey
from running import Raw


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
    check = members_are(key, [member.encode() for member in members])
    assert db.run(commit("compare", [check], [key.add("dora")])).applied is holds


def test_no_set_is_the_empty_set(anywhere: tuple[Database, Raw]) -> None:
    db, _ = anywhere
    key = Residents("none")
    assert db.run(commit("compare", [members_are(key, [])], [key.add("ann")])).applied
