"""Inference of kinds, codecs and expiries from what is stored, on a real server."""

from __future__ import annotations

import gzip
import importlib.util
import itertools
import json
import pickle
import struct
import zlib
from collections.abc import Sequence

import msgspec
import pytest
import redis

from inferred_modules import declared_space, inferred_server, unproved
from keywright import connect
from keywright.keyspace.call import Plain
from keywright.operations import Effect, Operation
from keywright.tools.infer.structs import Structs
from keywright.tools.infer.values import hint_of, member_hint, score_hint

JSON = msgspec.json.encode({"name": "x", "size": 3})
PHP = b'O:4:"User":1:{s:4:"name";s:3:"Ann";}'
JAVA = b"\xac\xed\x00\x05sr\x00\x11java.lang.Integer"
PROTOBUF = [b"\x08" + bytes([n]) + b"\x12\x03abc" for n in range(1, 5)]


def hint(values: Sequence[bytes]) -> str:
    return hint_of(values, Structs(()), "thing").text


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([zlib.compress(JSON * 1), zlib.compress(JSON)], "Annotated[ThingDetails, Json, Zlib]"),
        ([gzip.compress(b"text")], "Annotated[str, Gzip]"),
        ([zlib.compress(b"text" * 99), b"short"], "Annotated[str, Zlib]"),
        ([zlib.compress(gzip.compress(JSON))], "Annotated[ThingDetails, Json, Gzip, Zlib]"),
        ([zlib.compress(pickle.dumps([1]))], "Annotated[bytes, Pickled, Zlib]"),
        ([b"7", pickle.dumps([1])], "Annotated[int | bytes, FirstOf(Int64(), Pickled())]"),
        ([JSON, pickle.dumps([1])], "Annotated[Any, FirstOf(Pickled(), Json(ThingDetails))]"),
        ([JSON, b""], "Annotated[ThingDetails | None, Json, EmptyAsNone]"),
        ([b"2026-11-16T12:00:00Z", b""], "Annotated[datetime | None, EmptyAsNone]"),
        ([b"text", b""], "str"),
        ([b'"text"', b"7", b"null"], "Annotated[Any, Json]"),
        ([JSON, msgspec.msgpack.encode({"name": "x", "size": 300})], None),
        ([b"f81d4fae-7dec-41d0-a765-00a0c91e6bf6"], "UUID"),
        ([b"2026-11-16"], "date"),
        ([b"2026-13-16"], "str"),
        ([b"12.50", b"9.99", b"1.00"], "Decimal"),
        ([b"1.0", b"2.0", b"3.0"], "float"),
        ([b"0042", b"0007"], "str"),
        ([b"1700000000.25", b"1700000001.5", b"1700000002.75"], "Annotated[datetime, EpochFloat()]"),
        ([b"1700000000000"], "Annotated[datetime, EpochMs()]"),
        ([b"yes", b"no"], 'Annotated[bool, Boolean("yes", "no")]'),
        ([PHP], "bytes"),
        ([JAVA], "bytes"),
        (PROTOBUF, "bytes"),
        ([b"inf", b"nan"], "str"),
    ],
)
def test_the_type_of_values(values: list[bytes], expected: str | None) -> None:
    expected = expected or "Annotated[ThingDetails, FirstOf(Json(ThingDetails), MessagePack(ThingDetails))]"
    assert hint(values) == expected


def test_texts_of_documents_are_typed_where_writing_them_gives_the_same_text() -> None:
    structs = Structs(())
    documents = [
        {
            "at": "2026-11-16T12:00:00.123Z",
            "day": "2026-11-16",
            "offset": "2026-11-16T12:00:00+00:00",
            "order": "f81d4fae-7dec-41d0-a765-00a0c91e6bf6",
            "tags": ["F81D4FAE-7DEC-41D0-A765-00A0C91E6BF6"],
            "text": text,
        }
        for text in ("2026-11-16", "x")
    ]
    hint_of([json.dumps(each).encode() for each in documents], structs, "thing")
    types = {each.stored: each.hint for each in structs.members["ThingDetails"]}
    assert types == {
        "at": "datetime",
        "day": "date",
        "offset": "str",
        "order": "UUID",
        "tags": "list[str]",
        "text": "str",
    }
    packed = Structs(())
    hint_of([msgspec.msgpack.encode(each) for each in documents], packed, "thing")
    assert {each.hint for each in packed.members["ThingDetails"]} == {"str", "list[str]"}


@pytest.mark.skipif(importlib.util.find_spec("lz4") is None, reason="lz4 is not installed")
def test_frames_of_lz4_and_zstd_are_unpacked() -> None:
    import lz4.frame
    import zstandard

    assert hint([lz4.frame.compress(JSON)]) == "Annotated[ThingDetails, Json, Lz4]"
    assert hint([zstandard.compress(JSON)]) == "Annotated[ThingDetails, Json, Zstd]"


@pytest.mark.parametrize(("values", "words"), [([PHP], "PHP"), ([JAVA], "Java"), (PROTOBUF, "protobuf")])
def test_bytes_of_other_languages_are_named_in_a_note(values: list[bytes], words: str) -> None:
    assert words in hint_of(values, Structs(()), "thing").note


