"""The format of dumps: rare and old encodings, what stands between keys, append-only files, and damage."""

from __future__ import annotations

import asyncio
import random
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from fuzz.targets.rdb import one_input

from dumps import crafted, dump_of, packed, record, text
from keywright import Counter, Id, Keyspace, connect
from keywright.engine.nodes import Batch, name_page
from keywright.errors import CapabilityError, DumpError, UsageError, WrongTypeError
from keywright.keyspace.layouts import Ask
from keywright.testing import RedisServer
from keywright.testing.conditions import wait_until
from keywright.testing.runs import Raw
from keywright.tools.audit.page_reader import on_name
from keywright.tools.databases import numbers_with_keys
from keywright.tools.rdb import DumpDatabase
from keywright.tools.rdb.checksum import crc64
from keywright.tools.rdb.types import Type
from new_valkey import new_binary

TAKEN_MS = 1_700_000_000_999  # the end of the second that the file states
LATER = (TAKEN_MS + 5000).to_bytes(8, "little")
EARLIER = (TAKEN_MS - 5000).to_bytes(8, "little")
NEVER = b"\xff" * 8


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[bytes], DumpDatabase]:
    def write(content: bytes, **options: Any) -> DumpDatabase:
        path = tmp_path / "dump.rdb"
        path.write_bytes(content)
        return DumpDatabase(path, **options)

    return write


Open = Callable[..., DumpDatabase]


def ask(dump: DumpDatabase, verb: bytes, name: bytes, *operands: bytes | int) -> Any:
    return dump.answer([on_name(Ask(verb, operands), name, None)])[0]


def names(dump: DumpDatabase) -> list[bytes]:
    cursor, found = 0, list[bytes]()
    while True:
        cursor, page = asyncio.run(dump.run(name_page(cursor, 100)))
        found += page
        if not cursor:
            return found


ZIPLIST = (
    b"\x00" * 10
    + b"\x00\x03abc" + b"\x05\xf4" + b"\x02\xfe\x9c" + b"\x03\xc0\x10\x27" + b"\x04\xf0\x00\x00\x80"
    + b"\x05\xd0\x00\x00\x00\x40" + b"\x06\xe0" + (1 << 60).to_bytes(8, "little")
    + b"\x0a\x40\x41" + b"y" * 65 + b"\xfe\x44\x00\x00\x00\x01z" + b"\xff"
)  # fmt: skip
ZIPPED = [b"abc", b"3", b"-100", b"10000", b"-8388608", b"1073741824", b"%d" % (1 << 60), b"y" * 65, b"z"]
OLD = [
    (Type.LIST, b"\x02" + text(b"a") + b"\xc0\x05", Ask(b"LRANGE", (0, -1)), [b"a", b"5"]),
    (Type.LIST_ZIPLIST, text(ZIPLIST), Ask(b"LRANGE", (0, -1)), ZIPPED),
    (
        Type.ZSET,
        b"\x03" + text(b"b") + b"\x032.5" + text(b"a") + b"\xff" + text(b"c") + b"\xfe",
        Ask(b"ZRANGE", (0, -1, b"WITHSCORES")),
        [b"a", b"-inf", b"b", b"2.5", b"c", b"inf"],
    ),
    (
        Type.HASH_ZIPMAP,
        text(b"\x02\x03foo\x03\x00bar\x05hello\x05\x02world..\xff"),
        Ask(b"HGETALL"),
        [b"foo", b"bar", b"hello", b"world"],
    ),
]


@pytest.mark.parametrize(("kind", "value", "read", "expected"), OLD, ids=lambda each: str(each)[:12])
def test_encodings_of_old_servers_are_read_as_a_server_loads_them(
    opened: Open, raw: Raw, redis_url: str, kind: int, value: bytes, read: Ask, expected: list[bytes]
) -> None:
    dump = opened(crafted(record(b"key", kind, value)), checked=True)
    assert ask(dump, read.verb, b"key", *read.operands) == expected
    payload = bytes([kind]) + value.replace(b"\x00" * 10, _sized(value), 1) + (9).to_bytes(2, "little")
    raw("RESTORE", "key", 0, payload + crc64(payload).to_bytes(8, "little"))
    with connect(redis_url) as db:
        (live,) = db.run(Batch([on_name(read, b"key", None)]))
    assert _ordered(live, kind) == _ordered(expected, kind)
    dump.keys.close()


def _ordered(flat: list[bytes], kind: int) -> list[Any]:
    return sorted(zip(flat[::2], flat[1::2], strict=True)) if kind == Type.HASH_ZIPMAP else flat


