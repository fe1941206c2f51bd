"""The keyspace that the accepted and the rejected uses share: every kind, every relation."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, NewType

import msgspec

from keywright import (
    BitFields,
    Bitmap,
    Bits,
    Counter,
    EpochSeconds,
    Geo,
    HyperLogLog,
    Id,
    Keyspace,
    List,
    Map,
    Plain,
    Record,
    Secret,
    Set,
    SnowflakeId,
    SortedSet,
    Stream,
    Value,
    index,
    many_to_many,
    many_to_one,
    one_to_one,
)

EventId = NewType("EventId", str)
SeriesId = NewType("SeriesId", str)
Event = Annotated[EventId, Plain()]
Series = Annotated[SeriesId, Plain()]

space = Keyspace("typed", "What type checkers see.")


class Details(msgspec.Struct):
    name: str
    time: datetime


class Happening(Record[Details], key="event:<event>", space=space):
    """A record."""

    event: Event


class SeriesOf(Value[Series], key="event:<event>:series", space=space):
    """A value that holds an id."""

    event: Event


class SeriesEvents(Set[Event], key="series:<series>:events", space=space):
    """A set of ids."""

    series: Series


class Visits(Value[int], key="visits:<user>", space=space):
    """A number."""

    user: SnowflakeId


class Note(Value[str], key="note:<user>:<number>", space=space):
    """A text, under two variables."""

    user: SnowflakeId
    number: int


class Token(Value[Secret[str]], key="token:<user>", space=space):
    """A secret."""

    user: SnowflakeId


class Total(Counter, key="total", space=space):
    """A counter without variables."""


class Ranking(SortedSet[Id, float], key="ranking:<board>", space=space):
    """Members by number."""

    board: Id


class Due(SortedSet[Id, datetime], key="due", space=space):
    """Members by time."""


class Expiring(SortedSet[Id, Annotated[datetime | None, EpochSeconds]], key="expiring", space=space):
    """Members by time, in seconds; some never expire."""


class Names(Map[SnowflakeId, str], key="names", space=space):
    """Ids to texts."""


class Tallies(Map[Id, int], key="tallies", space=space):
    """Ids to numbers."""


class Recent(List[Id], key="recent:<user>", space=space):
    """A list."""

    user: SnowflakeId


class Readers(HyperLogLog[Event], key="readers", space=space):
    """An estimate."""


class Stops(Geo[Event], key="stops", space=space):
    """Positions."""


class Seats(Bitmap, key="seats", space=space, bits=100):
    """Bits."""


class Small(msgspec.Struct):
    level: Annotated[int, Bits(5)]


class Level(BitFields[Small], key="level", space=space):
    """Bits with names."""


class Log(Stream[Details], key="log", space=space):
    """A stream."""


class Twin(Value[Series], key="twin:<event>", space=space):
    """One side of a pair."""

    event: Event


class TwinOf(Value[Event], key="twin_of:<series>", space=space):
    """The other side of a pair."""

    series: Series


class EventTags(Set[Series], key="event:<event>:tags", space=space):
    """One side of many to many."""

    event: Event


class TagEvents(Set[Event], key="tag:<series>:events", space=space):
    """The other side of many to many."""

    series: Series


class AllEvents(Set[Event], key="events", space=space):
    """An index."""


event_series = many_to_one(SeriesOf, inverse=SeriesEvents)
twins = one_to_one(Twin, inverse=TwinOf)
tags = many_to_many(EventTags, inverse=TagEvents)
all_events = index(Happening, by=AllEvents)
EVENT = EventId("abc")
SERIES = SeriesId("s1")