def test_a_class_whose_name_is_in_a_php_value_is_not_shown() -> None:
    assert "User" not in str(hint_of([PHP], Structs(()), "thing"))


@pytest.mark.parametrize(
    "bomb",
    [
        zlib.compress(bytes(1 << 26)),
        gzip.compress(zlib.compress(gzip.compress(zlib.compress(bytes(1 << 20))))),
        b"[" * 60_000,
        b"[" * 500 + b"]" * 500,
        b'{"a":' * 500 + b"1" + b"}" * 500,
        b"\xdd\xff\xff\xff\xff",
        b"\x91" * 60_000,
        b"\x80\x04" + b"(" * 60_000 + b".",
        b"\x80\x04\x8e" + struct.pack("<Q", 1 << 60) + b".",
        b"\x80\x05\x95" + b"\xff" * 8 + b"N.",
        b"9" * 60_000,
        b"1e999",
        b"HYLL" + bytes(5),
    ],
    ids=itertools.count(),
)
def test_bombs_are_data(bomb: bytes) -> None:
    for values in ([bomb], [bomb, b"{}"], [bomb, b""], [bomb, b"7"], [bomb, zlib.compress(b"x")]):
        assert hint(values)
        assert member_hint(values).text in ("str", "bytes", "int")


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([b"1700000000", b"1700000001", b"1700000009"], "Annotated[datetime, EpochSeconds()]"),
        ([b"1700000000.5", b"1700000001.5", b"inf"], "Annotated[datetime | None, EpochFloat()]"),
        ([b"1700000000000", b"1700000000001", b"1700000000002"], "datetime"),
        ([b"1", b"inf"], "float"),
        ([b"1", b"2"], "int"),
        ([b"1.5"], "float"),
        ([], "float"),
    ],
)
def test_the_type_of_scores(scores: list[bytes], expected: str) -> None:
    assert score_hint(scores).text == expected


def test_kinds_with_a_meaning_groups_and_fields_that_vary(redis_url: str) -> None:
    with connect(redis_url) as db:
        for n in range(8):
            key = b":%d" % n
            for words in (
                (b"PFADD", b"visitors" + key, b"ann", b"bob"),
                (b"SETBIT", b"seats" + key, b"100", b"1"),
                (
                    b"GEOADD",
                    b"places" + key,
                    b"13.4",
                    b"52.5",
                    b"a",
                    b"2.35",
                    b"48.85",
                    b"b",
                    b"151.2",
                    b"-33.8",
                    b"c",
                ),
                (b"XADD", b"orders" + key, b"*", b"kind", b"made", b"zq%d" % n, b"1"),
                (b"XGROUP", b"CREATE", b"orders" + key, b"billing", b"0"),
                (
                    b"HSET",
                    b"workflow" + key,
                    b"title",
                    b"t",
                    b"owner",
                    b"7",
                    b"zq%d" % n,
                    b"1",
                    b"zp%d" % n,
                    b"2",
                ),
                (b"SET", b"job" + key, b"x", *((b"EX", b"600") if n % 2 else ())),
                (b"ZADD", b"due" + key, b"%d" % (1_700_000_000 + n), b"a", b"inf", b"b"),
                (b"SADD", b"marks" + key, b"f81d4fae-7dec-41d0-a765-00a0c91e6bf6"),
            ):
                name = words[2] if words[0] == b"XGROUP" else words[1]
                db.run(Plain(Operation("plant", words[0], Effect.ONCE), words[1:], name))
    found = inferred_server(redis_url)
    assert unproved(declared_space(found)) == []
    assert {key.declared.words[0]: key.kind for key in found.keys} == {
        "visitors": "HyperLogLog[str]",
        "seats": "Bitmap",
        "places": "Geo[str]",
        "orders": "Stream[OrdersDetails]",
        "workflow": "Record[WorkflowDetails]",
        "job": "Value[str]",
        "due": "SortedSet[str, Annotated[datetime | None, EpochSeconds()]]",
        "marks": "Set[UUID]",
    }
    assert 'groups=["billing"]' in found.text
    assert found.text.count("others: Annotated[dict[str, int], OtherFields] = {}") == 2
    assert "expiry=may_expire()" in found.text
    assert "zq" not in found.text


def test_of_keys_with_large_entries_little_is_read(redis_url: str) -> None:
    large = bytes(1 << 20)
    with redis.Redis.from_url(redis_url) as client:
        for n in range(3):
            client.rpush(f"blobs:{n}", *[large] * 20)
            client.hset(f"pages:{n}", mapping={f"{field:05}": large for field in range(20)})
            client.zadd(f"ranks:{n}", {f"member {m:06}": m for m in range(60_000)})
            client.set(f"page:{n}", large)
        sent = int(client.info("stats")["total_net_output_bytes"])
        found = inferred_server(redis_url)
        sent = int(client.info("stats")["total_net_output_bytes"]) - sent
    assert {key.declared.words[0]: key.kind.partition("[")[0] for key in found.keys} == {
        "blobs": "List",
        "page": "Value",
        "pages": "Map",
        "ranks": "SortedSet",
    }
    assert {key.kind for key in found.keys if key.redis_type == "zset"} == {"SortedSet[str, int]"}
    assert 1 << 20 < sent < 40 << 20  # of 123 MiB