def _sized(value: bytes) -> bytes:
    """Return the first bytes of a ziplist, which our reader does not need: size, last item and count."""
    return (
        len(ZIPLIST).to_bytes(4, "little")
        + (len(ZIPLIST) - 8).to_bytes(4, "little")
        + (9).to_bytes(2, "little")
    )


FIELDS = [b"a", b"1", b"b", b"2"]
SOONEST = (TAKEN_MS + 5000).to_bytes(8, "little")
LONG_1, LONG_2 = (b"\x81" + (TAKEN_MS + more).to_bytes(8, "big") for more in (5000, -5000))
EXPIRING = {
    "redis 7.4, table": (
        b"REDIS0012",
        Type.HASH_METADATA,
        SOONEST + b"\x02" + b"\x01" + text(b"a") + text(b"1") + b"\x00" + text(b"b") + text(b"2"),
    ),
    "redis 7.4, listpack": (
        b"REDIS0012",
        Type.HASH_LISTPACK_EX,
        SOONEST + text(packed(b"a", b"1", b"%d" % (TAKEN_MS + 5000), b"b", b"2", b"0")),
    ),
    "redis 7.4 before its release, table": (
        b"REDIS0012",
        Type.HASH_METADATA_PRE_GA,
        b"\x02" + LONG_1 + text(b"a") + text(b"1") + b"\x00" + text(b"b") + text(b"2"),
    ),
    "redis 7.4 before its release, listpack": (
        b"REDIS0012",
        Type.HASH_LISTPACK_EX_PRE_GA,
        text(packed(b"a", b"1", b"%d" % (TAKEN_MS + 5000), b"b", b"2", b"0")),
    ),
    "valkey 9": (
        b"VALKEY080",
        22,
        b"\x03"
        + text(b"a")
        + text(b"1")
        + LATER
        + text(b"b")
        + text(b"2")
        + NEVER
        + text(b"c")
        + text(b"3")
        + EARLIER,
    ),
}


@pytest.mark.parametrize("form", EXPIRING)
def test_fields_that_expire_have_their_moments_in_every_form(opened: Open, form: str) -> None:
    magic, kind, value = EXPIRING[form]
    dump = opened(crafted(record(b"hash", kind, value), record(b"next", 0, text(b"x")), magic=magic))
    assert names(dump) == [b"hash", b"next"]
    assert ask(dump, b"HGETALL", b"hash") == FIELDS
    assert ask(dump, b"HPTTL", b"hash", b"FIELDS", 4, b"a", b"b", b"c", b"absent") == [5000, -1, -2, -2]
    dump.keys.close()


def test_fields_that_expire_are_read_as_valkey_9_reads_them(tmp_path: Path) -> None:
    with RedisServer(binary=new_binary()) as server, redis.Redis.from_url(server.url) as client:
        client.hset("hash", mapping={f"f{n}": n for n in range(300)})
        client.hset("small", mapping={"a": 1, "b": 2})
        Raw(client)("HPEXPIREAT", "hash", 4_000_000_000_000, "FIELDS", 1, "f7")
        Raw(client)("HPEXPIREAT", "small", 4_000_000_000_001, "FIELDS", 1, "a")
        dump = DumpDatabase(dump_of(client, tmp_path / "dump.rdb"), checked=True)
        now = dump.keys.now_ms
        assert ask(dump, b"HPTTL", b"hash", b"FIELDS", 2, b"f7", b"f8") == [4_000_000_000_000 - now, -1]
        assert ask(dump, b"HPTTL", b"small", b"FIELDS", 1, b"a") == [4_000_000_000_001 - now]
        assert asyncio.run(dump.server()).can("field expiry")
        dump.close()


def test_expiries_count_from_the_moment_of_the_dump(opened: Open) -> None:
    seconds = b"\xfd" + (1_700_000_060).to_bytes(4, "little")
    dump = opened(
        crafted(
            record(b"lasting", 0, text(b"x")),
            record(b"later", 0, text(b"x"), before=b"\xfc" + LATER),
            record(b"gone", 0, text(b"x"), before=b"\xfc" + EARLIER),
            record(b"in seconds", 0, text(b"x"), before=seconds),
        )
    )
    assert names(dump) == [b"lasting", b"later", b"in seconds"]
    assert [ask(dump, b"PTTL", name) for name in (b"lasting", b"later", b"gone", b"in seconds")] == [
        -1,
        5000,
        -2,
        59_001,
    ]
    assert dump.taken.isoformat() == "2023-11-14T22:13:20.999000+00:00"
    dump.close()


