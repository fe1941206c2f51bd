"""JSON, MessagePack and compression."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright import CodecError, Json, MessagePack
from keywright.errors import UsageError

MAGIC = b"\x28\xb5\x2f\xfd"


class Tier(enum.StrEnum):
    FREE = "free"


class Address(msgspec.Struct):
    street: str
    parent: Address | None = None


class Order(msgspec.Struct):
    name: str
    total: int
    placed: datetime
    tier: Tier
    address: Address
    tags: list[str] = []


class Cat(msgspec.Struct, tag="cat"):
    lives: int


class Dog(msgspec.Struct, tag="dog"):
    name: str


@dataclass
class Point:
    x: int
    y: float


class Row(TypedDict):
    name: str
    size: int


class Pair(NamedTuple):
    left: int
    right: str


class Endless(msgspec.Struct):
    again: Endless


class Host(pydantic.BaseModel, strict=True):
    """Strict: a time is taken from text in JSON only."""

    name: str = pydantic.Field(alias="hostName")
    since: datetime
    tier: Tier | None = None


class Site(msgspec.Struct):
    hosts: list[Host]


class Bounded(msgspec.Struct):
    share: Annotated[float, msgspec.Meta(gt=0.5, lt=0.75)]
    port: Annotated[int, msgspec.Meta(ge=1024, le=65535)]
    even: Annotated[int, msgspec.Meta(ge=11, multiple_of=2)]
    name: Annotated[str, msgspec.Meta(min_length=3, max_length=4)]
    tags: Annotated[list[str], msgspec.Meta(min_length=2)]


class Place(msgspec.Struct, array_like=True, tag="place"):
    x: int
    y: int | None = None


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


def deep(levels: int) -> Any:
    nested: Any = "]}"
    for level in range(levels):
        nested = [nested] if level % 2 else {'"\\': nested}
    return nested


def test_json_is_written_as_deep_as_every_python_reads_it_and_not_deeper() -> None:
    codec = Json()
    for value in (deep(200), [deep(199), deep(1)]):
        assert codec.decode(codec.encode(value)) == value
    for value in (deep(201), [deep(1), deep(200)], {"[[": deep(150), "a": [deep(200)]}):
        with pytest.raises(CodecError, match="nested deeper than 200 levels"):
            codec.encode(value)


@given(st.lists(st.text('[]{}"\\a'), max_size=20))
def test_wide_json_and_brackets_in_texts_are_not_depth(texts: list[str]) -> None:
    codec = Json()
    value = {"[" * 250: [{"texts": texts, "]": [[]]} for _ in range(100)]}
    assert codec.decode(codec.encode(value)) == value


BOTTOMLESS = 1_000_000  # from Python 3.14 on, C code recurses until the stack is full
both = pytest.mark.parametrize("form", [Json, MessagePack])


@given(plain)
def test_plain_data_round_trips(value: Any) -> None:
    assert Json().decode(Json().encode(value)) == value
    assert MessagePack().decode(MessagePack().encode(value)) == value


@given(st.builds(Point, st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False)))
def test_dataclasses_round_trip(point: Point) -> None:
    assert Json(Point).decode(Json(Point).encode(point)) == point
    assert MessagePack(Point).decode(MessagePack(Point).encode(point)) == point


@both
@pytest.mark.parametrize(
    "hint",
    [
        *(Order, Point, Row, Pair, Cat | Dog, Host, Site, Bounded, Place, Order | None, Any),
        *(list[Order], list[Host], dict[str, Any], dict[str, object]),
    ],
)
def test_a_simple_type_has_a_sample_that_round_trips(form: type[Json], hint: Any) -> None:
    codec = form(hint)
    assert [codec.decode(codec.encode(sample)) for sample in codec.samples] == list(codec.samples) != []


@both
def test_the_samples_of_a_union_have_each_of_its_arms(form: type[Json]) -> None:
    assert {type(sample) for sample in form(Cat | Dog | None).samples} == {Cat, Dog, type(None)}


def test_a_pydantic_model_is_written_as_it_dumps_it() -> None:
    host = Host(hostName="a", since=datetime(2024, 5, 1, tzinfo=UTC))
    stored = Json(Host).encode(host)
    assert stored == b'{"hostName":"a","since":"2024-05-01T00:00:00Z","tier":null}'
    assert Host.model_validate_json(stored) == host == Json(Host).decode(stored)


@both
def test_what_a_pydantic_model_refuses_is_refused(form: type[Json]) -> None:
    with pytest.raises(CodecError, match="of Host"):
        form(Host).decode(form().encode({"hostName": 1}))
    with pytest.raises(CodecError, match="of Host"):
        form(Host).encode({"hostName": "a"})


@both
@pytest.mark.parametrize("hint", [complex, list[complex], dict[str, complex | None]])
def test_a_type_that_cannot_be_written_is_refused_at_once(form: type[Json], hint: Any) -> None:
    with pytest.raises(UsageError, match=r"^complex cannot be written as .* or write a Codec of your own"):
        form(hint)


@both
def test_a_type_without_a_finite_value_has_no_sample(form: type[Json]) -> None:
    assert form(Endless).samples == ()


@both
@pytest.mark.parametrize("value", [2**53 + 1, 2**63 - 1, 2**64 - 1, -(2**63)])
def test_integers_stay_exact(form: type[Json], value: int) -> None:
    assert form().decode(form().encode({"id": value})) == {"id": value}


def test_json_is_compact_and_keeps_null_and_empty_lists() -> None:
    assert Json().encode({"a": None, "b": [], "c": "é"}) == '{"a":null,"b":[],"c":"é"}'.encode()


def test_lax_json_reads_numbers_written_as_text() -> None:
    assert Json(Point, strict=False).decode(b'{"x":"1","y":2}') == Point(1, 2.0)
    with pytest.raises(CodecError):
        Json(Point).decode(b'{"x":"1","y":2}')


@both
@pytest.mark.parametrize("value", ["text", None, {"x": 1, "y": 2.0}, Cat(9)])
def test_a_value_of_another_type_is_refused(form: type[Json], value: object) -> None:
    with pytest.raises(CodecError):
        form(Point).encode(value)


@both
def test_bottomless_data_is_refused(form: type[Json]) -> None:
    nested: list[Any] = []
    for _ in range(BOTTOMLESS):
        nested = [nested]
    with pytest.raises(CodecError):
        form().encode(nested)
    with pytest.raises(CodecError):
        form().decode(b"[" * BOTTOMLESS if form is Json else b"\x91" * BOTTOMLESS)


def test_a_refusal_tells_which_field_was_wrong() -> None:
    with pytest.raises(CodecError, match=r"JSON of Point, found .*missing required field `y`"):
        Json(Point).decode(b'{"x":1}')


def test_the_expectation_names_the_type() -> None:
    assert Json().expected == "JSON"
    assert Json(list[Order]).expected == "JSON of list[Order]"
    assert MessagePack(Cat | Dog).expected == "MessagePack of Cat | Dog"


def test_times_inside_json_keep_their_zone() -> None:
    codec = Json(list[datetime])
    assert codec.decode(codec.encode([datetime(2019, 8, 8, tzinfo=UTC)])) == [
        datetime(2019, 8, 8, tzinfo=UTC)
    ]
