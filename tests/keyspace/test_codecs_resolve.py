"""The codec that a type hint stands for."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, NewType, TypedDict
from uuid import UUID

import msgspec
import pytest

from keywright import (
    Boolean,
    Bytes,
    Codec,
    CodecError,
    Duration,
    EpochMs,
    Hex,
    IdOf,
    Int64,
    Json,
    Keyring,
    MessagePack,
    Plain,
    Raw,
    Sealed,
    Secret,
    SnowflakeId,
    Zstd,
)
from keywright.keyspace.alphabets import Snowflake
from keywright.keyspace.codecs import EnumOf, Float, LiteralOf, Rfc3339, SecretOf, Text, Uint64, codec_of
from sealing import Bound


class Colour(enum.Enum):
    RED = "red"


class Order(msgspec.Struct, tag="order"):
    name: str


class Refund(msgspec.Struct, tag="refund"):
    amount: int


@dataclass
class Point:
    x: int


class Row(TypedDict):
    name: str


class Pair(NamedTuple):
    left: int


OrderId = NewType("OrderId", str)
UserId = NewType("UserId", SnowflakeId)
KEYRING = Keyring("k1", {"k1": b"1" * 32})


@pytest.mark.parametrize(
    ("hint", "codec"),
    [
        (str, Text),
        (int, Int64),
        (bool, Boolean),
        (float, Float),
        (bytes, Raw),
        (datetime, Rfc3339),
        (timedelta, Duration),
        (UUID, IdOf),
        (date, IdOf),
        (Decimal, IdOf),
        (Annotated[bytes, Bytes(b"")], IdOf),
        (Colour, EnumOf),
        (Literal["a", "b"], LiteralOf),
        (Secret[str], SecretOf),
        (OrderId, Text),
        (Order, Json),
        (Order | Refund, Json),
        (Order | None, Json),
        (Point, Json),
        (Row, Json),
        (Pair, Json),
        (dict[str, int], Json),
        (list, Json),
        (tuple[int, ...], Json),
        (Any, Json),
        (object, Json),
        (Annotated[str, "a note"], Text),
        (Annotated[int, Uint64()], Uint64),
        (Annotated[int, Uint64], Uint64),
        (Annotated[datetime, EpochMs()], EpochMs),
        (Annotated[Order, MessagePack], MessagePack),
        (Annotated[Decimal, Json], Json),
        (Annotated[Order, Zstd], Zstd),
        (Annotated[Order, partial(Zstd, level=9)], Zstd),
        (Annotated[Secret[str], Sealed], Sealed),
        (SnowflakeId, IdOf),
        (UserId, IdOf),
        (Annotated[SnowflakeId, Uint64()], Uint64),
        (Annotated[SnowflakeId, Sealed], Sealed),
    ],
)
def test_a_hint_stands_for_a_codec(hint: Any, codec: type[Codec[Any]]) -> None:
    assert type(codec_of(hint)) is codec


def test_markers_apply_from_left_to_right() -> None:
    order = Order("tea" * 100)
    stored = codec_of(Annotated[Order, MessagePack, Zstd]).encode(order)
    assert Zstd(Raw()).decode(stored) == MessagePack(Order).encode(order)
    sealed = Bound(codec_of(Annotated[Order, MessagePack, Zstd, Sealed]), KEYRING, b"a")
    assert Bound(Sealed(Raw()), KEYRING, b"a").decode(sealed.encode(order)) == stored
    assert sealed.decode(sealed.encode(order)) == order


def test_of_several_alphabets_the_outermost_counts() -> None:
    assert codec_of(Annotated[Annotated[str, Plain()], Hex(4)]).expected == Hex(4).expected


def test_a_secret_id_is_hidden_and_checked() -> None:
    codec = codec_of(Annotated[Secret[int], Snowflake()])
    assert codec.encode(Secret(2**53 + 1)) == b"9007199254740993"
    with pytest.raises(CodecError, match="<secret>"):
        codec.decode(b"abc")


def test_an_alphabet_class_is_refused_in_favour_of_an_instance() -> None:
    with pytest.raises(TypeError, match=r"Write Plain\(\)"):
        codec_of(Annotated[str, Plain])


def test_a_sealed_secret_is_read_as_a_secret() -> None:
    codec = Bound(codec_of(Annotated[Secret[str], Sealed]), KEYRING, b"a")
    assert codec.secret
    assert codec.decode(codec.encode(Secret("abc"))) == Secret("abc")


@pytest.mark.parametrize("marker", [MessagePack, Json(list[int]), Zstd])
def test_a_marker_on_a_secret_says_how_its_content_is_written(marker: Any) -> None:
    codec = codec_of(Annotated[Secret[list[int]], marker])
    assert codec.secret
    assert codec.decode(codec.encode(Secret([1]))) == Secret([1])


@pytest.mark.parametrize("hint", [complex, set[int], int | str, type, None, "str", Literal[1]])
def test_a_hint_without_codec_is_refused_with_advice(hint: Any) -> None:
    with pytest.raises(TypeError, match=r"Annotated\[|LiteralOf"):
        codec_of(hint)


def test_an_optional_scalar_is_refused_since_absence_is_none_already() -> None:
    with pytest.raises(TypeError, match="already reads as None"):
        codec_of(str | None)


def test_a_codec_that_holds_no_other_must_come_first() -> None:
    with pytest.raises(TypeError, match="Put it first"):
        codec_of(Annotated[Order, Zstd, MessagePack])


def test_a_constraint_that_would_not_be_checked_is_refused() -> None:
    with pytest.raises(TypeError, match="put it on a field"):
        codec_of(Annotated[int, msgspec.Meta(ge=0)])