MODULE = bytes.fromhex("81") + (0x4789ABCD01234405).to_bytes(8, "big")
VALUE = b"\x01\x07\x02\x40\xff\x03abcd\x04abcdefgh\x05" + text(b"text") + b"\x00"


def test_what_stands_between_keys_is_skipped(opened: Open) -> None:
    dump = opened(
        crafted(
            b"\xf5" + text(b"#!lua name=mylib\n" + b"x" * 400),
            b"\xf7" + MODULE + b"\x02\x01" + VALUE,
            record(b"used", 0, text(b"x"), before=b"\xfc" + LATER + b"\xf8\x05"),
            record(b"frequent", 0, text(b"x"), before=b"\xf9\x07"),
            b"\xf4\x05\x01\x00",
            record(b"module", 7, MODULE + VALUE),
            record(b"last", 0, text(b"y")),
        ),
        checked=True,
    )
    assert names(dump) == [b"used", b"frequent", b"module", b"last"]
    assert ask(dump, b"TYPE", b"module") == b"R4mrzQEjR"
    assert ask(dump, b"PTTL", b"used") == 5000
    assert dump.unread == 0
    dump.close()


def test_an_imported_slot_of_valkey_is_skipped_and_a_module_of_redis_8_refused(opened: Open) -> None:
    known = opened(
        crafted(b"\xf3" + text(b"job") + b"\x01\x05\x07", record(b"a", 0, text(b"x")), magic=b"VALKEY080")
    )
    assert names(known) == [b"a"]
    known.close()
    unknown = opened(crafted(b"\xf3\x01abcd\x00", record(b"a", 0, text(b"x"))))
    with pytest.raises(DumpError, match="the opcode 243 is not known"):
        names(unknown)
    unknown.close()


def test_options_of_memory_and_functions_of_a_server_do_not_disturb(
    raw: Raw, redis_url: str, tmp_path: Path
) -> None:
    with redis.Redis.from_url(redis_url) as client:
        for policy in ("allkeys-lfu", "allkeys-lru"):
            raw("CONFIG", "SET", "maxmemory-policy", policy)
            try:
                client.set("a", "x", ex=1000)
                client.set("b", "y")
                client.select(3)
                client.set("c", "z")
                path = dump_of(client, tmp_path / policy)
            finally:
                raw("CONFIG", "SET", "maxmemory-policy", "noeviction")
                client.select(0)
            first, fourth = DumpDatabase(path), DumpDatabase(path, number=3)
            assert sorted(names(first)) == [b"a", b"b"]
            assert names(fourth) == [b"c"]
            assert ask(fourth, b"GET", b"c") == b"z"
            assert ask(fourth, b"GET", b"a") is None
            assert first.numbers() == [0, 3]
            assert asyncio.run(numbers_with_keys(first)) == [0, 3]
            first.close()
            fourth.close()


def test_the_dump_of_an_append_only_file_is_read_and_later_commands_are_reported(tmp_path: Path) -> None:
    options = {"appendonly": "yes", "aof-use-rdb-preamble": "yes"}
    with (
        RedisServer(binary=new_binary(), options=options) as server,
        redis.Redis.from_url(server.url) as client,
    ):
        client.set("before", "x")
        client.bgrewriteaof()
        wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], "the file is rewritten")
        client.set("after", "y")
        folder = Path(client.config_get("dir")["dir"], client.config_get("appenddirname")["appenddirname"])
        with_parts = shutil.copytree(folder, tmp_path / "parts")
    dump = DumpDatabase(with_parts)
    assert names(dump) == [b"before"]
    assert dump.unread > 0
    dump.close()
    base, later = next(with_parts.glob("*.base.rdb")), next(with_parts.glob("*.incr.aof"))
    joined = tmp_path / "appendonly.aof"
    joined.write_bytes(base.read_bytes() + later.read_bytes())
    dump = DumpDatabase(joined, checked=True)
    assert names(dump) == [b"before"]
    assert dump.unread == later.stat().st_size
    dump.close()
    with pytest.raises(DumpError, match="an append-only file of commands without a dump at its beginning"):
        DumpDatabase(later)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "does not begin with REDIS or VALKEY"),
        (b"PK\x03\x04 a zip file", "does not begin with REDIS or VALKEY"),
        (b"REDIS0000\xff", "its version 0 does not exist"),
        (b"REDIS0011", "the file ends in the middle of it"),
        (b"REDIS0011\xfe\x81" + b"\xff" * 8 + b"\x00\x01a\x01b\xff", "there is no database"),
        (b"REDIS0011\x1a\x01a\x00\xff", "a key has the unknown type 26"),
        (b"REDIS0011\x06\x01a\x00\xff", "a key has the unknown type 6"),
        (b"REDIS0011\x00\x01a\x81" + b"\x7f" * 8 + b"x\xff", "the file ends in the middle of it"),
        (b"REDIS0011\x02\x01a\x81" + b"\xff" * 8 + b"\x01x\x05x", "the file ends in the middle of it"),
        (b"REDIS0011\x07\x01a\x05\x09\xff", "a part of the unknown form 9"),
        (b"REDIS0011\x00\x01a\x8f\xff", "a length is malformed"),
    ],
    ids=lambda each: each[:24] if isinstance(each, bytes) else "",
)
def test_a_file_that_is_not_a_dump_is_refused_with_the_place(
    opened: Open, content: bytes, reason: str
) -> None:
    with pytest.raises(DumpError, match=reason) as refused:
        names(opened(content))
    assert refused.value.path.endswith("dump.rdb")
    assert f"(byte {refused.value.offset:,})" in str(refused.value)


