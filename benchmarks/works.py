"""The main read and write of every kind of key: how Keywright calls them, and how a user of redis-py does.

Both sides build the names of keys, encode and decode. A read has keys of its own, which no write changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from benchmarks.kinds import (
    CALLS,
    ENTRY,
    METERS,
    PLACE,
    VALUES,
    ABitFields,
    ABitmap,
    ACounter,
    AGeo,
    AHyperLogLog,
    AList,
    AMap,
    ARecord,
    ASet,
    ASortedSet,
    AStream,
    AValue,
    Meters,
    Seen,
    hash_of,
    meeting_of,
)
from benchmarks.workload import decode_meeting, encode_meeting
from keywright import Call, gather_list

__all__ = ["MIXED", "WORK", "Fill", "Read", "Work"]

Fill: TypeAlias = Callable[[Any, str, int], object]
"""Adds the command for the key of a number to a pipeline."""
Read: TypeAlias = Callable[[Any], Any]
"""Returns the value that a reply stands for."""


def _plain_score(pairs: Sequence[tuple[bytes, float]]) -> list[tuple[str, float]]:
    return [(member.decode(), score) for member, score in pairs]


def _entries(reply: Sequence[tuple[bytes, Mapping[bytes, bytes]]]) -> list[Seen]:
    return [Seen(fields[b"page"].decode(), int(fields[b"seconds"])) for _, fields in reply]


def _position(reply: Sequence[tuple[float, float]]) -> tuple[float, float]:
    longitude, latitude = reply[0]
    return round(longitude, 4), round(latitude, 4)


class Work(NamedTuple):
    """One operation on the key of a number."""

    kind: str
    name: str
    command: str
    call: Callable[[str, int], Call[Any]]
    fill: Fill
    read: Read | None = None
    """How a user of redis-py decodes a reply; None for a write."""
    plain: Read | None = None
    """Turns our value into the same form, where a user of redis-py has no such type."""

    @property
    def subject(self) -> str:
        return f"{self.kind}: {self.name} ({self.command})"

    def batch(self, ids: Sequence[str]) -> Call[list[Any]]:
        call = self.call
        return gather_list([call(each, number) for number, each in enumerate(ids)])

    def filled(self, pipe: Any, ids: Sequence[str]) -> None:
        fill = self.fill
        for number, each in enumerate(ids):
            fill(pipe, each, number)

    def values(self, replies: Sequence[Any]) -> list[Any]:
        return list(map(self.read, replies)) if self.read else list(replies)

    def plainly(self, values: Sequence[Any]) -> list[Any]:
        return list(map(self.plain, values)) if self.plain else list(values)


def _put_by_hand(pipe: Any, each: str, number: int) -> None:
    pipe.delete(f"bench:record:{each}")
    pipe.hset(f"bench:record:{each}", mapping=hash_of(VALUES[number % CALLS]))


def _number(reply: bytes | None) -> int:
    return int(reply or 0)


def _texts(reply: Sequence[bytes]) -> list[str]:
    return [each.decode() for each in reply]


def _text_set(reply: Sequence[bytes]) -> set[str]:
    return {each.decode() for each in reply}


WORK: tuple[Work, ...] = (
    Work(
        "value",
        "set",
        "SET",
        lambda i, n: AValue(i).set(VALUES[n % CALLS]),
        lambda p, i, n: p.set(f"bench:value:{i}", encode_meeting(VALUES[n % CALLS])),
    ),
    Work(
        "value",
        "get",
        "GET",
        lambda i, n: AValue(i).get(),
        lambda p, i, n: p.get(f"bench:value:{i}"),
        decode_meeting,
    ),
    Work(
        "counter",
        "add",
        "INCRBY",
        lambda i, n: ACounter(i).add(),
        lambda p, i, n: p.incrby(f"bench:counter:{i}", 1),
    ),
    Work(
        "counter",
        "get",
        "GET",
        lambda i, n: ACounter(i).get(),
        lambda p, i, n: p.get(f"bench:counter:{i}"),
        _number,
    ),
    Work(
        "record",
        "write",
        "HSET",
        lambda i, n: ARecord(i).write(VALUES[n % CALLS]),
        lambda p, i, n: p.hset(f"bench:record:{i}", mapping=hash_of(VALUES[n % CALLS])),
    ),
    Work(
        "record",
        "put",
        "DEL and HSET",
        lambda i, n: ARecord(i).put(VALUES[n % CALLS]),
        _put_by_hand,
    ),
    Work(
        "record",
        "get",
        "HGETALL",
        lambda i, n: ARecord(i).get(),
        lambda p, i, n: p.hgetall(f"bench:record:{i}"),
        meeting_of,
    ),
    Work(
        "map",
        "put",
        "HSET",
        lambda i, n: AMap(i).put("visits", n),
        lambda p, i, n: p.hset(f"bench:map:{i}", "visits", n),
    ),
    Work(
        "map",
        "get",
        "HGET",
        lambda i, n: AMap(i).get("member c"),
        lambda p, i, n: p.hget(f"bench:map:{i}", "member c"),
        _number,
    ),
    Work(
        "set",
        "add",
        "SADD",
        lambda i, n: ASet(i).add("member a"),
        lambda p, i, n: p.sadd(f"bench:set:{i}", "member a"),
    ),
    Work(
        "set",
        "members",
        "SMEMBERS",
        lambda i, n: ASet(i).members(),
        lambda p, i, n: p.smembers(f"bench:set:{i}"),
        _text_set,
    ),
    Work(
        "sorted set",
        "add",
        "ZADD",
        lambda i, n: ASortedSet(i).add("member a", float(n)),
        lambda p, i, n: p.zadd(f"bench:sorted:{i}", {"member a": float(n)}, ch=True),
    ),
    Work(
        "sorted set",
        "range",
        "ZRANGE",
        lambda i, n: ASortedSet(i).range(),
        lambda p, i, n: p.zrange(f"bench:sorted:{i}", 0, -1, withscores=True),
        _plain_score,
    ),
    Work(
        "list",
        "push",
        "RPUSH",
        lambda i, n: AList(i).push("an item"),
        lambda p, i, n: p.rpush(f"bench:list:{i}", "an item"),
    ),
    Work(
        "list",
        "range",
        "LRANGE",
        lambda i, n: AList(i).range(),
        lambda p, i, n: p.lrange(f"bench:list:{i}", 0, -1),
        _texts,
    ),
    Work(
        "stream",
        "add",
        "XADD",
        lambda i, n: AStream(i).add(ENTRY),
        lambda p, i, n: p.xadd(f"bench:stream:{i}", {"page": ENTRY.page, "seconds": ENTRY.seconds}),
    ),
    Work(
        "stream",
        "range",
        "XRANGE",
        lambda i, n: AStream(i).range(),
        lambda p, i, n: p.xrange(f"bench:stream:{i}"),
        _entries,
        lambda found: [entry.value for entry in found],
    ),
    Work(
        "hyperloglog",
        "add",
        "PFADD",
        lambda i, n: AHyperLogLog(i).add("member a"),
        lambda p, i, n: p.pfadd(f"bench:hyperloglog:{i}", "member a"),
    ),
    Work(
        "hyperloglog",
        "estimate",
        "PFCOUNT",
        lambda i, n: AHyperLogLog(i).estimate(),
        lambda p, i, n: p.pfcount(f"bench:hyperloglog:{i}"),
        int,
    ),
    Work(
        "bitmap",
        "set",
        "SETBIT",
        lambda i, n: ABitmap(i).set(77),
        lambda p, i, n: p.setbit(f"bench:bitmap:{i}", 77, 1),
    ),
    Work(
        "bitmap",
        "get",
        "GETBIT",
        lambda i, n: ABitmap(i).get(7),
        lambda p, i, n: p.getbit(f"bench:bitmap:{i}", 7),
        bool,
    ),
    Work(
        "geo",
        "add",
        "GEOADD",
        lambda i, n: AGeo(i).add("north", PLACE),
        lambda p, i, n: p.geoadd(f"bench:geo:{i}", (*PLACE, "north"), ch=True),
    ),
    Work(
        "geo",
        "position",
        "GEOPOS",
        lambda i, n: AGeo(i).position("member a"),
        lambda p, i, n: p.geopos(f"bench:geo:{i}", "member a"),
        _position,
        lambda point: (round(point.longitude, 4), round(point.latitude, 4)),
    ),
    Work(
        "bit fields",
        "put",
        "BITFIELD",
        lambda i, n: ABitFields(i).put(METERS),
        lambda p, i, n: p.execute_command(
            "BITFIELD",
            f"bench:bitfields:{i}",
            "SET",
            "u7",
            0,
            METERS.humidity,
            "SET",
            "i8",
            7,
            METERS.celsius,
        ),
    ),
    Work(
        "bit fields",
        "get",
        "BITFIELD",
        lambda i, n: ABitFields(i).get(),
        lambda p, i, n: p.execute_command("BITFIELD", f"bench:bitfields:{i}", "GET", "u7", 0, "GET", "i8", 7),
        lambda reply: Meters(*reply),
    ),
)

_MIXED = tuple(
    work
    for work in WORK
    if work.subject in {"value: get (GET)", "set: add (SADD)", "sorted set: add (ZADD)", "map: put (HSET)"}
)
MIXED = Work(
    "mixed",
    "a quarter each",
    "GET, HSET, SADD, ZADD",
    lambda i, n: _MIXED[n % 4].call(i, n),
    lambda p, i, n: _MIXED[n % 4].fill(p, i, n),
)
