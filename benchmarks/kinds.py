"""A class of every kind of key, and what is stored under it before reads are timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec

from benchmarks.workload import Meeting, meetings
from keywright import (
    BitFields,
    Bitmap,
    Bits,
    Call,
    Counter,
    Geo,
    HyperLogLog,
    Id,
    Keyspace,
    List,
    Map,
    Point,
    Record,
    Set,
    SortedSet,
    Stream,
    Value,
    gather_list,
)

__all__ = ["CALLS", "fill_all", "hash_of", "meeting_of", "space"]

CALLS = 1_000
space = Keyspace("bench-kinds", "A class of every kind.", prefix="bench")


class Meters(msgspec.Struct):
    humidity: Annotated[int, Bits(7)]
    celsius: Annotated[int, Bits(8, signed=True)]


class Seen(msgspec.Struct):
    page: str
    seconds: int


class AValue(Value[Meeting], key="value:<n>", space=space):
    n: Id


class ACounter(Counter, key="counter:<n>", space=space):
    n: Id


class ARecord(Record[Meeting], key="record:<n>", space=space):
    n: Id


class AMap(Map[str, int], key="map:<n>", space=space):
    n: Id


class ASet(Set[str], key="set:<n>", space=space):
    n: Id


class ASortedSet(SortedSet[str, float], key="sorted:<n>", space=space):
    n: Id


class AList(List[str], key="list:<n>", space=space):
    n: Id


class AStream(Stream[Seen], key="stream:<n>", space=space):
    n: Id


class AHyperLogLog(HyperLogLog[str], key="hyperloglog:<n>", space=space):
    n: Id


class ABitmap(Bitmap, key="bitmap:<n>", space=space, bits=500):
    n: Id


class AGeo(Geo[str], key="geo:<n>", space=space):
    n: Id


class ABitFields(BitFields[Meters], key="bitfields:<n>", space=space):
    n: Id


VALUES = meetings(CALLS)
MEMBERS = tuple(f"member {letter}" for letter in "abcde")
SCORES = {member: float(score) for score, member in enumerate(MEMBERS)}
PLACE = Point(13.3976, 52.5210)
ENTRY = Seen("/talks", 12)
METERS = Meters(humidity=61, celsius=-4)


def hash_of(meeting: Meeting) -> dict[str, str | int]:
    """Return the fields of a record, as a user of another client makes them."""
    return {
        "name": meeting.name,
        "time": meeting.time.isoformat(),
        "link": meeting.link,
        "urlname": meeting.urlname,
        "attending": meeting.attending,
    }


def meeting_of(stored: Mapping[bytes, bytes]) -> Meeting:
    return Meeting(
        stored[b"name"].decode(),
        datetime.fromisoformat(stored[b"time"].decode()),
        stored[b"link"].decode(),
        stored[b"urlname"].decode(),
        int(stored[b"attending"]),
    )


def fill_all(ids: Sequence[str]) -> Call[list[Any]]:
    """Write what reads return: one value, or five members."""
    calls: list[Call[Any]] = []
    for number, each in enumerate(ids):
        calls += [
            AValue(each).set(VALUES[number % CALLS]),
            ACounter(each).set(number),
            ARecord(each).put(VALUES[number % CALLS]),
            AMap(each).put_many({member: index for index, member in enumerate(MEMBERS)}),
            ASet(each).add(*MEMBERS),
            ASortedSet(each).add_many(SCORES),
            AList(each).push(*MEMBERS),
            AHyperLogLog(each).add(*MEMBERS),
            ABitmap(each).set(7),
            AGeo(each).add_many(dict.fromkeys(MEMBERS, PLACE)),
            ABitFields(each).put(METERS),
        ]
        calls += [AStream(each).add(ENTRY) for _ in MEMBERS]
    return gather_list(calls)
