"""What holds for every codec, whatever it writes."""

from __future__ import annotations

import enum
import pickle
from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import pytest

from keywright import (
    Boolean,
    Bytes,
    Codec,
    CodecError,
    Day,
    Duration,
    EmptyAsNone,
    EpochFloat,
    EpochMs,
    EpochSeconds,
    FirstOf,
    Flag,
    Gzip,
    IdOf,
    Int64,
    Json,
    Keyring,
    Lz4,
    MessagePack,
    Pickled,
    Plain,
    PlainDecimal,
    Raw,
    Sealed,
    Uuid,
    Zlib,
    Zstd,
)
from keywright.keyspace import codecs
from keywright.keyspace.alphabets import Snowflake
from keywright.keyspace.codecs import EnumOf, Float, LiteralOf, Rfc3339, SecretOf, Text, Uint64
from keywright.testing import assert_codec
from sealing import Bound


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = -2


class Order(msgspec.Struct):
    name: str
    total: int
    lines: list[str] = []


@dataclass
class Point:
    x: int
    y: float


class Row(TypedDict):
    name: str


KEYRING = Keyring("k1", {"k1": b"1" * 32})
CODECS: list[Codec[Any]] = [
    Text(),
    Int64(),
    Uint64(),
    Float(),
    Boolean(),
    Boolean(true="true", false="false"),
    Rfc3339(),
    EpochMs(),
    EpochSeconds(),
    EpochFloat(),
    Duration(),
    Duration("ms"),
    EnumOf(Colour),
    EnumOf(Level),
    LiteralOf("a", "b"),
    Flag("admin"),
    Raw(),
    Json(),
    Json(Order),
    Json(Point),
    Json(Row),
    Json(list[Order] | None),
    MessagePack(),
    MessagePack(Order),
    IdOf(Plain()),
    IdOf(Snowflake()),
    IdOf(Uuid()),
    IdOf(Day()),
    IdOf(PlainDecimal()),
    IdOf(Bytes(b"")),
    Zstd(Text()),
    Zlib(Text(), min_size=0),
    Gzip(Text(), min_size=0),
    Lz4(Text(), min_size=0),
    EmptyAsNone(Int64()),
    Pickled(),
    FirstOf(Int64(), Pickled()),
    FirstOf(Zlib(Json(Order), min_size=0), Json(Order)),
    Zstd(Json(Order), min_size=0),
    SecretOf(Text()),
    Bound(Sealed(SecretOf(Text())), KEYRING, b"a:<b>"),
    Bound(Sealed(Int64(), allow_plaintext=True), KEYRING, b"a:<b>"),
    Bound(SecretOf(Sealed(Zstd(MessagePack(Order)))), KEYRING, b"a:<b>"),
]

every_codec = pytest.mark.parametrize("codec", CODECS, ids=repr)


@every_codec
def test_it_keeps_the_contract(codec: Codec[Any]) -> None:
    assert_codec(codec, examples=60)


@pytest.mark.parametrize("codec", [Text(), Json(Order), Int64()], ids=repr)
def test_one_bad_reply_among_many_is_the_one_named(codec: Codec[Any]) -> None:
    with pytest.raises(CodecError) as caught:
        codec.decode_many([codec.encode(codec.samples[0]), None, b"\xff"])
    assert caught.value.found.startswith(r"b'\xff'")


def test_an_excerpt_is_short() -> None:
    with pytest.raises(CodecError) as caught:
        Int64().decode(b"x" * 10_000)
    assert len(caught.value.found) <= 80
    assert caught.value.found.endswith("…")


def test_a_codec_error_says_what_it_expected_and_found_and_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(CodecError("UTF-8 text", "5")))
    assert (error.expected, error.found) == ("UTF-8 text", "5")
    assert str(error) == "expected UTF-8 text, found 5"


def test_the_exported_names_are_sorted_and_there() -> None:
    assert codecs.__all__ == sorted(codecs.__all__, key=lambda name: (not name[0].isupper(), name))
    assert all(hasattr(codecs, name) for name in codecs.__all__)
