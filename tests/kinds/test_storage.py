"""The storage description of each kind: pages, entries, defects, and the removal of one unchanged entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest

from keywright import (
    BitFields,
    Bitmap,
    Bits,
    Claim,
    Context,
    Counter,
    Database,
    DueQueue,
    Geo,
    HyperLogLog,
    Id,
    Key,
    Keyspace,
    Lease,
    List,
    Map,
    Record,
    Set,
    SortedSet,
    Stream,
    Value,
    connect,
)
from keywright.errors import UsageError
from keywright.keyspace.codecs import Codec, CodecError
from keywright.keyspace.kinds.opener import Opener
from keywright.keyspace.layouts import LAYOUTS, Ask, layout_of, stored_read
from keywright.keyspace.storage import Defect, Fault
from keywright.operations import Command, Effect, Operation, as_is, commit
from keywright.testing.runs import Raw

space = Keyspace("storage", "One key of each kind.")


class Person(msgspec.Struct):
    name: str
    age: int
    mail: str | None = None


class Cat(msgspec.Struct):
    sort: Literal["cat"]
    lives: int


class Dog(msgspec.Struct):
    sort: Literal["dog"]
    tricks: int


class AValue(Value[int], key="value", space=space):
    """A number."""


class ACounter(Counter, key="counter", space=space):
    """A count."""


class ALease(Lease, key="lease", space=space):
    """A lease."""


class AClaim(Claim, key="claim", space=space):
    """A claim."""


class ASet(Set[int], key="set", space=space):
    """Numbers."""


class AList(List[int], key="list", space=space):
    """Numbers in a row."""


class ASortedSet(SortedSet[Id, int], key="scores", space=space):
    """Scores."""


class AQueue(DueQueue[Id], key="queue", space=space):
    """Times."""


class AMap(Map[Id, int], key="map", space=space):
    """Numbers by name."""


class ARecord(Record[Person], key="record", space=space):
    """A person."""


class APet(Record[Cat | Dog], key="pet", space=space):
    """A cat or a dog."""


class AStream(Stream[Person], key="stream", space=space):
    """People who passed."""


class Level(msgspec.Struct):
    level: Annotated[int, Bits(5)]
    change: Annotated[int, Bits(5, signed=True)]


class ABitmap(Bitmap, key="bitmap", space=space, bits=16):
    """Bits."""


class BitsOfLevel(BitFields[Level], key="bits", space=space):
    """Bits with names."""


class AGeo(Geo[Id], key="geo", space=space):
    """Positions."""


class AnEstimate(HyperLogLog[Id], key="estimate", space=space):
    """Visitors."""


KINDS: dict[type[Key], list[list[Any]]] = {
    AValue: [["SET", "value", "7"]],
    ACounter: [["SET", "counter", "8"]],
    ABitmap: [["SETBIT", "bitmap", "9", "1"]],
    BitsOfLevel: [["BITFIELD", "bits", "SET", "u5", "0", "7", "SET", "i5", "5", "-3"]],
    AGeo: [["GEOADD", "geo", "13.36", "38.11", "m", "15.08", "37.50", "n"]],
    AnEstimate: [["PFADD", "estimate", "a", "b"]],
    ALease: [["SET", "lease", "token"]],
    AClaim: [["SET", "claim", "done"]],
    ASet: [["SADD", "set", *range(1300)]],
    AList: [["RPUSH", "list", *range(1300)]],
    ASortedSet: [["ZADD", "scores", *(x for n in range(1300) for x in (n, f"m{n}"))]],
    AQueue: [["ZADD", "queue", 5000, "job"]],
    AMap: [["HSET", "map", *(x for n in range(1300) for x in (f"f{n}", n))]],
    ARecord: [["HSET", "record", "name", "Ann", "age", "7"]],
    APet: [["HSET", "pet", "sort", "dog", "tricks", "3"]],
    AStream: [["XADD", "stream", f"{n}-1", "name", "Ann", "age", n] for n in range(1, 1301)],
}
VALUES: dict[type[Key], Any] = {
    AValue: 7,
    ACounter: 8,
    ABitmap: b"\x00\x40",
    BitsOfLevel: Level(7, -3),
    AnEstimate: 2,
    ALease: "token",
    AClaim: "done",
    AQueue: [("job", datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC))],
    ARecord: Person("Ann", 7),
    APet: Dog("dog", 3),
}


@pytest.fixture
def db(redis_url: str) -> Iterator[Database]:
    with connect(redis_url) as opened:
        yield opened


def _ask(db: Database, key: Key, ask: Ask) -> Any:
    return db.run(stored_read(key, ask, "test"))


def _pages(db: Database, key: Key) -> Iterator[Any]:
    layout = key.declaration.storage.layout
    page = layout.page(_ask(db, key, layout.first_page()))
    while True:
        yield page.stored
        if page.more is None:
            return
        page = layout.page(_ask(db, key, layout.next_page(page.more)), page.more)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_pages_and_the_whole_hold_the_same_entries(kind: type[Key], db: Database, raw: Raw) -> None:
    for command in KINDS[kind]:
        raw(*command)
    key = kind()
    storage = kind.declaration.storage
    stored = _ask(db, key, storage.layout.everything)
    whole = storage.value(stored, key)
    if kind in VALUES:
        assert whole == VALUES[kind]
    if storage.whole:
        (page,) = _pages(db, key)
        assert storage.value(page, key) == whole
        return
    parts = [storage.value(page, key) for page in _pages(db, key)]
    if isinstance(whole, dict):
        assert {field: value for part in parts for field, value in part.items()} == whole
    else:
        assert sorted(each for part in parts for each in part) == sorted(whole)
    size = _ask(db, key, Ask(storage.layout.size))
    assert size == len(whole) == len(list(storage.entries(stored, key)))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_entries_make_the_value_of_the_whole(kind: type[Key], db: Database, raw: Raw) -> None:
    for command in KINDS[kind]:
        raw(*command)
    key, storage = kind(), kind.declaration.storage
    stored = _ask(db, key, storage.layout.everything)
    opener = Opener(kind, Context())
    values = [
        entry.value([opener.read(part, b"") for part in entry.parts])
        for entry in storage.entries(stored, key)
    ]
    assert storage.joined(values) == storage.value(stored, key)
    if storage.fields is None:
        assert storage.verify([stored, stored])


DIVIDED: list[tuple[type[Key], Any, Any, list[bytes]]] = [
    (ASet, [b"1", b"2"], b"x", [b"1", b"2"]),
    (AList, [b"1", b"2", b"1"], b"x", [b"1", b"2", b"1"]),
    (ASortedSet, [b"a", b"1", b"b", b"2"], (b"c", b"1.5"), [b"a", b"b"]),
    (AMap, [b"a", b"1", b"b", b"2"], (b"c", b"x"), [b"a", b"b"]),
    (
        AStream,
        [(b"1-1", [b"name", b"Ann", b"age", b"7"]), (b"2-1", [b"name", b"Ben", b"age", b"8"])],
        (b"3-1", [b"name", b"Cid"]),
        [b"1-1", b"2-1"],
    ),
]


@pytest.mark.parametrize(("kind", "stored", "bad", "names"), DIVIDED, ids=lambda e: getattr(e, "kind", ""))
def test_a_value_is_divided_into_entries_named_as_they_are_stored(
    kind: type[Key], stored: Any, bad: Any, names: list[bytes]
) -> None:
    storage = kind.declaration.storage
    value = storage.value(stored)
    divided = list(storage.divided(stored, value))
    assert [name for name, _ in divided] == names
    assert all(len(part) == 1 for _, part in divided)
    rest = [entry for _, part in divided for entry in (part.items() if isinstance(part, dict) else part)]
    assert rest == list(value.items() if isinstance(value, dict) else value)
    with_bad = [*stored, *bad] if storage.layout.width == 2 else [*stored, bad]
    assert list(storage.divided(with_bad, value)) == divided


WRONG: list[tuple[type[Key], Any, list[tuple[Fault, bytes | None]]]] = [
    (AValue, b"seven", [(Fault.MALFORMED, None)]),
    (ACounter, b"1.5", [(Fault.MALFORMED, None)]),
    (ASet, [b"1", b"x"], [(Fault.MALFORMED, b"x")]),
    (AList, [b"x", b"1", b"y"], [(Fault.MALFORMED, b"x"), (Fault.MALFORMED, b"y")]),
    (ASortedSet, [b"m", b"1.5", b"a b", b"1"], [(Fault.MALFORMED, b"m"), (Fault.MALFORMED, b"a b")]),
    (AMap, [b"f", b"x", b"g", b"1"], [(Fault.MALFORMED, b"f")]),
    (ARecord, [b"name", b"Ann", b"age", b"x"], [(Fault.MALFORMED, b"age")]),
    (ARecord, [b"age", b"x"], [(Fault.MISSING, b"name"), (Fault.MALFORMED, b"age")]),
    (APet, [b"lives", b"9"], [(Fault.MISSING, b"sort")]),
    (APet, [b"sort", b"cow"], [(Fault.MALFORMED, b"sort")]),
    (AStream, [[b"1-1", [b"name", b"Ann"]]], [(Fault.MISSING, b"1-1")]),
]


@pytest.mark.parametrize(("kind", "stored", "expected"), WRONG, ids=lambda each: getattr(each, "kind", ""))
def test_what_is_wrong_is_named_with_the_entry_that_it_concerns(
    kind: type[Key], stored: Any, expected: list[tuple[Fault, bytes | None]]
) -> None:
    opener = Opener(kind, Context())
    found = [
        defect
        for entry in kind.declaration.storage.entries(stored, kind())
        for defect in (*entry.defects, *(opener.read(part, b"") for part in entry.parts))
        if isinstance(defect, Defect)
    ]
    assert [(defect.fault, defect.entry) for defect in found] == expected


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_a_kind_can_be_damaged_and_the_damage_is_seen(kind: type[Key], db: Database, raw: Raw) -> None:
    for command in KINDS[kind][:1]:
        raw(*command)
    key, storage = kind(), kind.declaration.storage
    ask = storage.malformed(_refused, key)
    assert ask is not None
    db.run(Command(Operation("test", ask.verb, Effect.ONCE), key, ask.operands, as_is))
    with pytest.raises(CodecError):
        storage.value(_ask(db, key, storage.layout.everything), key)


def _refused(codec: Codec[Any]) -> bytes | None:
    try:
        codec.decode(b"\xff{")
    except CodecError:
        return b"\xff{"
    return None


REMOVALS: list[tuple[type[Key], bytes, Callable[[Raw], Any], Any]] = [
    (ASet, b"7", lambda raw: raw("SREM", "set", "7"), [b"1"]),
    (AList, b"7", lambda raw: raw("RPUSH", "list", "7"), [b"1", b"7", b"7", b"7"]),
    (ASortedSet, b"m7", lambda raw: raw("ZADD", "scores", "8", "m7"), [b"m1", b"1", b"m7", b"8"]),
    (AMap, b"f7", lambda raw: raw("HSET", "map", "f7", "8"), [b"f1", b"1", b"f7", b"8"]),
    (AStream, b"7-1", lambda raw: raw("XDEL", "stream", "7-1"), None),
]
FEW = {
    ASet: ["SADD", "set", "1", "7"],
    AList: ["RPUSH", "list", "1", "7", "7"],
    ASortedSet: ["ZADD", "scores", "1", "m1", "7", "m7"],
    AMap: ["HSET", "map", "f1", "1", "f7", "7"],
    AStream: ["XADD", "stream", "7-1", "name", "Ann", "age", "7"],
}


@pytest.mark.parametrize(("kind", "entry", "change", "after"), REMOVALS, ids=lambda e: getattr(e, "kind", ""))
def test_an_entry_is_removed_and_restored_unless_it_changed(
    kind: type[Key], entry: bytes, change: Callable[[Raw], Any], after: Any, db: Database, raw: Raw
) -> None:
    raw(*FEW[kind])
    key, layout = kind(), kind.declaration.storage.layout
    before = _ask(db, key, layout.everything)
    removal = layout.removal(key, entry, _ask(db, key, layout.find(entry)))
    assert layout.is_present(_ask(db, key, layout.presence(entry)))
    assert not db.run(commit("test", [layout.absence(key, entry)], []))

    change(raw)
    changed = _ask(db, key, layout.everything)
    assert not db.run(_committed(key, removal.checks, removal.command))
    assert _ask(db, key, layout.everything) == changed
    if after is not None:
        assert sorted(changed) == sorted(after)

    raw("DEL", *(str(bytes(each()), "ascii") for each in FEW))
    raw(*FEW[kind])
    assert db.run(_committed(key, removal.checks, removal.command))
    assert not layout.is_present(_ask(db, key, layout.presence(entry)))
    assert layout.found(entry, _ask(db, key, layout.find(entry))) is None
    assert db.run(commit("test", [layout.absence(key, entry)], []))
    if kind not in (
        AList,
        AStream,
    ):  # the server only appends to them
        raw(*removal.back.on(bytes(key)))
        assert sorted(_ask(db, key, layout.everything)) == sorted(before)


def _committed(key: Key, checks: Any, ask: Ask) -> Any:
    return commit(
        "test", checks, [Command(Operation("test", ask.verb, Effect.REPEATABLE), key, ask.operands, as_is)]
    )


def test_a_string_has_no_entries_of_its_own() -> None:
    with pytest.raises(UsageError, match="has no entries"):
        LAYOUTS["string"].find(b"x")
    with pytest.raises(UsageError, match="has no pages"):
        LAYOUTS["string"].next_page(1)


def test_a_type_of_a_module_is_measured_by_its_existence_only() -> None:
    layout = layout_of("ReJSON-RL")
    assert (layout.size, layout.reads, layout.writes) == (b"EXISTS", (), ())