def node(key: bytes, *items: bytes) -> bytes:
    """Return a stream of one node."""
    return b"\x01" + text(key) + text(packed(*items)) + b"\0" * 9


def bomb(size: int) -> bytes:
    """Return a string whose compressed form claims so many bytes, and unpacks to 88 times its own."""
    data = b"\x00a" + b"\xe0\xff\x00" * 1000
    return b"\xc3\x80" + len(data).to_bytes(4, "big") + b"\x81" + size.to_bytes(8, "big") + data


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (0, bomb(1 << 62), Ask(b"GET")),
        (0, bomb(1 << 40), Ask(b"GET")),
        (0, bomb(1000), Ask(b"GET")),
        (Type.SET_INTSET, text(b"\x08\0\0\0\xff\xff\xff\x7f" + b"x" * 40), Ask(b"SMEMBERS")),
        (Type.SET_LISTPACK, text(b"\xff\xff\xff\x7f\xff\xff\xf0\xff\xff\xff\x7fabc\xff"), Ask(b"SMEMBERS")),
        (Type.HASH_LISTPACK, text(packed(b"a", b"b", b"c")), Ask(b"HGETALL")),
        (Type.HASH_LISTPACK_EX, SOONEST + text(packed(b"a", b"b", b"c")), Ask(b"HGETALL")),
        (Type.HASH_LISTPACK_EX, SOONEST + text(packed(b"a", b"b")), Ask(b"HGETALL")),
        (Type.LIST_QUICKLIST_2, b"\x01\x05\x01x", Ask(b"LRANGE", (0, -1))),
        (Type.ZSET_LISTPACK, text(packed(b"a", b"b", b"c")), Ask(b"ZRANGE", (0, -1))),
        (Type.ZSET, b"\x01\x01a\x01x", Ask(b"ZRANGE", (0, -1))),
        (Type.STREAM_3, node(b"short", b"1", b"0", b"0", b"0"), Ask(b"XRANGE", (b"-", b"+"))),
        (Type.STREAM_3, node(b"i" * 16, b"1", b"0", b"99", b"0"), Ask(b"XRANGE", (b"-", b"+"))),
        (Type.STREAM_3, node(b"i" * 16, b"1", b"0", b"x", b"0"), Ask(b"XRANGE", (b"-", b"+"))),
    ],
    ids=lambda each: str(each)[:16],
)  # fmt: skip
def test_a_malformed_value_is_our_error_when_it_is_read(
    opened: Open, kind: int, value: bytes, read: Ask
) -> None:
    dump = opened(crafted(record(b"key", kind, value), record(b"next", 0, text(b"x"))))
    assert names(dump) == [b"key", b"next"]
    with pytest.raises(DumpError):
        ask(dump, read.verb, b"key", *read.operands)
    dump.close()


def test_a_damaged_dump_is_refused_if_its_checksum_is_checked(opened: Open) -> None:
    content = bytearray(crafted(record(b"key", 0, text(b"value"))))
    opened(bytes(content), checked=True).close()
    content[content.index(b"value")] ^= 1
    opened(bytes(content)).close()
    with pytest.raises(DumpError, match="its checksum is wrong"):
        opened(bytes(content), checked=True)
    content[-8:] = bytes(8)
    opened(bytes(content), checked=True).close()


