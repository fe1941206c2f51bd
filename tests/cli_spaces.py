"""Keyspaces that the command line loads by name: one faulty in every way, and one of each kind of key."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal

import msgspec

from keywright import (
    Counter,
    Id,
    Keyspace,
    List,
    Map,
    Plain,
    Record,
    Sealed,
    Secret,
    Set,
    SnowflakeId,
    SortedSet,
    Stream,
    Upgrade,
    Value,
    expires_in,
)

overlapping = Keyspace("overlapping", "Two templates make one name.")
ambiguous = Keyspace("ambiguous", "One name reads in two ways.")
undocumented = Keyspace("undocumented", "Nobody wrote down what is in it.")
queues = Keyspace("queues", "Lists under any name with a colon.")
results = Keyspace("results", "Values that share a database with the queues.")
apart = Keyspace("apart", "The same values under a prefix of their own.", prefix="{apart}")
former_results = Keyspace("former-results", "Results as an older version wrote them.", replaced_by=results)
kinds = Keyspace("kinds", "One key of each kind.", prefix="kinds")

Colons = Annotated[str, Plain(extra=":")]


class Event(Value[str], key="event:<event>", space=overlapping):
    """An event whose id may hold a colon."""

    event: Colons


class EventSeries(Value[str], key="event:<event>:series", space=overlapping):
    """Its series."""

    event: Id


@dataclass
class Line:
    text: str
    level: int = 0


class Queue(List[str], key="queue:<queue>", space=queues):
    """Messages that wait."""

    queue: Colons


class QueueResult(Value[str], key="queue:<queue>:result", space=results):
    """The result of a queue."""

    queue: Id


class ResultApart(Value[str], key="queue:<queue>:result", space=apart):
    """The result of a queue, where no queue is."""

    queue: Id


class FormerResult(Record[Line], key="queue:<queue>:result", space=former_results):
    """The result of a queue in an older version."""

    queue: Id


class Path(Value[str], key="path:<above>:<below>", space=ambiguous):
    """A template whose variable has no clear end."""

    above: Colons
    below: Colons


class Mystery(Value[str], key="mystery", space=undocumented):
    pass


class Colour(enum.Enum):
    RED = "red"


class Order(msgspec.Struct, rename="camel"):
    placed_at: datetime
    colour: Colour
    buyer: SnowflakeId
    note: str | None = None
    password: Annotated[Secret[str], Sealed] | None = None


class Cat(msgspec.Struct):
    kind: Literal["cat"]
    lives: int


class Dog(msgspec.Struct):
    kind: Literal["dog"]
    tricks: list[str]


class Orders(Record[Order], key="order:<order>", space=kinds):
    """A record with hidden members."""

    order: Id


class Pets(Record[Cat | Dog], key="pet:<pet>", space=kinds):
    """A record of two shapes."""

    pet: Id


def _from_v1(stored: dict[bytes, bytes], key: object) -> Line:
    return Line(stored[b"message"].decode())


class Versioned(
    Record[Line],
    key="versioned",
    space=kinds,
    upgrades=[Upgrade("v1", lambda stored: b"message" in stored, _from_v1)],
):
    """A record that had another shape before."""


class Members(Set[SnowflakeId], key="members", space=kinds):
    """Ids beyond 2**53."""


class Tokens(Set[Secret[str]], key="tokens", space=kinds):
    """Secrets."""


class Due(SortedSet[Id, datetime], key="due", space=kinds):
    """Members by time."""


class Ranks(SortedSet[Id, float], key="ranks", space=kinds):
    """Members by number."""


class Names(Map[SnowflakeId, str], key="names", space=kinds):
    """Ids to texts."""


class Hidden(Map[Secret[str], int], key="hidden", space=kinds):
    """Secrets to numbers."""


class Recent(List[Id], key="recent", space=kinds):
    """A list."""


class Log(Stream[Line], key="log", space=kinds):
    """A stream."""


class Total(Counter, key="total", space=kinds):
    """A counter."""


class Blob(Value[bytes], key="blob", space=kinds):
    """Bytes."""


class Session(
    Value[str], key="session", space=kinds, expiry=expires_in(timedelta(hours=1), since="last use")
):
    """A value whose expiry slides."""


class Visitors(Set[Id], key="visitors", space=kinds, expiry=expires_in(timedelta(hours=1), since="last use")):
    """A set whose expiry slides."""


class Sealing(Value[Annotated[str, Sealed]], key="sealing", space=kinds):
    """A sealed text."""


class Settings(Value[dict[str, int]], key="settings", space=kinds):
    """JSON."""
