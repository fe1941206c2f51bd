"""A town for the tests of relations: every kind of relation, each side in a slot of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from keywright import (
    Call,
    Counter,
    Database,
    Id,
    Keyspace,
    Set,
    Value,
    index,
    many_to_many,
    many_to_one,
    one_to_one,
    recover,
)
from keywright.engine.nodes import Batch
from keywright.operations import Reply, Wire
from keywright.testing.runs import Raw

town = Keyspace("town", "Who lives where, sits at which desk and belongs to which club.")


class Person(Value[str], key="person:<person>", space=town):
    """A person's name."""

    person: Id


class House(Value[str], key="house:<house>", space=town):
    """A house's address."""

    house: Id


class Club(Value[str], key="club:<club>", space=town):
    """A club's name."""

    club: Id


class HomeOf(Value[Id], key="person:<person>:home", space=town, part_of=Person):
    """The house a person lives in."""

    person: Id


class Residents(Set[Id], key="house:<house>:residents", space=town, part_of=House):
    """The people who live in a house."""

    house: Id


class DeskOf(Value[Id], key="person:<person>:desk", space=town, part_of=Person):
    """The desk of a person."""

    person: Id


class OccupantOf(Value[Id], key="desk:<desk>:occupant", space=town):
    """The person at a desk."""

    desk: Id


class ClubsOf(Set[Id], key="person:<person>:clubs", space=town, part_of=Person):
    """The clubs of a person."""

    person: Id


class MembersOf(Set[Id], key="club:<club>:members", space=town, part_of=Club):
    """The members of a club."""

    club: Id


class Housed(Set[Id], key="housed", space=town):
    """Everyone who has a home."""


class Seated(Set[Id], key="seated", space=town):
    """Everyone who has a desk."""


class DesksTaken(Set[Id], key="desks_taken", space=town):
    """Every desk that somebody has."""


class People(Set[Id], key="people", space=town):
    """Everyone who has a name."""


class Moves(Counter, key="moves", space=town):
    """How often somebody moved."""


home = many_to_one(HomeOf, inverse=Residents, index=Housed)
desk = one_to_one(DeskOf, inverse=OccupantOf, index=Seated, inverse_index=DesksTaken)
club = many_to_many(ClubsOf, inverse=MembersOf)
people = index(Person, by=People)

JOURNAL = b"keywright:"


class Town(NamedTuple):
    """The whole stored state, as raw redis-py reads it."""

    values: dict[str, str]
    sets: dict[str, frozenset[str]]
    journal: frozenset[str]

    def members(self, name: str) -> frozenset[str]:
        return self.sets.get(name, frozenset())


def survey(raw: Raw) -> Town:
    """Read every key without the library."""
    names = sorted(raw.names())
    stored = [name for name in names if not name.startswith(JOURNAL)]
    strings = {name for name in stored if raw("TYPE", name) in (b"string", "string")}
    return Town(
        {name.decode(): raw("GET", name).decode() for name in stored if name in strings},
        {
            name.decode(): frozenset(member.decode() for member in raw("SMEMBERS", name))
            for name in stored
            if name not in strings
        },
        frozenset(name.decode() for name in names if name.startswith(JOURNAL)),
    )


def assert_whole(found: Town) -> None:
    """Assert that both sides of every relation and the indexes agree, and that the journal is empty."""
    homes = _named(found.values, "person", "home")
    residents = _named(found.sets, "house", "residents")
    assert _pairs(homes) == _turned(residents)
    assert found.members("housed") == frozenset(homes)
    desks = _named(found.values, "person", "desk")
    occupants = _named(found.values, "desk", "occupant")
    assert {desk: person for person, desk in desks.items()} == occupants
    assert len(desks) == len(occupants)
    assert found.members("seated") == frozenset(desks)
    assert found.members("desks_taken") == frozenset(occupants)
    clubs = _named(found.sets, "person", "clubs")
    members = _named(found.sets, "club", "members")
    assert {(person, club) for person, joined in clubs.items() for club in joined} == _turned(members)
    named = {
        name.split(":")[1] for name in found.values if name.startswith("person:") and name.count(":") == 1
    }
    assert found.members("people") == named
    assert found.journal == frozenset()


def _named(keys: dict[str, Any], kind: str, field: str) -> dict[str, Any]:
    split = ((name.split(":"), value) for name, value in keys.items())
    return {parts[1]: value for parts, value in split if (parts[0], parts[-1]) == (kind, field)}


def _pairs(values: dict[str, str]) -> set[tuple[str, str]]:
    return set(values.items())


def _turned(sets: dict[str, frozenset[str]]) -> set[tuple[str, str]]:
    return {(member, name) for name, members in sets.items() for member in members}


def recover_all(database: Database) -> int:
    """Recover until nothing is left. Return how many commits were settled."""
    settled = 0
    while any(found := database.run(recover(grace=timedelta(0)))):
        assert found.waiting == 0
        settled += found.finished + found.undone
    return settled


class Mortal:
    """A process in the middle of a call, driven round trip by round trip, that may stop at any of them."""

    def __init__(self, database: Database, call: Call[Any]) -> None:
        self._database = database
        self._rounds = call.rounds(database.context)
        self.wires: Sequence[Wire] = next(self._rounds)

    def step(self) -> None:
        """Run one whole round trip. Raise StopIteration with the call's value at the end."""
        self.receive(self.send(range(len(self.wires))))

    def send(self, chosen: Iterable[int]) -> list[Reply]:
        """Send only some of the wires that are due: this is where a process may crash."""
        picked: Sequence[Wire] = [self.wires[number] for number in chosen]
        return self._database.run(Batch(picked))

    def receive(self, replies: list[Reply]) -> None:
        self.wires = self._rounds.send(replies)

    def finish(self) -> Any:
        """Run to the end."""
        try:
            while True:
                self.step()
        except StopIteration as stop:
            return stop.value