@pytest.mark.parametrize("size", [0, 9, 4096 * 512 - 1, 4096 * 512, 4096 * 512 * 2 + 77])
def test_the_checksum_in_lanes_is_that_of_byte_after_byte(size: int) -> None:
    data = random.Random(size).randbytes(size)
    table_only = 0
    for start in range(0, size, 1 << 20):
        table_only = crc64(data[start : start + (1 << 20)], table_only)
    assert crc64(data) == table_only
    assert crc64(b"123456789") == 0xE9C6D914C4B8D9CA


def test_the_same_member_thousands_of_times_is_refused_and_not_searched_forever(opened: Open) -> None:
    count = 600_000
    dump = opened(crafted(record(b"set", Type.SET, b"\x80" + count.to_bytes(4, "big") + b"\x01a" * count)))
    with pytest.raises(DumpError, match="the same name is there thousands of times"):
        ask(dump, b"SISMEMBER", b"set", b"absent")
    dump.close()


def test_a_command_that_writes_and_one_that_is_not_known_are_refused(opened: Open) -> None:
    dump = opened(crafted(record(b"key", 0, text(b"value"))))
    assert isinstance(ask(dump, b"SORT", b"key"), CapabilityError)
    assert isinstance(ask(dump, b"JSON.GET", b"key"), WrongTypeError)
    with pytest.raises(UsageError, match="may write"):
        asyncio.run(dump.run(Counter0("1").add(1)))
    dump.close()


class Counter0(Counter, key="count:<n>", space=Keyspace("counts", "Counts.")):
    """A count."""

    n: Id


def test_the_folder_of_a_manifest_may_not_lead_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no manifest"):
        DumpDatabase(tmp_path)
    (tmp_path / "a.manifest").write_text("file ../../etc/passwd seq 1 type b\n")
    with pytest.raises(UsageError, match="outside of its folder"):
        DumpDatabase(tmp_path)
    (tmp_path / "a.manifest").write_text("file a.incr.aof seq 1 type i\n")
    with pytest.raises(UsageError, match="names no base file"):
        DumpDatabase(tmp_path)


def test_a_cursor_of_one_reader_is_valid_for_another(redis_url: str, tmp_path: Path) -> None:
    with redis.Redis.from_url(redis_url) as client:
        for number in (0, 2, 5):
            client.select(number)
            client.mset({f"{number}:{n}": "x" * (n % 90) for n in range(700)})
        path = dump_of(client, tmp_path / "dump.rdb")
    for number in (0, 2, 5):
        cursor, found, pages = 0, list[bytes](), 0
        while True:
            dump = DumpDatabase(path, number=number)
            cursor, page = dump.keys.page(cursor, 64)
            dump.close()
            found += page
            pages += 1
            if not cursor:
                break
        assert sorted(found) == sorted(b"%d:%d" % (number, n) for n in range(700))
        assert pages > 10


def test_what_is_kept_does_not_grow_with_a_hostile_file(opened: Open) -> None:
    small, large = record(b"small", 0, text(b"x")), text(b"y" * 900_000)
    keys = [record(b"k%d" % n, 0, large) + record(b"s%d" % n, 0, text(b"x")) for n in range(60)]
    claims = [
        record(b"set", Type.SET, b"\x81" + b"\x7f" * 8),
        record(b"stream", Type.STREAM_3, b"\x81" + b"\x7f" * 8),
        record(b"group", Type.STREAM_3, b"\x00" * 9 + b"\x81" + b"\x7f" * 8),
    ]
    dump = opened(crafted(*keys, small))
    tracemalloc.start()
    try:
        assert len(names(dump)) == 121
        assert ask(dump, b"MGET", b"small", b"s3") is not None
        dump.close()
        for claim in claims:
            hostile = opened(crafted(small, claim))
            with pytest.raises(DumpError):
                names(hostile)
            hostile.close()
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()


SEEDS = sorted((Path(__file__).parents[2] / "fuzz" / "corpora" / "rdb").iterdir())


@pytest.mark.parametrize("seed", SEEDS, ids=lambda path: path.name)
def test_a_truncated_or_mutated_dump_raises_nothing_but_our_error(seed: Path) -> None:
    content = seed.read_bytes()
    noise = random.Random(content)
    for end in range(0, len(content), 3):
        one_input(content[:end])
    for _ in range(150):
        mutated = bytearray(content)
        for _ in range(noise.randrange(1, 4)):
            mutated[noise.randrange(9, len(mutated))] = noise.choice((0, 1, 0x7F, 0x80, 0x81, 0xC3, 0xFF))
        one_input(bytes(mutated))
