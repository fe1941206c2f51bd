"""One key of every kind with many good entries, and for each finding code one bad entry, or why not.

`TABLE` has a row for each kind and in it a cell for each code, so that no combination is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from redis import Redis

from garden import (
    BadgeOf,
    BitFieldsOf,
    BitmapOf,
    ClaimOf,
    CounterOf,
    DueQueueOf,
    Gardeners,
    GeoOf,
    HyperLogLogOf,
    Lasting,
    LastingClaim,
    LastingCounter,
    LastingList,
    LastingMap,
    LastingRecord,
    LastingSet,
    LastingSorted,
    LastingStream,
    LeaseOf,
    LikedBy,
    Likes,
    ListOf,
    MapOf,
    Older,
    OlderRecord,
    Opaque,
    OpaqueOf,
    PlotOf,
    RecordOf,
    SealedList,
    SealedMap,
    SealedRecord,
    SealedStream,
    SealedValue,
    SetOf,
    SortedSetOf,
    StreamOf,
    Strict,
    Tool,
    Tools,
    UnionOf,
    UnionStreamOf,
    ValueOf,
    WearerOf,
    Working,
)
from keywright import Database, Key
from keywright.keyspace.codecs import Plaintext
from keywright.tools.audit.findings import CODES

DAY_MS = 86_400_000

Entry = Any
"""The bytes of an item or string, a member and its score, a field and its value, the members of a stream."""
Good = Callable[[Database, Any, int], Entry]
"""Makes the nth good entry of a key."""
Bad = Callable[[Database], Entry]


class OneEntry(NamedTuple):
    """One entry is bad: it is removed, and all others stay."""

    key: Key
    good: Good
    bad: Bad


class WholeKey(NamedTuple):
    """The key as a whole is bad, and `why`: it is removed, and all other keys stay."""

    why: str
    key: Key | bytes
    good: Good
    bad: Bad | None = None
    """The entry that makes the key bad; None if the key is bad whatever it holds."""
    redis_type: str | None = None
    """The type it is stored with, if not that of its class."""


class InPlace(NamedTuple):
    """Nothing is removed: the key is corrected. `undone` is False where the correction is not undone."""

    why: str
    key: Key
    good: Good
    bad: Bad | None = None
    then: tuple[str | bytes, ...] = ()
    """The command that does the damage, if no entry does."""
    undone: bool = True


class Untouched(NamedTuple):
    """The repair leaves it to a person, and changes nothing."""

    why: str
    key: Key
    good: Good
    bad: Bad


class Impossible(NamedTuple):
    """The finding cannot be made about this kind."""

    why: str


Cell = OneEntry | WholeKey | InPlace | Untouched | Impossible


def plant(n: int) -> bytes:
    return b"p%d" % n


def _seal(db: Database, key: Key, text: bytes, member: bytes = b"") -> bytes:
    sealed: bytes = db.context.seal(key, (Plaintext.of(text, member),))[0]
    return sealed


def _broken(db: Database, key: Key) -> bytes:
    sealed = _seal(db, key, b"broken")
    return sealed[:-1] + bytes([sealed[-1] ^ 1])


def _item(_: Database, _key: Any, n: int) -> Entry:
    return plant(n)


def _estimate(_: Database, _key: Any, n: int) -> Entry:
    """Return an empty HyperLogLog with an estimate of n in its cache."""
    return b"HYLL\x01\0\0\0" + n.to_bytes(8, "little") + b"\x7f\xff"


def _scored(_: Database, _key: Any, n: int) -> Entry:
    return plant(n), b"%d" % (1000 + n)


def _row(_: Database, _key: Any, n: int) -> Entry:
    return b"row%d" % n, plant(n)


def _litres(_: Database, _key: Any, n: int) -> Entry:
    return {b"plant": plant(n), b"litres": b"%d" % n}


def _event(_: Database, _key: Any, n: int) -> Entry:
    return {b"event": b"sown", b"plant": plant(n)} if n % 2 else {b"event": b"dug", b"depth": b"%d" % n}


def _members(*entries: tuple[bytes, bytes]) -> Good:
    """Return the members of a record, as many as it has."""
    return lambda _, _key, n: entries[n % len(entries)]


def _wide(*_: Any) -> Entry:
    return b"wide", b"3"


def _plot(*_: Any) -> Entry:
    return b"plot"


def _gardener(_: Database, _key: Any, n: int) -> Entry:
    return b"g%d" % n


def _number(_: Database, _key: Any, n: int) -> Entry:
    return b"%d" % n


_bed = _members((b"width", b"3"), (b"plant", b"p0"))
_sown = _members((b"event", b"sown"), (b"plant", b"p0"))


def _pin(db: Database, key: Any, n: int) -> Entry:
    return _seal(db, key, b"%d" % n)


def _gate_pin(db: Database, key: Any, n: int) -> Entry:
    field = b"gate%d" % n
    return field, _seal(db, key, b"%d" % n, field)


def _used_pin(db: Database, key: Any, n: int) -> Entry:
    return {b"pin": _seal(db, key, b"%d" % n, b"pin")}


def _in_clear(_: Database) -> bytes:
    return b"in clear"


NOT_ACTED_ON = {
    "KW206": "the member may belong to other software, and no repair acts on it",
    "KW207": "a group is created on demand only: tests/tools/test_consumer_groups.py",
    "KW208": "another program may use the group, and no repair acts on it",
    "KW303": "its writer may want the expiry, and no repair acts on it",
    "KW304": "only newer servers have it: tests/tools/test_field_expiry.py",
    "KW305": "its writer may want the expiry, and no repair acts on it",
    "KW501": "a budget is about a template, and no repair acts on it",
    "KW502": "it was not read, and no repair acts on it",
    "KW602": "no repair acts on a note",
    "KW603": "no repair acts on it until another finding is repaired",
}
UNRELATED = dict.fromkeys(
    ("KW402", "KW403", "KW404", "KW405"), "relations and indexes are made of Value and Set"
)
NO_SHAPES = {"KW103": "only a Value or a Record has upgrades"}
NO_SEAL = dict.fromkeys(("KW204", "KW205"), "its bytes cannot be declared sealed")
COMPARED = dict.fromkeys(("KW204", "KW205"), "the server compares its members, so they cannot be sealed")
NO_EXPIRY = dict.fromkeys(("KW301", "KW302"), "its class cannot declare an expiry")
NO_MEMBERS = {"KW203": "it has no members that a declaration could require"}
NO_RULE = {"KW601": "a rule about one value is about the key: tests/tools/test_invariants.py"}


def _row_of(stored: Good, key: Key, cells: dict[str, Cell], *reasons: dict[str, str]) -> dict[str, Cell]:
    """Return the row of a kind: its own cells, those that are about a name or a type, and reasons."""
    redis_type = key.redis_type
    row: dict[str, Cell] = {
        code: Impossible(why) for each in (NOT_ACTED_ON, *reasons) for code, why in each.items()
    }
    stranger = b"g:v1:stranger:" + redis_type.encode()
    row["KW101"] = WholeKey("no template says what it is", stranger, stored, redis_type=redis_type)
    former = b"g:v0:" + bytes(key)
    row["KW102"] = WholeKey("the name has the version", former, stored, redis_type=redis_type)
    wrong = "set" if redis_type == "string" else "string"
    other_type = WholeKey("a key has one type", key, _item, redis_type=wrong)
    return row | {"KW201": other_type} | cells


def _expiring(key: Key, good: Good) -> dict[str, Cell]:
    why, name = "an expiry is the key's", b"g:v1:" + bytes(key)
    return {
        "KW301": InPlace(why, key, good),
        "KW302": InPlace(why, key, good, then=(b"PEXPIRE", name, str(3 * DAY_MS))),
    }


TESTED = "tested"
GARDENERS, WORKING = b"g:v1:plot:plot:gardeners", b"g:v1:working"
value, record, union, strict = ValueOf(TESTED), RecordOf(TESTED), UnionOf(TESTED), Strict(TESTED)
a_set, a_sorted_set, due = SetOf(TESTED), SortedSetOf(TESTED), DueQueueOf(TESTED)
a_list, a_map, stream, events = ListOf(TESTED), MapOf(TESTED), StreamOf(TESTED), UnionStreamOf(TESTED)
counter, lease, claim, opaque = CounterOf("p0"), LeaseOf("p0"), ClaimOf("p0"), Opaque(TESTED)
sealed_value, sealed_record, sealed_list = SealedValue(TESTED), SealedRecord(TESTED), SealedList(TESTED)
sealed_map, sealed_stream = SealedMap(TESTED), SealedStream(TESTED)
ONE_VALUE = "a string is one value"
BY_NAME = "the name refers, not an entry"

bitmap, bits, estimate = BitmapOf(TESTED), BitFieldsOf(TESTED), HyperLogLogOf(TESTED)
geo, module = GeoOf(TESTED), OpaqueOf(TESTED)
ONE_STRING = (
    dict.fromkeys(("KW301", "KW302", "KW401"), "as for Counter"),
    NO_MEMBERS,
    NO_SHAPES,
    NO_SEAL,
    UNRELATED,
    NO_RULE,
)

TABLE: dict[str, dict[str, Cell]] = {
    "Value": _row_of(
        _item,
        value,
        {
            "KW103": InPlace("it is upgraded", Older(TESTED), _item, lambda _: b"old p1", undone=False),
            "KW202": WholeKey(ONE_VALUE, value, _item, lambda _: b"\xff"),
            "KW204": InPlace("it is sealed", sealed_value, _pin, _in_clear, undone=False),
            "KW205": WholeKey(ONE_VALUE, sealed_value, _pin, lambda db: _broken(db, sealed_value)),
            "KW401": WholeKey(ONE_VALUE, value, _item, lambda _: b"gone"),
            "KW402": InPlace(
                "the other side gets an entry", PlotOf("g1"), _plot, then=("SREM", GARDENERS, "g1")
            ),
            "KW403": WholeKey(ONE_VALUE, WearerOf("b1"), lambda *_: b"ghost"),
            "KW404": Impossible("an index is a Set"),
            "KW405": InPlace("the index gets an entry", PlotOf("g2"), _plot, then=("SREM", WORKING, "g2")),
            **_expiring(Lasting(TESTED), _item),
        },
        NO_MEMBERS,
        NO_RULE,
    ),
    "Counter": _row_of(
        _number,
        counter,
        {
            "KW202": WholeKey(ONE_VALUE, counter, _number, lambda _: b"many"),
            "KW401": WholeKey(BY_NAME, CounterOf("gone"), _number),
            **_expiring(LastingCounter(TESTED), _number),
        },
        NO_MEMBERS,
        NO_SHAPES,
        NO_SEAL,
        UNRELATED,
        NO_RULE,
    ),
    "Lease": _row_of(
        _item,
        lease,
        {
            "KW202": WholeKey(ONE_VALUE, lease, _item, lambda _: b"\xff"),
            "KW401": WholeKey(BY_NAME, LeaseOf("gone"), _item),
        },
        NO_MEMBERS,
        NO_SHAPES,
        NO_SEAL,
        UNRELATED,
        NO_EXPIRY,
        NO_RULE,
    ),
    "Claim": _row_of(
        _item,
        claim,
        {
            "KW202": WholeKey(ONE_VALUE, claim, _item, lambda _: b"\xff"),
            "KW401": WholeKey(BY_NAME, ClaimOf("gone"), _item),
            **_expiring(LastingClaim(TESTED), _item),
        },
        NO_MEMBERS,
        NO_SHAPES,
        NO_SEAL,
        UNRELATED,
        NO_RULE,
    ),
    "Bitmap": _row_of(
        _item,
        bitmap,
        {"KW202": WholeKey(ONE_VALUE, bitmap, _item, lambda _: bytes(9))},
        *ONE_STRING,
    ),
    "BitFields": _row_of(
        _item,
        bits,
        {"KW202": WholeKey(ONE_VALUE, bits, _item, lambda _: bytes(5))},
        *ONE_STRING,
    ),
    "HyperLogLog": _row_of(
        _estimate,
        estimate,
        {"KW202": WholeKey(ONE_VALUE, estimate, _estimate, lambda _: b"HYLL")},
        *ONE_STRING,
    ),
    "Geo": _row_of(
        _scored,
        geo,
        {"KW202": OneEntry(geo, _scored, lambda _: (b"nowhere", b"-1"))},
        dict.fromkeys(("KW301", "KW302", "KW401", "KW601"), "as for SortedSet"),
        NO_MEMBERS,
        NO_SHAPES,
        COMPARED,
        UNRELATED,
    ),
    "Opaque": _row_of(
        _item,
        module,
        {},
        dict.fromkeys(("KW301", "KW302"), "tests/tools/test_module_types.py"),
        dict.fromkeys(("KW202", "KW203", "KW401", "KW601"), "its bytes mean nothing to the tools"),
        NO_SHAPES,
        NO_SEAL,
        UNRELATED,
    ),
    "JsonDocument": dict.fromkeys(
        CODES, Impossible("tests/kinds/test_json_document.py has a server with JSON")
    ),
    "Key": _row_of(
        _item,
        opaque,
        {},
        dict.fromkeys(("KW202", "KW203", "KW401", "KW601"), "its bytes mean nothing to the tools"),
        NO_SHAPES,
        NO_SEAL,
        UNRELATED,
        NO_EXPIRY,
    ),
    "Record": _row_of(
        _bed,
        record,
        {
            "KW103": InPlace(
                "it is upgraded", OlderRecord(TESTED), _wide, lambda _: (b"wide", b"4"), undone=False
            ),
            "KW202": OneEntry(record, _bed, lambda _: (b"length", b"long")),
            "KW203": WholeKey(
                "a record without a required member cannot be read",
                strict,
                _members((b"width", b"3"), (b"length", b"4")),
            ),
            "KW204": InPlace(
                "the member is sealed",
                sealed_record,
                _members((b"name", b"east")),
                lambda _: (b"pin", b"1"),
                undone=False,
            ),
            "KW205": OneEntry(
                sealed_record, _members((b"name", b"east")), lambda db: (b"spare", _broken(db, sealed_record))
            ),
            "KW401": WholeKey(
                "the value of a record refers, whatever members it is made of",
                record,
                _members((b"width", b"3")),
                lambda _: (b"plant", b"gone"),
            ),
            "KW404": Impossible("an index is a Set"),
            "KW405": InPlace("the index gets an entry", Tool("t1"), _bed, then=("SREM", "g:v1:tools", "t1")),
            **_expiring(LastingRecord(TESTED), _bed),
        },
        dict.fromkeys(("KW402", "KW403"), "a relation is made of Value and Set"),
        NO_RULE,
    ),
    "Record of a union": _row_of(
        _sown,
        union,
        {
            "KW202": OneEntry(union, _sown, lambda _: (b"seeds", b"many")),
            "KW203": WholeKey("without its tag a union cannot be read", union, _members((b"plant", b"p0"))),
            "KW401": WholeKey(
                "the value of a record refers, whatever members it is made of",
                union,
                _members((b"event", b"sown")),
                lambda _: (b"plant", b"gone"),
            ),
        },
        dict.fromkeys(("KW103", "KW204", "KW205", "KW301", "KW302", "KW405", "KW601"), "as for Record"),
        dict.fromkeys(("KW402", "KW403", "KW404"), "relations are made of Value and Set"),
    ),
    "Set": _row_of(
        _item,
        a_set,
        {
            "KW202": OneEntry(a_set, _item, lambda _: b"\xff"),
            "KW401": OneEntry(a_set, _item, lambda _: b"gone"),
            "KW402": InPlace(
                "the other side gets an entry", Likes("g1"), _item, then=("SREM", b"g:v1:liked:p0:by", "g1")
            ),
            "KW403": OneEntry(Gardeners("plot"), _gardener, lambda _: b"ghost"),
            "KW404": OneEntry(Working(), _gardener, lambda _: b"ghost"),
            "KW405": Impossible("the finding is about the record that the set does not name"),
            "KW601": OneEntry(a_set, _item, lambda _: b"weed"),
            **_expiring(LastingSet(TESTED), _item),
        },
        NO_MEMBERS,
        NO_SHAPES,
        COMPARED,
    ),
    "SortedSet": _row_of(
        _scored,
        a_sorted_set,
        {
            "KW202": OneEntry(a_sorted_set, _scored, lambda _: (b"high", b"0.5")),
            "KW401": OneEntry(a_sorted_set, _scored, lambda _: (b"gone", b"1003")),
            "KW601": OneEntry(a_sorted_set, _scored, lambda _: (b"weed", b"1003")),
            **_expiring(LastingSorted(TESTED), _scored),
        },
        NO_MEMBERS,
        NO_SHAPES,
        COMPARED,
        UNRELATED,
    ),
    "DueQueue": _row_of(
        _scored,
        due,
        {
            "KW202": OneEntry(due, _scored, lambda _: (b"\xff", b"1003")),
            "KW401": OneEntry(due, _scored, lambda _: (b"gone", b"1003")),
            "KW601": OneEntry(due, _scored, lambda _: (b"weed", b"1003")),
        },
        NO_MEMBERS,
        NO_SHAPES,
        COMPARED,
        UNRELATED,
        NO_EXPIRY,
    ),
    "List": _row_of(
        _item,
        a_list,
        {
            "KW202": OneEntry(a_list, _item, lambda _: b"\xff"),
            "KW204": Untouched(
                "an item cannot be sealed in its place",
                sealed_list,
                _pin,
                _in_clear,
            ),
            "KW205": OneEntry(sealed_list, _pin, lambda db: _broken(db, sealed_list)),
            "KW401": OneEntry(a_list, _item, lambda _: b"gone"),
            "KW601": Untouched("LREM cannot be undone", a_list, _item, lambda _: b"weed"),
            **_expiring(LastingList(TESTED), _item),
        },
        NO_MEMBERS,
        NO_SHAPES,
        UNRELATED,
    ),
    "Map": _row_of(
        _row,
        a_map,
        {
            "KW202": OneEntry(a_map, _row, lambda _: (b"row", b"\xff")),
            "KW204": InPlace(
                "the value is sealed",
                sealed_map,
                _gate_pin,
                lambda _: (b"gate", b"1"),
                undone=False,
            ),
            "KW205": OneEntry(
                sealed_map,
                _gate_pin,
                lambda db: (b"gate", _broken(db, sealed_map)),
            ),
            "KW401": OneEntry(a_map, _row, lambda _: (b"row", b"gone")),
            "KW601": OneEntry(a_map, _row, lambda _: (b"weed", b"p0")),
            **_expiring(LastingMap(TESTED), _row),
        },
        NO_MEMBERS,
        NO_SHAPES,
        UNRELATED,
    ),
    "Stream": _row_of(
        _litres,
        stream,
        {
            "KW202": OneEntry(stream, _litres, lambda _: {b"plant": b"p0", b"litres": b"many"}),
            "KW203": OneEntry(stream, _litres, lambda _: {b"plant": b"p0"}),
            "KW204": Untouched(
                "an entry cannot be changed",
                sealed_stream,
                _used_pin,
                lambda _: {b"pin": b"1"},
            ),
            "KW205": OneEntry(
                sealed_stream,
                _used_pin,
                lambda db: {b"pin": _broken(db, sealed_stream)},
            ),
            "KW401": OneEntry(stream, _litres, lambda _: {b"plant": b"gone", b"litres": b"1"}),
            "KW601": Untouched(
                "XDEL cannot be undone", stream, _litres, lambda _: {b"plant": b"weed", b"litres": b"1"}
            ),
            **_expiring(LastingStream(TESTED), _litres),
        },
        NO_SHAPES,
        UNRELATED,
    ),
    "Stream of a union": _row_of(
        _event,
        events,
        {
            "KW202": OneEntry(events, _event, lambda _: {b"event": b"eaten"}),
            "KW203": OneEntry(events, _event, lambda _: {b"depth": b"3"}),
            "KW401": OneEntry(events, _event, lambda _: {b"event": b"sown", b"plant": b"gone"}),
        },
        dict.fromkeys(("KW204", "KW205", "KW301", "KW302", "KW601"), "as for Stream"),
        NO_SHAPES,
        UNRELATED,
    ),
}

RELATED = (PlotOf, Gardeners, Working, BadgeOf, WearerOf, Likes, LikedBy, Tool, Tools)
BED = 24
"""How many plants, and gardeners, a stocked garden has."""

CELLS = [
    (kind, code, cell)
    for kind, row in TABLE.items()
    for code, cell in row.items()
    if not isinstance(cell, Impossible)
]


def stock(db: Database, client: Redis, plants: int = BED) -> None:
    """Fill a garden with nothing but good keys: of every class one, and relations that are complete."""
    with client.pipeline(transaction=False) as pipe:
        for name in (b"weed", *map(plant, range(plants))):
            pipe.set(b"g:v1:plant:" + name, b"a plant")
        for n in range(BED):
            pipe.set(b"g:v1:gardener:g%d:plot" % n, b"plot")
            pipe.sadd(GARDENERS, b"g%d" % n)
            pipe.sadd(WORKING, b"g%d" % n)
            pipe.sadd("g:v1:gardener:g1:likes", plant(n))
            pipe.sadd("g:v1:gardener:g2:likes", plant(n))
            pipe.sadd(b"g:v1:liked:%s:by" % plant(n), "g1", "g2")
            pipe.hset(f"g:v1:tool:t{n}", "width", "1")
            pipe.sadd("g:v1:tools", f"t{n}")
        pipe.set("g:v1:plot:plot", "fertile")
        pipe.set("g:v1:gardener:g0:badge", "b0")
        pipe.set("g:v1:badge:b0:wearer", "g0")
        pipe.execute()
    for _, code, cell in CELLS:
        if isinstance(cell.key, (bytes, *RELATED)) or code not in ("KW202", "KW205", "KW301", "KW401"):
            continue
        kind: Any = type(cell.key)
        bystander = kind("p1" if kind.declaration.arguments == ("plant",) else "other")
        name = db.context.name(bystander)
        client.delete(name)
        write(client, kind.redis_type, name, [cell.good(db, bystander, n) for n in range(3)])
        if kind.declaration.expiry is not None:
            client.pexpire(name, DAY_MS)


def write(client: Redis, redis_type: str, name: bytes, entries: Sequence[Entry]) -> None:
    """Store entries in their order under a key. A string is the last of them."""
    if redis_type == "string":
        client.set(name, entries[-1])
    elif redis_type == "list":
        client.rpush(name, *entries)
    elif redis_type == "set":
        client.sadd(name, *entries)
    elif redis_type == "zset":
        client.zadd(name, {member: float(score) for member, score in entries})
    elif redis_type == "hash":
        client.hset(name, mapping=dict(entries))
    else:
        for number, members in enumerate(entries, 1):
            client.xadd(name, members, id=f"{number}-1")


def read(client: Redis, name: bytes) -> Any:
    """Return the entries of a key: in their order, if there is one."""
    stored: Any = client
    reads: dict[bytes, Callable[[], Any]] = {
        b"none": lambda: None,
        b"string": lambda: stored.get(name),
        b"list": lambda: stored.lrange(name, 0, -1),
        b"set": lambda: stored.smembers(name),
        b"zset": lambda: stored.zrange(name, 0, -1, withscores=True),
        b"hash": lambda: stored.hgetall(name),
        b"stream": lambda: stored.xrange(name),
    }
    return reads[stored.type(name)]()
