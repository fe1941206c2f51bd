"""Values of every encoding, as each server writes it, equal what the live server replies."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dumps import dump_of
from keywright import Database, connect
from keywright.engine.nodes import Batch
from keywright.keyspace.layouts import LAYOUTS, Ask
from keywright.keyspace.wires import Reply, Wire
from keywright.testing import RedisServer
from keywright.tools.audit.page_reader import on_name
from keywright.tools.rdb import DumpDatabase
from keywright.tools.rdb.frames import Frames
from keywright.tools.rdb.types import Type
from new_valkey import new_binary
from old_redis import old_binary

MANY = 32_000
BIG = "text that repeats itself, text that repeats itself, " * 20
ODD = (b"", b"\x00\xff", b"-1", b"0", b"00", b"127", b"-129", b"40000", b"-9000000", b"2147483648", b"1e3")


@pytest.fixture(scope="module")
def old_server() -> Iterator[RedisServer]:
    with RedisServer(binary=old_binary()) as server:
        yield server


@pytest.fixture(scope="module")
def new_server() -> Iterator[RedisServer]:
    with RedisServer(binary=new_binary()) as server:
        yield server


@pytest.fixture(params=["redis 6.2", "of the run", "valkey 9.1"])
def server(request: pytest.FixtureRequest) -> RedisServer:
    names = {"redis 6.2": "old_server", "of the run": "keywright_server", "valkey 9.1": "new_server"}
    found: RedisServer = request.getfixturevalue(names[request.param])
    found.call("FLUSHALL")
    return found


def fill(client: Any, few: int, many: int) -> None:
    """Write collections of both sizes, with items of every form that a packed collection has."""
    noise = random.Random(5)
    items = [*ODD, *(b"%d" % noise.randrange(-(1 << 62), 1 << 62) for _ in range(8))]
    items += [noise.randbytes(size) for size in (1, 63, 64)]
    for count in (few, many):
        texts = [*items[:count], *(b"item %d" % n for n in range(count - len(items)))]
        client.sadd(f"set:{count}", *texts)
        client.sadd(f"numbers:{count}", *(n * n * n - 1000 for n in range(count)))
        client.hset(f"hash:{count}", mapping={text: text[::-1] for text in texts})
        client.rpush(f"list:{count}", *texts)
        scores = [0.1, -1.5, 3.0, 1e300, float("inf"), float("-inf"), 1e-7, 12345678901234567.0, 0.0]
        client.zadd(f"zset:{count}", {text: scores[n % len(scores)] for n, text in enumerate(texts)})
        for n in range(count):
            client.xadd(
                f"stream:{count}",
                {"a": n, "b": "x"} if n % 5 else {"other": "fields"},
                id=f"{n // 3 + 1}-{n}",
            )
    for n in range(0, many, 7):
        client.xdel(f"stream:{many}", f"{n // 3 + 1}-{n}")
    for item in items:
        client.set(b"string:" + item, item)
    client.set("string:long", BIG)
    client.set("string:4 KiB", noise.randbytes(4096))
    client.set("string:expiring", "x", ex=3600)
    client.set(f"long name {BIG}", "x")
    client.rpush("list:long", BIG, noise.randbytes(20_000), "x")
    client.hset("hash:long", mapping={"long": BIG, "bytes": noise.randbytes(9000), "5": "x"})
    client.zadd("zset:long", {BIG: 1.5, "x": 2})
    client.sadd("set:long", BIG, "x")


def groups(client: Any, name: str) -> None:
    """Add consumer groups in every state: new, with pending entries, done, in the future."""
    client.xgroup_create(name, "new", id="0")
    client.xgroup_create(name, "done", id="$")
    client.xgroup_create(name, "middle", id="0")
    client.xreadgroup("middle", "ann", {name: ">"}, count=7)
    client.xreadgroup("middle", "ben", {name: ">"}, count=3)
    client.xgroup_create(name, "placed", id="2-4")
    client.xgroup_create(name, "future", id="99999-1")


def asks(redis_type: str, entries: list[bytes]) -> list[Ask]:
    layout = LAYOUTS[redis_type]
    found = [Ask(b"TYPE"), Ask(layout.size), layout.everything]
    head = layout.head(3)
    if head is not None:
        found.append(head)
    if redis_type == "list":
        found += [
            Ask(b"LRANGE", (1, 4)),
            Ask(b"LRANGE", (-3, -1)),
            Ask(b"LINDEX", (-1,)),
            Ask(b"LINDEX", (10**6,)),
        ]
    if redis_type == "zset":
        found += [Ask(b"ZRANGE", (1, 5)), Ask(b"ZRANGE", (-4, -2, b"REV", b"WITHSCORES"))]
        found += [Ask(b"ZRANGE", (b"(0", b"3", b"BYSCORE", b"LIMIT", 1, 2)), Ask(b"ZCOUNT", (b"-inf", b"(3"))]
        found += [Ask(b"ZRANGE", (b"5", b"0", b"BYSCORE", b"REV")), Ask(b"ZRANK", (b"0",))]
        found += [Ask(b"ZREVRANK", (b"0",)), Ask(b"ZRANK", (b"absent",))]
    if redis_type == "stream":
        found += [Ask(b"XINFO", (b"GROUPS",)), Ask(b"XREVRANGE", (b"+", b"-", b"COUNT", 2))]
        found += [Ask(b"XRANGE", (b"(2-4", b"+", b"COUNT", 5)), Ask(b"XRANGE", (b"2", b"3"))]
    if redis_type != "string":
        found += [ask for entry in entries for ask in (layout.find(entry), layout.presence(entry))]
    return found


def replies(
    run: Callable[[list[Wire]], list[Reply]], name: bytes, every: list[Ask], redis_type: str
) -> list[Any]:
    found = run([on_name(ask, name, None) for ask in every])
    return [
        sorted(_entries(reply, redis_type)) if ask.verb in (b"HGETALL", b"SMEMBERS") else _scored(ask, reply)
        for ask, reply in zip(every, found, strict=True)
    ]


def _entries(flat: list[bytes], redis_type: str) -> list[Any]:
    return list(zip(flat[::2], flat[1::2], strict=True)) if redis_type == "hash" else flat


def _scored(ask: Ask, reply: Any) -> Any:
    """Return a reply with its scores as numbers: servers differ in how they round them."""
    if ask.verb == b"ZRANGE" and b"WITHSCORES" in ask.operands:
        return [float(part) if place % 2 else part for place, part in enumerate(reply)]
    return float(reply) if ask.verb == b"ZSCORE" and reply is not None else reply


def assert_equal(db: Database, dump: DumpDatabase, *, some: int = 3) -> int:
    """Compare all keys. Return how many there are."""
    names = sorted(db.run(Batch([Wire((b"KEYS", b"*"), b"", EVERY, None)]))[0])
    cursor, found = 0, list[bytes]()
    while True:
        cursor, page = dump.keys.page(cursor, 50)
        found += page
        if not cursor:
            break
    assert sorted(found) == names
    types = db.run(Batch([on_name(Ask(b"TYPE"), name, None) for name in names]))
    for name, kind in zip(names, map(bytes.decode, types), strict=True):
        whole = db.run(Batch([on_name(LAYOUTS[kind].everything, name, None)]))[0]
        entries = [b"absent", *_names(kind, whole)[:some]] if kind != "stream" else [whole[0][0], b"77-77"]
        every = asks(kind, entries)
        live = replies(lambda wires: db.run(Batch(wires)), name, every, kind)
        assert replies(dump.answer, name, every, kind) == live, name
        if kind not in ("string", "zset"):
            assert sorted(map(repr, paged(dump, name, kind))) == sorted(map(repr, whole))
    return len(names)


def _names(kind: str, whole: Any) -> list[bytes]:
    return [] if kind == "string" else list(whole[:: LAYOUTS[kind].width])


def paged(dump: DumpDatabase, name: bytes, kind: str) -> list[Any]:
    layout = LAYOUTS[kind]
    found: list[Any] = []
    ask, more = layout.first_page(5), None
    while True:
        page = layout.page(dump.answer([on_name(ask, name, None)])[0], more, 5)
        found += page.stored
        more = page.more
        if more is None:
            return found
        ask = layout.next_page(more, 5)


EVERY = Wire((b"KEYS",), b"", on_name(Ask(b"KEYS"), b"", None).operation, None).operation


def kinds_in(path: Path) -> set[int]:
    dump = DumpDatabase(path)
    with_keys = (stored[0] for page in Frames(dump.keys.file).pages(0, 0) for stored in page.values())
    found = set(with_keys)
    dump.close()
    return found


def test_every_encoding_that_a_server_writes_is_read_as_the_server_reads_it(
    server: RedisServer, tmp_path: Path
) -> None:
    with redis.Redis.from_url(server.url) as client, connect(server.url) as db:
        fill(client, 5, 600)
        for name in ("stream:5", "stream:600"):
            groups(client, name)
        dump = DumpDatabase(path := dump_of(client, tmp_path / "dump.rdb"), checked=True)
        assert assert_equal(db, dump) > 30
        dump.close()
    product, version = dump.product, tuple(map(int, dump.version.split(".")[:2]))
    packed_set = {Type.SET_LISTPACK} if version >= (7, 2) else set()
    stream = Type.STREAM_3 if version >= (7, 2) else Type.STREAM_2
    expected = {Type.STRING, Type.SET, Type.SET_INTSET, Type.ZSET_2, Type.HASH, *packed_set}
    if version < (7, 0):
        expected |= {Type.LIST_QUICKLIST, Type.ZSET_ZIPLIST, Type.HASH_ZIPLIST, Type.STREAM_1}
    else:
        expected |= {Type.LIST_QUICKLIST_2, Type.ZSET_LISTPACK, Type.HASH_LISTPACK, stream}
    assert kinds_in(path) == expected, product


def test_values_larger_than_a_window_are_read_in_pages(server: RedisServer, tmp_path: Path) -> None:
    noise = random.Random(1)
    with redis.Redis.from_url(server.url) as client, connect(server.url) as db:
        client.set("string", noise.randbytes(3 << 20))
        client.set("string:0", "small")
        texts = [f"{n}:{noise.randbytes(16).hex()}" for n in range(MANY)]
        client.sadd("set", *texts)
        client.hset("hash", mapping=dict(zip(texts, reversed(texts), strict=True)))
        client.zadd("zset", {text: n / 3 for n, text in enumerate(texts)})
        client.rpush("list", *texts)
        for start in range(0, MANY, 4000):
            pipe = client.pipeline()
            for text in texts[start : start + 4000]:
                pipe.xadd("stream", {"text": text})
            pipe.execute()
        with_dump = DumpDatabase(dump_of(client, tmp_path / "dump.rdb"))
        layout = LAYOUTS["set"]
        for name in (b"set", b"hash", b"zset", b"list", b"stream", b"string", b"string:0"):
            kind = db.run(Batch([on_name(Ask(b"TYPE"), name, None)]))[0].decode()
            layout = LAYOUTS[kind]
            whole = db.run(Batch([on_name(layout.everything, name, None)]))[0]
            every = asks(kind, [b"absent", *_names(kind, whole)[:3]] if kind != "stream" else [whole[40][0]])
            live = replies(lambda wires: db.run(Batch(wires)), name, every, kind)
            assert replies(with_dump.answer, name, every, kind) == live, name
        assert len(paged_by(with_dump, b"hash", "hash")) == 2 * MANY
        assert paged_by(with_dump, b"list", "list") == [text.encode() for text in texts]
        assert len(paged_by(with_dump, b"stream", "stream")) == MANY
        assert {stored[1] for stored in map(with_dump.keys.find, [b"set", b"stream"]) if stored} == {b""}
        with_dump.close()


def paged_by(dump: DumpDatabase, name: bytes, kind: str) -> list[Any]:
    layout = LAYOUTS[kind]
    found: list[Any] = []
    ask, more = layout.first_page(), None
    while True:
        page = layout.page(dump.answer([on_name(ask, name, None)])[0], more)
        found += page.stored
        more = page.more
        if more is None:
            return found
        ask = layout.next_page(more)


ITEMS = st.one_of(
    st.binary(max_size=80),
    st.integers(-(1 << 63), (1 << 63) - 1).map(lambda number: b"%d" % number),
    st.builds(lambda part, times: part * times, st.binary(max_size=9), st.integers(1, 300)),
)
COLLECTIONS = st.lists(ITEMS, min_size=1, max_size=30)
SCORES = st.floats(allow_nan=False)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    strings=st.lists(ITEMS, max_size=8),
    collections=st.lists(COLLECTIONS, min_size=1, max_size=4),
    scores=st.lists(SCORES, min_size=30, max_size=30),
)
def test_any_data_is_read_as_the_server_reads_it(
    redis_url: str,
    tmp_path: Path,
    strings: list[bytes],
    collections: list[list[bytes]],
    scores: list[float],
) -> None:
    with redis.Redis.from_url(redis_url) as client, connect(redis_url) as db:
        client.flushall()
        pipe = client.pipeline()
        for number, value in enumerate(strings):
            pipe.set(b"string:%d:" % number + value[:40], value)
        for number, items in enumerate(collections):
            pipe.rpush(f"list:{number}", *items)
            pipe.sadd(f"set:{number}", *items)
            pipe.hset(f"hash:{number}", mapping=dict(zip(items, reversed(items), strict=True)))
            pipe.zadd(f"zset:{number}", dict(zip(items, scores, strict=False)))
            for place, item in enumerate(items):
                pipe.xadd(f"stream:{number}", {item: b"x", b"same": item}, id=f"{place + 1}-7")
        pipe.execute()
        dump = DumpDatabase(dump_of(client, tmp_path / "dump.rdb"), checked=True)
        try:
            assert_equal(db, dump)
        finally:
            dump.close()
