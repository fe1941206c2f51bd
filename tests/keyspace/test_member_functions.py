"""Generated functions of classes with fields do what the plain ones do, also with malformed values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright import (
    BitFields,
    Bits,
    Codec,
    CodecError,
    Entry,
    Flag,
    Id,
    Int64,
    Keyspace,
    OtherFields,
    Record,
    SnowflakeId,
    Stream,
)
from keywright.keyspace.codecs import Float, Text, Uint64, codec_of
from keywright.keyspace.kinds.encoders import items, optional, paired, scored, unique

space = Keyspace("parts", "Classes with fields of every form.", prefix="parts")


class Struct(msgspec.Struct, kw_only=True):
    owner: SnowflakeId
    plate: str = msgspec.field(name="licence")
    built: datetime
    price: float | None = None
    doors: int = 4
    electric: Annotated[bool, Flag("yes")] = False
    tags: list[str] = []


@dataclass
class Positive:
    """Refuses some values of the right types."""

    count: int
    notes: list[str] = field(default_factory=list)
    item: str | None = None

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError("count is negative")


class Steps(msgspec.Struct):
    status: str
    tries: int = 0
    steps: Annotated[dict[str, int], OtherFields] = {}


class Model(pydantic.BaseModel):
    name: str = pydantic.Field(alias="the-name")
    level: int = 1


class Card(msgspec.Struct):
    method: Literal["card"]
    digits: str


class Cash(msgspec.Struct):
    method: Literal["cash", "coins"]
    given: int


@dataclass
class Bytes:
    level: Annotated[int, Bits(8)]
    mood: Annotated[int, Bits(8, signed=True)] = 0


class BytesBits(BitFields[Bytes], key="bytes:<n>", space=space):
    n: Id


class StructRecord(Record[Struct], key="struct:<n>", space=space):
    n: Id


class PositiveRecord(Record[Positive], key="positive:<n>", space=space):
    n: Id


class StepsStream(Stream[Steps], key="steps:<n>", space=space):
    n: Id


class Lap(msgspec.Struct):
    runner: str
    lap: int


class LapStream(Stream[Lap], key="laps:<n>", space=space):
    n: Id


class Nothing(msgspec.Struct):
    """Has no members."""


class NothingStream(Stream[Nothing], key="nothing:<n>", space=space):
    n: Id


class ModelRecord(Record[Model], key="model:<n>", space=space):
    n: Id


class BillRecord(Record[Card | Cash], key="bill:<n>", space=space):
    n: Id


texts = st.text(max_size=3)
integers = st.integers(-(2**63), 2**63 - 1)
times = st.datetimes(timezones=st.just(UTC))
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    StructRecord: st.builds(
        Struct,
        owner=st.integers(0, 2**64 - 1),
        plate=texts,
        built=times,
        price=st.none() | st.floats(allow_nan=False),
        doors=integers,
        electric=st.booleans(),
        tags=st.lists(texts, max_size=2),
    ),
    PositiveRecord: st.builds(Positive, st.integers(0, 9), st.lists(texts, max_size=2), st.none() | texts),
    StepsStream: st.builds(Steps, texts, integers, st.dictionaries(texts, integers, max_size=2)),
    ModelRecord: texts.map(lambda name: Model.model_validate({"the-name": name})),
    BillRecord: st.builds(Card, st.just("card"), texts)
    | st.builds(Cash, st.sampled_from(["cash", "coins"]), integers),
}
kinds = pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.__name__)
wrong = st.none() | st.booleans() | st.integers() | st.floats() | st.just("\ud800") | st.binary() | texts


def outcome(function: Callable[[Any], Any], argument: Any) -> Any:
    try:
        return function(argument)
    except Exception as error:  # noqa: BLE001  # it is compared
        return type(error), str(error)


@kinds
@given(data=st.data())
def test_values_are_written_as_by_the_plain_functions(kind: Any, data: st.DataObject) -> None:
    value = data.draw(VALUES[kind])
    fields = kind._fields
    assert fields.flat(value) == fields.flat_plainly(value)
    assert fields.unflatten(list(fields.flat(value))) == value


@kinds
@given(data=st.data())
def test_wrong_values_are_refused_as_by_the_plain_functions(kind: Any, data: st.DataObject) -> None:
    value = data.draw(VALUES[kind])
    fields = kind._fields
    attributes = [each.attribute for each in fields.members if hasattr(value, each.attribute)]
    setattr(value, data.draw(st.sampled_from(attributes)), data.draw(wrong))
    assert outcome(fields.flat, value) == outcome(fields.flat_plainly, value)
    other = data.draw(wrong)
    assert outcome(fields.flat, other) == outcome(fields.flat_plainly, other)


@kinds
@given(data=st.data())
def test_every_reply_is_read_as_by_the_plain_functions(kind: Any, data: st.DataObject) -> None:
    fields = kind._fields
    flat = fields.flat(data.draw(VALUES[kind]))
    pairs = list(zip(flat[::2], flat[1::2], strict=True))
    names = st.sampled_from([each.stored for each in fields.members]) | st.binary(max_size=3)
    pairs += data.draw(st.lists(st.tuples(names, st.binary(max_size=3)), max_size=2))
    pairs = data.draw(st.permutations(pairs))[: data.draw(st.integers(0, len(pairs)))]
    reply = [part for pair in pairs for part in pair]
    reply += data.draw(st.lists(st.binary(max_size=3), max_size=1))
    assert outcome(fields.unflatten, reply) == outcome(fields.unflatten_plainly, reply)


@given(st.lists(st.tuples(texts, integers, st.sampled_from([b"lap", b"other"]), st.booleans()), max_size=3))
def test_entries_of_streams_are_read_in_turn(rows: list[tuple[str, int, bytes, bool]]) -> None:
    reply: list[Any] = [
        [b"%d-0" % n, [b"runner", runner.encode(), name, b"%d" % lap]]
        for n, (runner, lap, name, _) in enumerate(rows)
    ]
    reply += [[b"9-0", None]]
    for each, (*_, swapped) in zip(reply, rows, strict=False):
        each[1] = [*each[1][2:], *each[1][:2]] if swapped else each[1]
    if any(name == b"other" for _, _, name, _ in rows):
        with pytest.raises(CodecError, match="the member 'lap'"):
            LapStream._decode_entries(reply)
        return
    found = LapStream._decode_entries(reply)
    assert found == [Entry(f"{n}-0", Lap(runner, lap)) for n, (runner, lap, _, _) in enumerate(rows)]
    assert all(type(entry) is Entry for entry in found)


def test_a_class_without_members_is_read_from_nothing() -> None:
    assert NothingStream._decode_entries([[b"1-0", []], [b"2-0", None]]) == [Entry("1-0", Nothing())]


class Roman(Int64):
    """A codec of a program that reads in its own way."""

    def decode(self, data: bytes) -> int:
        return len(data) if data else super().decode(data)


def test_a_subclass_of_a_codec_decodes_in_its_own_way() -> None:
    assert Roman().decoding("data", "decode") == "decode(data)"
    assert Int64().decoding("data", "decode") == Uint64().decoding("data", "decode") != "decode(data)"


class Reversed(Text):
    """A text that is stored backwards: its base has quick forms of both methods."""

    def encode(self, value: str) -> bytes:
        return super().encode(value[::-1])

    def decode(self, data: bytes) -> str:
        return super().decode(data)[::-1]


def test_quick_forms_of_a_base_do_not_stand_for_the_methods_of_a_subclass() -> None:
    codec = Reversed()
    assert codec.encode_many(["abc"]) == [b"cba"]
    assert codec.decode_many([b"cba", None]) == ["abc", None]
    assert optional(codec)(b"cba") == "abc"
    assert codec.encoding("value", "encode") == "encode(value)"


@given(st.binary(max_size=21) | integers.map(lambda number: b"%d" % number))
def test_integers_are_decoded_in_line_as_by_the_codec(data: bytes) -> None:
    def in_line(data: bytes) -> Any:
        return eval(Int64().decoding("data", "decode"), {"data": data, "decode": Int64().decode})

    assert outcome(in_line, data) == outcome(Int64().decode, data)


bit_members = st.integers(-300, 300) | st.none() | st.booleans()


@given(bit_members, bit_members)
def test_bit_fields_are_written_as_by_the_plain_function(level: Any, mood: Any) -> None:
    value = Bytes(level, mood)
    assert outcome(BytesBits._write, value) == outcome(BytesBits._write_plainly, value)
    assert outcome(BytesBits._write, level) == outcome(BytesBits._write_plainly, level)


@given(st.lists(st.integers(0, 255), max_size=3) | st.none())
def test_bit_fields_are_read_as_by_the_plain_function(reply: Any) -> None:
    assert outcome(BytesBits._read, reply) == outcome(BytesBits._read_plainly, reply)


CODECS = (Text(), Int64(), Uint64(), Float(), codec_of(Id), codec_of(dict[str, int]), Flag("on"))


@pytest.mark.parametrize("codec", CODECS, ids=repr)
@given(data=st.data())
def test_collections_are_decoded_as_by_the_plain_functions(codec: Codec[Any], data: st.DataObject) -> None:
    valid = st.sampled_from(codec.samples).map(codec.encode)
    reply = data.draw(st.lists(valid | st.binary(max_size=3), max_size=4) | st.lists(valid) | st.none())
    numbers = st.sampled_from([b"1", b"-0.5", b"inf", b"nan", b"x", b"1_0"])
    flat = [part for each in reply or () for part in (each, data.draw(numbers))]
    flat = flat[: len(flat) - data.draw(st.booleans())]
    for decode, argument in (
        (items(codec), reply),
        (unique(codec), reply),
        (paired(codec, Float()), flat),
        (paired(Text(), codec), reply),
        (scored(codec, float), flat),
        (scored(codec, str), flat),
    ):
        plainly = decode.__globals__.get("plainly", decode)
        assert repr(outcome(decode, argument)) == repr(outcome(plainly, argument))
