"""The difference of two dumps: counted by template, whatever the encoding, in either direction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

from dumps import dump_of
from keywright import Id, Keyspace, List, Map, Record, Secret, Set, SortedSet, Stream, Value
from keywright.testing import RedisServer
from keywright.testing.runs import Raw
from keywright.tools.model import Model
from keywright.tools.rdb import ChangedKey, DumpDifference, compare_dumps

yard = Keyspace("yard", "A key of every type.", prefix="yard")


class Note(Value[str], key="note:<n>", space=yard):
    """A note."""

    n: Id


class Tags(Set[str], key="tags:<n>", space=yard):
    """Tags."""

    n: Id


class Ranks(SortedSet[str, float], key="ranks:<n>", space=yard):
    """Ranks."""

    n: Id


class Prices(Map[str, str], key="prices:<n>", space=yard):
    """Prices."""

    n: Id


class Codes(Map[Id, Secret[str]], key="codes:<n>", space=yard):
    """Codes."""

    n: Id


class Queue(List[str], key="queue:<n>", space=yard):
    """A queue."""

    n: Id


class Line(msgspec.Struct):
    """A line."""

    text: str


class Log(Stream[Line], key="log:<n>", space=yard):
    """A log."""

    n: Id


class Tool(Record[Line], key="tool:<n>", space=yard):
    """A tool."""

    n: Id


MODEL = Model("yard", (yard,))


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(redis_url) as found:
        yield found


def fill(client: Any) -> None:
    client.mset({f"yard:note:{n}": f"note {n}" for n in range(1200)})
    client.sadd("yard:tags:1", *range(10))
    client.zadd("yard:ranks:1", {"a": 0.5, "b": 2})
    client.hset("yard:prices:1", mapping={"eur": "1", "chf": "2"})
    client.hset("yard:codes:1", mapping={"ann": "1", "ben": "2"})
    client.rpush("yard:queue:1", "a", "b", "c")
    client.xadd("yard:log:1", {"text": "hello"}, id="5-1")
    client.hset("yard:tool:1", mapping={"text": "rake"})
    client.set("other:1", "x")


Compare = Callable[[], tuple[DumpDifference, list[ChangedKey]]]


def compared(old: Path, new: Path) -> tuple[DumpDifference, dict[bytes, ChangedKey]]:
    found: list[ChangedKey] = []
    result = compare_dumps(old, new, MODEL, on_key=found.append)
    return result, {each.name: each for each in found}


def test_changes_are_counted_by_template_and_named(client: Any, tmp_path: Path) -> None:
    fill(client)
    old = dump_of(client, tmp_path / "old.rdb")
    client.delete("yard:note:7", "yard:note:8")
    client.set("yard:note:9", "another note")
    client.set("yard:note:new", "x")
    client.set("yard:note:10", "note 10", ex=1000)
    client.srem("yard:tags:1", 3)
    client.sadd("yard:tags:1", "new")
    client.zadd("yard:ranks:1", {"a": 0.75})
    client.hset("yard:prices:1", "eur", "3")
    client.hset("yard:codes:1", "ann", "9")
    client.lpop("yard:queue:1")
    client.xadd("yard:log:1", {"text": "more"}, id="6-1")
    client.delete("yard:tool:1")
    client.set("yard:tool:1", "text")
    client.set("yard:strange", "x")
    new = dump_of(client, tmp_path / "new.rdb")
    result, keys = compared(old, new)
    notes = result.templates["note:<n>"]
    assert (notes.added, notes.removed, notes.changed, notes.expiry, notes.same) == (1, 2, 1, 1, 1196)
    assert result.templates["(no template)"].added == 1
    assert result.outside == 2
    assert not result.is_empty
    shown = {name.decode()[5:]: (each.sort, each.what, each.entries) for name, each in keys.items()}
    assert shown == {
        "note:7": ("removed", "", ()),
        "note:8": ("removed", "", ()),
        "note:9": ("changed", "6 bytes, now 12", ()),
        "note:10": ("expiry", "has an expiry now", ()),
        "note:new": ("added", "", ()),
        "tags:1": ("changed", "entries: 1 added, 1 removed", (b"3", b"new")),
        "ranks:1": ("changed", "entries: 1 changed", (b"a",)),
        "prices:1": ("changed", "entries: 1 changed", (b"eur",)),
        "codes:1": ("changed", "entries: 1 changed", ()),
        "queue:1": ("changed", "3 entries, now 2, different from entry 1 on", ()),
        "log:1": ("changed", "1 entries, now 2, different from entry 2 on", ()),
        "tool:1": ("changed", "was a hash, is a string", ()),
        "strange": ("added", "", ()),
    }
    back, _ = compared(new, old)
    turned = back.templates["note:<n>"]
    assert (turned.added, turned.removed, turned.changed) == (2, 1, 1)


OTHER_FORMS = (
    ("yard:tags:1", "SADD KEY x", "SREM KEY x"),
    ("yard:prices:1", "HSET KEY x 1", "HDEL KEY x"),
    ("yard:ranks:1", "ZADD KEY 1 x", "ZREM KEY x"),
)
"""Commands that let a server store a collection in its larger form."""


def test_equal_data_in_other_encodings_is_equal(
    client: Any, redis_url: str, tmp_path: Path, keywright_server: RedisServer
) -> None:
    fill(client)
    client.sadd("yard:tags:many", *(f"tag {n}" for n in range(100)))
    client.sadd("yard:tags:large", *(f"tag {n:020}" for n in range(50_000)))
    client.hset("yard:prices:large", mapping={f"p{n:020}": n for n in range(40_000)})
    client.rpush("yard:queue:large", *(f"{n:020}" for n in range(60_000)))
    old = dump_of(client, tmp_path / "old.rdb")
    raw = Raw(client)
    small = {"set-max-intset-entries": 1, "hash-max-ziplist-entries": 1, "zset-max-ziplist-entries": 1}
    before = {name: client.config_get(name)[name] for name in small}
    try:
        for name, value in small.items():
            raw("CONFIG", "SET", name, value)
        raw("CONFIG", "SET", "rdbcompression", "no")
        for key in client.keys("yard:*"):
            dumped = client.dump(key)
            client.restore(key, 0, dumped, replace=True)
        for name, add, remove in OTHER_FORMS:
            raw(*add.replace("KEY", name).split())
            raw(*remove.replace("KEY", name).split())
        new = dump_of(client, tmp_path / "new.rdb")
    finally:
        for name, value in before.items():
            raw("CONFIG", "SET", name, value)
        raw("CONFIG", "SET", "rdbcompression", "yes")
    assert old.stat().st_size != new.stat().st_size
    result, keys = compared(old, new)
    assert keys == {}
    assert result.is_empty
