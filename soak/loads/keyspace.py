"""The keyspace of the library's loads: relations, an index, claims, counters, lists and values."""

from __future__ import annotations

import msgspec

from keywright import (
    Claim,
    Counter,
    Id,
    Keyspace,
    List,
    Record,
    Set,
    Value,
    index,
    many_to_many,
    many_to_one,
    one_to_one,
)

__all__ = [
    "Hits",
    "Job",
    "JobRuns",
    "Log",
    "Moves",
    "Note",
    "Person",
    "Profile",
    "desk",
    "people",
    "space",
    "tag",
    "team",
]

space = Keyspace("soak", "The keys of the soak.")


class Person(msgspec.Struct):
    name: str
    age: int


class Profile(Record[Person], key="profile:<person>", space=space):
    """A person."""

    person: Id


class Profiles(Set[Id], key="profiles", space=space):
    """All people with a profile."""


class TeamOf(Value[Id], key="person:<person>:team", space=space):
    """The team of a person."""

    person: Id


class Members(Set[Id], key="team:<team>:members", space=space):
    """The members of a team."""

    team: Id


class DeskOf(Value[Id], key="person:<person>:desk", space=space):
    """The desk of a person."""

    person: Id


class Sitter(Value[Id], key="desk:<desk>:person", space=space):
    """The person at a desk."""

    desk: Id


class Tags(Set[Id], key="person:<person>:tags", space=space):
    """The tags of a person."""

    person: Id


class Tagged(Set[Id], key="tag:<tag>:people", space=space):
    """The people with a tag."""

    tag: Id


class Moves(Counter, key="moves:<person>", space=space):
    """How often a person was moved to another team: written with the move, not repeatable."""

    person: Id


class Hits(Counter, key="hits:<writer>", space=space):
    """The additions of a writer."""

    writer: Id


class Log(List[str], key="log:<block>", space=space):
    """The pushes of a writer, a thousand to a list."""

    block: Id


class Note(Value[str], key="note:<name>", space=space):
    """A value that is overwritten."""

    name: Id


class Job(Claim, key="job:{<number>}", space=space):
    """Work that one of the writers does, once."""

    number: Id


class JobRuns(Counter, key="job:{<number>}:runs", space=space):
    """How often the work was finished."""

    number: Id


team = many_to_one(TeamOf, inverse=Members)
desk = one_to_one(DeskOf, inverse=Sitter)
tag = many_to_many(Tags, inverse=Tagged)
people = index(Profile, by=Profiles)
