"""Message bodies: encoded in every encoding, recognised in any."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright.errors import UsageError
from keywright_messaging.encodings import CONTENT_TYPES, Encoding, decode, encode
from keywright_messaging.errors import UndecodableError, UnwritableError

ID = 2**53 + 1
BOTH_WAYS = b"\x83F\x01\x01\xcc\xc8\x03\xcd\x0f\xa0"
AS_MAP = {70: 1, 1: 200, 3: 4000}
AS_ETF = struct.unpack(">d", BOTH_WAYS[2:])[0]

every_encoding = pytest.mark.parametrize("encoding", list(Encoding))


class Member(msgspec.Struct):
    id: int
    nick: str | None = None
    roles: list[str] = []
    joined: datetime | None = None
    avatar: bytes = b""


@dataclass
class Point:
    x: int
    y: float


def _nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    inner = st.recursive(
        leaves,
        lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(), part, max_size=4),
        max_leaves=10,
    )
    return st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)


plain = _nested(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)


@every_encoding
@pytest.mark.parametrize(
    "data",
    [
        {"id": ID, "big": 2**63 - 1, "bigger": 2**64 - 1, "low": -(2**63)},
        {"empty": [], "none": {}, "null": None},
        [],
        {},
        None,
        True,
        False,
        0,
        -1,
        ID,
        1.5,
        "",
        "text that is not JSON",
        "☕ é 𝄞 \x00",
        [[[{"a": [{"b": [None]}]}]]],
        {"op": 0, "t": "MESSAGE_CREATE", "d": {"id": str(ID)}},
        {"long": "x" * 70_000},
        {str(number): number for number in range(70_000)},
    ],
    ids=lambda data: repr(data)[:40],
)
def test_every_encoding_keeps_the_data(encoding: Encoding, data: Any) -> None:
    body = encode(data, encoding)
    for found in (decode(body), decode(body, content_type=CONTENT_TYPES[encoding])):
        assert found == data
        assert type(found) is type(data)


@every_encoding
@given(data=plain)
def test_objects_and_arrays_round_trip(encoding: Encoding, data: Any) -> None:
    assert decode(encode(data, encoding)) == data


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        (Encoding.JSON, b'{"a":[1,null]}'),
        (Encoding.MSGPACK, b"\x81\xa1a\x92\x01\xc0"),
        (Encoding.SPECTACLES, b'\xae{"a":[1,null]}'),
        (Encoding.ETF, b"\x83t\x00\x00\x00\x01m\x00\x00\x00\x01al\x00\x00\x00\x02a\x01s\x03nilj"),
    ],
)
def test_the_bytes_of_each_encoding(encoding: Encoding, body: bytes) -> None:
    assert encode({"a": [1, None]}, encoding) == body
    assert encode(msgspec.Raw(b'{"a":[1,null]}'), encoding) == body


def test_raw_json_keeps_its_spelling_where_the_encoding_holds_json() -> None:
    raw = msgspec.Raw(b'{ "a" : 1.0 }')
    assert encode(raw, Encoding.JSON) == b'{ "a" : 1.0 }'
    assert encode(raw, Encoding.SPECTACLES) == b'\xad{ "a" : 1.0 }'
    assert encode({"d": raw}, Encoding.JSON) == b'{"d":{ "a" : 1.0 }}'


@every_encoding
def test_structs_are_written_as_objects_and_read_back_as_themselves(encoding: Encoding) -> None:
    member = Member(ID, "nick", ["1"], datetime(2020, 1, 1, tzinfo=UTC), b"abcd")
    body = encode(member, encoding)
    assert decode(body)["id"] == ID
    assert decode(body, Member) == member
    assert decode(body, Member, content_type=CONTENT_TYPES[encoding]) == member


@every_encoding
def test_a_body_is_read_as_a_dataclass(encoding: Encoding) -> None:
    body = encode({"x": 1, "y": 2.5}, encoding)
    assert decode(body, Point) == Point(1, 2.5)
    assert decode(body, dict[str, float]) == {"x": 1.0, "y": 2.5}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"t":"READY","d":{"id":"1","roles":[]}}', id="JSON"),
        pytest.param(b"\x82\xa1t\xa5READY\xa1d\x82\xa2id\xa11\xa5roles\x90", id="a MessagePack map"),
        pytest.param(b'\xda\x00\x27{"t":"READY","d":{"id":"1","roles":[]}}', id="legacy raw of 16 bits"),
        pytest.param(
            b'\xdb\x00\x00\x00\x27{"t":"READY","d":{"id":"1","roles":[]}}', id="legacy raw of 32 bits"
        ),
        pytest.param(b'\xd9\x27{"t":"READY","d":{"id":"1","roles":[]}}', id="str 8"),
        pytest.param(b'\xc4\x27{"t":"READY","d":{"id":"1","roles":[]}}', id="bin 8"),
        pytest.param(b'\xc5\x00\x27{"t":"READY","d":{"id":"1","roles":[]}}', id="bin 16"),
        pytest.param(b'\xc6\x00\x00\x00\x27{"t":"READY","d":{"id":"1","roles":[]}}', id="bin 32"),
    ],
)
def test_bodies_of_spectacles_publishers_are_decoded(body: bytes) -> None:
    assert decode(body) == {"t": "READY", "d": {"id": "1", "roles": []}}
    assert decode(body, dict[str, Any])["t"] == "READY"


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (b' \t\r\n{"a":1} ', {"a": 1}),
        (b"\n[1]", [1]),
        (b"null", None),
        (b"true", True),
        (b"false", False),
        (b"-5", -5),
        (b"7", 7),
        (b'"x"', "x"),
        (b"\x07", 7),
        (b"{", 123),
        (b"\xc0", None),
        (b"\xff", -1),
        (b"\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", 1.5),
        (b"\xdc\x00\x01\x05", [5]),
        (b"\xde\x00\x01\xa1a\x05", {"a": 5}),
        (b"\x83\xa1a\x01\xa1b\x02\xa1c\x03", {"a": 1, "b": 2, "c": 3}),
        (b"\x83\xd9\x01a\x01\xa1b\x02\xa1c\x03", {"a": 1, "b": 2, "c": 3}),
        (b"\x83\x61\x01\x02\x02\x03\x03", {97: 1, 2: 2, 3: 3}),
        (b"\x83\x01\x01\x02\x02\x03\x03", {1: 1, 2: 2, 3: 3}),
        (b"\x83a\x01", 1),
        (b"\x83j", []),
        (b"\xa2{}", {}),
        (b"\xa2hi", "hi"),
        (b"\xa97 wonders", "7 wonders"),
        (b"\xc4\x02\xff\x00", b"\xff\x00"),
    ],
)
def test_a_body_is_recognised_by_its_first_bytes(body: bytes, data: Any) -> None:
    found = decode(body)
    assert (found, type(found)) == (data, type(data))


def test_a_lone_digit_is_json_unless_the_content_type_says_otherwise() -> None:
    assert encode(48, Encoding.MSGPACK) == b"0"
    assert decode(b"0") == 0
    assert decode(b"0", content_type="application/msgpack") == 48


@pytest.mark.parametrize(
    ("content_type", "data"),
    [
        ("application/msgpack", AS_MAP),
        ("application/x-msgpack", AS_MAP),
        ("Application/MsgPack; charset=binary", AS_MAP),
        ("application/x-erlang-etf", AS_ETF),
        ("application/octet-stream", AS_ETF),
        ("", AS_ETF),
    ],
)
def test_a_known_content_type_decides(content_type: str, data: Any) -> None:
    assert decode(BOTH_WAYS, content_type=content_type) == data


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8"])
def test_a_json_content_type_allows_only_json(content_type: str) -> None:
    assert decode(b"[1]", content_type=content_type) == [1]
    with pytest.raises(UndecodableError):
        decode(b"\x91\x01", content_type=content_type)


def test_text_is_text_to_who_wants_text() -> None:
    assert decode(b"\xa17", str) == "7"
    assert decode(b"\xa97 wonders", str) == "7 wonders"
    assert decode(b'\xa3"7"', str) == "7"
    assert decode(b"\xc4\x02\xff\x00", bytes) == b"\xff\x00"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "truncated"),
        (b"hello", "trailing"),
        (b'{"a":', "truncated"),
        (b'{"a":1}x', "trailing"),
        (b'"\xff"', "utf-8"),
        (b"\xc1", "invalid opcode"),
        (b"\xa1\xff", "utf-8"),
        (b"\x83g\x00", "the tag 103"),
        (b"\x83m\x00\x00\x00\x09abc", "truncated"),
        (b"\x92\x01", "truncated"),
        (b"[" * 100_000, "recursion"),
        (b"\x91" * 100_000, "recursion"),
        (b"\xdb\x00\x01\x86\xa0" + b"[" * 100_000, "recursion"),
    ],
    ids=lambda part: repr(part)[:30],
)
def test_a_body_in_no_encoding_is_undecodable_with_the_reason(body: bytes, reason: str) -> None:
    with pytest.raises(UndecodableError, match=reason) as caught:
        decode(body)
    assert caught.value.expected == "JSON, MessagePack or ETF"


@every_encoding
def test_a_body_of_another_shape_is_undecodable_and_the_error_names_the_field(encoding: Encoding) -> None:
    body = encode({"id": "seven", "long": "x" * 10_000_000}, encoding)
    with pytest.raises(UndecodableError, match=r"Expected `int`, got `str` - at `\$\.id`") as caught:
        decode(body, Member)
    assert caught.value.expected == "a Member"
    assert len(str(caught.value)) < 700


def test_a_long_reason_is_cut() -> None:
    class Strict(msgspec.Struct, forbid_unknown_fields=True):
        pass

    with pytest.raises(UndecodableError) as caught:
        decode(b'{"%s":1}' % (b"x" * 1_000_000), Strict)
    assert len(caught.value.found) < 700


@every_encoding
def test_a_type_that_messages_cannot_have_is_a_usage_error(encoding: Encoding) -> None:
    not_a_type: Any = 5
    with pytest.raises(UsageError, match="cannot be decoded as 5"):
        decode(encode({"a": 1}, encoding), not_a_type)


def test_a_type_that_cannot_be_hashed_is_read_all_the_same() -> None:
    bounded: Any = Annotated[int, msgspec.Meta(ge=1, extra={"unit": "ms"}), []]
    assert decode(b"5", bounded) == 5
    with pytest.raises(UndecodableError, match=">= 1"):
        decode(b"0", bounded)


@every_encoding
@pytest.mark.parametrize("data", [object(), {"a": object()}, "\ud800", {("a", "b"): object()}])
def test_data_that_cannot_be_encoded_is_refused(encoding: Encoding, data: object) -> None:
    with pytest.raises(UnwritableError, match="cannot be encoded as") as caught:
        encode(data, encoding)
    assert type(data).__name__ in caught.value.reason


def test_each_encoding_refuses_the_values_it_cannot_hold() -> None:
    with pytest.raises(UnwritableError, match=r"2\*\*64"):
        encode(2**70, Encoding.MSGPACK)
    with pytest.raises(UnwritableError, match="nan"):
        encode([float("nan")], Encoding.ETF)
    assert decode(encode(2**70, Encoding.ETF)) == decode(encode(2**70, Encoding.SPECTACLES)) == 2**70


@pytest.mark.parametrize("encoding", [Encoding.MSGPACK, Encoding.ETF])
def test_raw_that_is_not_json_is_refused_where_it_must_be_decoded(encoding: Encoding) -> None:
    with pytest.raises(UnwritableError, match="truncated"):
        encode(msgspec.Raw(b'{"a":'), encoding)


def test_data_that_holds_itself_is_refused() -> None:
    data: list[Any] = []
    data.append(data)
    for encoding in Encoding:
        with pytest.raises(UnwritableError):
            encode(data, encoding)


def _read_or_refused(body: bytes) -> bool:
    try:
        decode(body)
        decode(body, dict[str, Any])
    except UndecodableError as exc:
        assert len(str(exc)) < 1000  # noqa: PT017  # success is fine too
        return False
    return True


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_undecodable(body: bytes) -> None:
    _read_or_refused(body)


@pytest.mark.parametrize("content_type", sorted({*CONTENT_TYPES.values()}))
@given(body=st.binary(max_size=80))
def test_any_bytes_of_a_content_type_are_read_or_undecodable(content_type: str, body: bytes) -> None:
    try:
        decode(body, Member, content_type=content_type)
    except UndecodableError as exc:
        assert exc.expected == "a Member"  # noqa: PT017  # success is fine too


@every_encoding
def test_damaged_bodies_are_read_or_undecodable(encoding: Encoding) -> None:
    chance = random.Random(11)
    whole = encode({"op": 0, "d": {"id": ID, "roles": ["1", "2"], "nick": None, "at": [1.5, -3]}}, encoding)
    read = 0
    for _ in range(3_000):
        body = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        read += _read_or_refused(bytes(body[: chance.randint(1, 2 * len(body))]))
    assert 0 < read < 3_000
