"""Erlang's external term format, against bytes written by hand, erlpack and Erlang itself."""

from __future__ import annotations

import importlib
import os
import random
import shutil
import struct
import subprocess
import tracemalloc
import zlib
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright_discord.traffic import Traffic
from keywright_messaging import etf
from keywright_messaging.etf import EtfError


def _missing(what: str) -> NoReturn:
    reason = f"{what} is not installed"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def erlpack() -> ModuleType:
    try:
        return importlib.import_module("erlpack")
    except ModuleNotFoundError:
        _missing("erlpack")


@pytest.fixture(scope="module")
def erl() -> str:
    return shutil.which("erl") or _missing("erl")


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 300


class Guild(msgspec.Struct):
    id: int
    made: datetime
    icon: bytes
    level: Level = Level.HIGH


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)


def _nested(leaves: st.SearchStrategy[Any], keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=12,
    )


def _packed(term: bytes, size: int | None = None) -> bytes:
    return b"\x83P" + struct.pack(">I", len(term) if size is None else size) + zlib.compress(term)


VECTORS: list[tuple[bytes, Any]] = [
    (b"\x83a\x00", 0),
    (b"\x83a\xff", 255),
    (b"\x83b\x00\x00\x01\x00", 256),
    (b"\x83b\xff\xff\xff\xff", -1),
    (b"\x83b\x80\x00\x00\x00", -(2**31)),
    (b"\x83c1.50000000000000000000e+00" + b"\x00" * 5, 1.5),
    (b"\x83c-2.50000000000000000000e-03" + b"\x00" * 4, -0.0025),
    (b"\x83F\x3f\xf8\x00\x00\x00\x00\x00\x00", 1.5),
    (b"\x83d\x00\x03nil", None),
    (b"\x83d\x00\x02ok", "ok"),
    (b"\x83d\x00\x01\xe9", "é"),
    (b"\x83s\x04true", True),
    (b"\x83s\x05false", False),
    (b"\x83s\x04null", "null"),
    (b"\x83v\x00\x02\xc3\xa9", "é"),
    (b"\x83v\x00\x05false", False),
    (b"\x83w\x04true", True),
    (b"\x83w\x03\xe2\x98\x95", "☕"),
    (b"\x83h\x00", ()),
    (b"\x83h\x02a\x01s\x03nil", (1, None)),
    (b"\x83i\x00\x00\x00\x02a\x01j", (1, [])),
    (b"\x83j", []),
    (b"\x83k\x00\x03\x01\x02\xff", [1, 2, 255]),
    (b"\x83l\x00\x00\x00\x02a\x01m\x00\x00\x00\x01xj", [1, "x"]),
    (b"\x83m\x00\x00\x00\x00", ""),
    (b"\x83m\x00\x00\x00\x02\xc3\xa9", "é"),
    (b"\x83m\x00\x00\x00\x02\xff\x00", b"\xff\x00"),
    (b"\x83n\x00\x00", 0),
    (b"\x83n\x08\x00\x00\x00\x00\x00\x01\x00\x20\x00", 2**53 + 2**32),
    (b"\x83n\x08\x01\xff\xff\xff\xff\xff\xff\xff\xff", -(2**64 - 1)),
    (b"\x83o\x00\x00\x01\x00\x01" + b"\x00" * 255 + b"\x01", -(2**2040)),
    (b"\x83t\x00\x00\x00\x00", {}),
    (b"\x83t\x00\x00\x00\x02d\x00\x02opa\x00m\x00\x00\x00\x01dt\x00\x00\x00\x00", {"op": 0, "d": {}}),
    (b"\x83t\x00\x00\x00\x01s\x03nila\x01", {"nil": 1}),
    (b"\x83t\x00\x00\x00\x01w\x02\xc3\xa9a\x01", {"é": 1}),
    (b"\x83t\x00\x00\x00\x01v\x00\x02\xc3\xa9a\x01", {"é": 1}),
    (b"\x83t\x00\x00\x00\x01s\x01\xe9a\x01", {"é": 1}),
    (b"\x83t\x00\x00\x00\x01m\x00\x00\x00\x01\xffm\x00\x00\x00\x01\xfe", {b"\xff": b"\xfe"}),
    (b"\x83t\x00\x00\x00\x01a\x07j", {7: []}),
    (b"\x83P\x00\x00\x00\x02" + bytes.fromhex("789c4b64040000c50063"), 1),
]


@pytest.mark.parametrize(("term", "value"), VECTORS)
def test_every_tag_is_read(term: bytes, value: Any) -> None:
    found = etf.decode(term)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("value", "term"),
    [
        (None, b"\x83s\x03nil"),
        (True, b"\x83s\x04true"),
        (False, b"\x83s\x05false"),
        (0, b"\x83a\x00"),
        (255, b"\x83a\xff"),
        (256, b"\x83b\x00\x00\x01\x00"),
        (-1, b"\x83b\xff\xff\xff\xff"),
        (2**31 - 1, b"\x83b\x7f\xff\xff\xff"),
        (2**31, b"\x83n\x04\x00\x00\x00\x00\x80"),
        (-(2**31) - 1, b"\x83n\x04\x01\x01\x00\x00\x80"),
        (2**2040 - 1, b"\x83n\xff\x00" + b"\xff" * 255),
        (2**2040, b"\x83o\x00\x00\x01\x00\x00" + b"\x00" * 255 + b"\x01"),
        (1.5, b"\x83F\x3f\xf8\x00\x00\x00\x00\x00\x00"),
        ("é", b"\x83m\x00\x00\x00\x02\xc3\xa9"),
        (b"\xff", b"\x83m\x00\x00\x00\x01\xff"),
        ([], b"\x83j"),
        ((), b"\x83j"),
        ([1, (2,)], b"\x83l\x00\x00\x00\x02a\x01l\x00\x00\x00\x01a\x02jj"),
        ({}, b"\x83t\x00\x00\x00\x00"),
        ({"a": 1, 300: None}, b"\x83t\x00\x00\x00\x02m\x00\x00\x00\x01aa\x01b\x00\x00\x01\x2cs\x03nil"),
        (Colour.RED, b"\x83m\x00\x00\x00\x03red"),
        ({Colour.RED: Level.HIGH}, b"\x83t\x00\x00\x00\x01m\x00\x00\x00\x03redb\x00\x00\x01\x2c"),
    ],
)
def test_data_is_written_in_its_shortest_form(value: Any, term: bytes) -> None:
    assert etf.encode(value) == term


@given(_nested(scalars, st.text() | st.integers(1 - 2**64, 2**64 - 1)))
def test_plain_data_round_trips(value: Any) -> None:
    assert etf.decode(etf.encode(value)) == value


@given(st.binary())
def test_bytes_come_back_as_text_only_where_they_are_text(value: bytes) -> None:
    found = etf.decode(etf.encode(value))
    assert (found.encode() if isinstance(found, str) else found) == value


def test_structs_become_maps_wherever_they_stand() -> None:
    guild = Guild(2**60, datetime(2020, 1, 1, tzinfo=UTC), b"\xff")
    plain = {"id": 2**60, "made": "2020-01-01T00:00:00Z", "icon": b"\xff", "level": 300}
    assert etf.decode(etf.encode([guild, {"of": guild}])) == [plain, {"of": plain}]


def _as_erlpack_reads(value: Any) -> Any:
    """erlpack leaves every binary as bytes."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        return [_as_erlpack_reads(item) for item in value]
    if isinstance(value, dict):
        return {_as_erlpack_reads(key): _as_erlpack_reads(item) for key, item in value.items()}
    return value


# erlpack raises OverflowError for integers beyond 64 bits.
erlpack_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
erlpack_data = _nested(erlpack_scalars, st.text() | st.integers(-(2**31), 2**31 - 1))


@given(value=erlpack_data)
def test_erlpack_decodes_our_terms(erlpack: ModuleType, value: Any) -> None:
    assert erlpack.unpack(etf.encode(value)) == _as_erlpack_reads(value)


@given(value=erlpack_data)
def test_terms_of_erlpack_are_decoded(erlpack: ModuleType, value: Any) -> None:
    assert etf.decode(erlpack.pack(value)) == value


def test_tuples_and_atoms_of_erlpack_are_read(erlpack: ModuleType) -> None:
    sent = (1, erlpack.Atom("hello"), (), (None, "x"))
    assert etf.decode(erlpack.pack(sent)) == (1, "hello", (), (None, "x"))


def test_discord_traffic_is_written_as_erlpack_writes_it(erlpack: ModuleType) -> None:
    traffic = Traffic(3)
    for data in [traffic.guild(40), *(data for _, data in traffic.events(300))]:
        plain = msgspec.json.decode(msgspec.json.encode(data))
        term = etf.encode(plain)
        assert term == erlpack.pack(plain)
        assert etf.decode(term) == plain


@pytest.mark.parametrize("options", ["[]", "[compressed]", "[{minor_version,0}]", "[{minor_version,1}]"])
def test_erlang_decodes_our_terms_and_its_terms_are_decoded(erl: str, tmp_path: Path, options: str) -> None:
    value = {
        "ids": [2**53 + 1, -(2**80), 2**3000, 0, -7, 70000],
        "text": ["", "é☕", "x" * 70000],
        "small": [1, 2, 3],
        "words": [None, True, False],
        "floats": [1.5, -2.25e-300, 0.1],
        "maps": [{}, {"a": {"b": []}}, {1: "one"}],
    }
    (tmp_path / "sent").write_bytes(etf.encode(value))
    program = (
        '{ok, Sent} = file:read_file("sent"), '
        f'ok = file:write_file("back", term_to_binary(binary_to_term(Sent), {options})), halt().'
    )
    subprocess.run(
        [erl, "-noinput", "-boot", "start_clean", "-eval", program], cwd=tmp_path, check=True, timeout=60
    )
    assert etf.decode((tmp_path / "back").read_bytes()) == value


@pytest.mark.parametrize(
    ("term", "reason"),
    [
        (b"", "131"),
        (b"\x82a\x01", "131"),
        (b"\x83", "truncated"),
        (b"\x83a", "truncated"),
        (b"\x83b\x00\x00\x00", "truncated"),
        (b"\x83m\x00\x00\x00\x05abcd", "truncated"),
        (b"\x83m\xff\xff\xff\xffabcd", "truncated"),
        (b"\x83s\x05tru", "truncated"),
        (b"\x83o\xff\xff\xff\xff\x00\x01", "truncated"),
        (b"\x83l\x00\x00\x00\x01a\x01", "truncated"),
        (b"\x83P\x00\x00", "truncated"),
        (b"\x83a\x01\x00", "1 bytes after"),
        (b"\x83g", "the tag 103 at byte 1"),
        (b"\x83h\x01\x83a\x01", "the tag 131 at byte 3"),
        (b"\x83h\x01P\x00\x00\x00\x01", "the tag 80 at byte 3"),
        (b"\x83l\x00\x00\x00\x01a\x01a\x02", "improper"),
        (b"\x83l\xff\xff\xff\xffa\x01j", "count of 4294967295"),
        (b"\x83i\xff\xff\xff\xffa\x01", "count of 4294967295"),
        (b"\x83t\x00\x00\x00\x03a\x01a\x01", "count of 3"),
        (b"\x83t\x00\x00\x00\x01jj", "a key with the tag 106"),
        (b"\x83t\x00\x00\x00\x01t\x00\x00\x00\x00j", "a key with the tag 116"),
        (b"\x83w\x01\xff", "utf-8"),
        (b"\x83c" + b"nan".ljust(31, b"\x00"), "float"),
        (b"\x83c" + b"1_0.0e+00".ljust(31, b"\x00"), "float"),
        (b"\x83c" + b"1.0e+999".ljust(31, b"\x00"), "float"),
        (b"\x83P\x00\x00\x00\x02rubbish", "does not unpack"),
        (_packed(b"a\x01") + b"\x00", "does not unpack to its 2 bytes"),
        (_packed(b"a\x01")[:-1], "does not unpack to its 2 bytes"),
        (_packed(b"a\x01", 1), "does not unpack to its 1 bytes"),
        (_packed(b"a\x01", 3), "does not unpack to its 3 bytes"),
        (_packed(b"a\x01", 0), "does not unpack to its 0 bytes"),
        (_packed(_packed(b"a\x01")[1:]), "inside a compressed"),
    ],
)
def test_a_malformed_term_is_refused_with_the_reason(term: bytes, reason: str) -> None:
    with pytest.raises(EtfError, match=reason):
        etf.decode(term)


def test_every_beginning_of_a_term_is_refused() -> None:
    term = etf.encode({"a": [1, -1, 2**40, 1.5, None, "text", b"\xff", {}], "b": {"c": [[]]}})
    for end in range(len(term)):
        with pytest.raises(EtfError):
            etf.decode(term[:end])


@pytest.mark.parametrize("opening", [b"l\x00\x00\x00\x01", b"h\x01", b"t\x00\x00\x00\x01a\x01"])
def test_nesting_is_bounded(opening: bytes) -> None:
    closing = b"j" if opening.startswith(b"l") else b""
    etf.decode(b"\x83" + opening * 256 + b"j" + closing * 256)
    for depth in (257, 100_000):
        with pytest.raises(EtfError, match="over 256 deep"):
            etf.decode(b"\x83" + opening * depth + b"j" + closing * depth)


@pytest.mark.parametrize("wrapped", [lambda inner: [inner], lambda inner: {"a": inner}])
def test_data_too_deep_to_be_decoded_is_not_encoded(wrapped: Any) -> None:
    data: Any = 1
    for _ in range(256):
        data = wrapped(data)
    assert etf.decode(etf.encode(data)) == data
    with pytest.raises(EtfError, match="over 256 deep"):
        etf.encode(wrapped(data))


def test_a_compressed_term_cannot_unpack_to_more_than_the_limit() -> None:
    term = b"m" + struct.pack(">I", 1000) + b"x" * 1000
    assert etf.decode(_packed(term), max_unpacked=1005) == "x" * 1000
    with pytest.raises(EtfError, match="1005 bytes, over the limit of 1004"):
        etf.decode(_packed(term), max_unpacked=1004)


def test_a_small_compressed_term_cannot_become_many_lists() -> None:
    count = 16 * 1024 * 1024 - 6
    bomb = _packed(b"l" + struct.pack(">I", count) + b"j" * count + b"j")
    assert len(bomb) < 20_000
    tracemalloc.start()
    try:
        with pytest.raises(EtfError, match="over the limit"):
            etf.decode(bomb)
        assert tracemalloc.get_traced_memory()[1] < 2 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_a_compressed_term_has_no_more_terms_than_its_received_bytes_allow() -> None:
    def lists(count: int) -> bytes:
        return _packed(b"l" + struct.pack(">I", count) + b"j" * count + b"j")

    assert etf.decode(lists(10_000)) == [[]] * 10_000
    with pytest.raises(EtfError, match="more than 10000 terms"):
        etf.decode(lists(10_001))


@pytest.mark.parametrize("inner", [b"j", b"h\x00", b"t\x00\x00\x00\x00"])
def test_a_term_has_at_most_a_million_terms(inner: bytes) -> None:
    with pytest.raises(EtfError, match="more than 1000000 terms"):
        etf.decode(b"\x83l" + struct.pack(">I", 1_000_001) + inner * 1_000_001 + b"j")


def test_terms_are_counted_across_lists_tuples_and_maps() -> None:
    part = b"h\x02" + etf.encode([[]] * 3000)[1:] + b"t" + struct.pack(">I", 2000) + b"s\x01aj" * 2000
    assert len(etf.decode(_packed(b"h\x01" + part))) == 1
    with pytest.raises(EtfError, match="more than 10000 terms"):
        etf.decode(_packed(b"h\x02" + part + part))


@pytest.mark.parametrize("key", [2**64, -(2**64), 10**5000], ids=["positive", "negative", "long"])
def test_keys_beyond_64_bits_are_neither_decoded_nor_encoded(key: int) -> None:
    size = (key.bit_length() + 7) // 8
    head = b"n" + bytes([size]) if size < 256 else b"o" + struct.pack(">I", size)
    stored = head + bytes([key < 0]) + abs(key).to_bytes(size, "little")
    with pytest.raises(EtfError, match=r"a key of \d+ bits"):
        etf.decode(b"\x83t\x00\x00\x00\x01" + stored + b"j")
    with pytest.raises(EtfError, match=r"a key of \d+ bits"):
        etf.encode({key: []})


def test_a_map_has_at_most_1024_numbers_as_keys() -> None:
    # Numbers have predictable hashes: with any number of keys, a sender can make each of them slower.
    honest: dict[object, object] = {n * 2**40: n for n in range(1024)} | {str(n): n for n in range(3000)}
    assert etf.decode(etf.encode([honest, honest])) == [honest, honest]
    with pytest.raises(EtfError, match="more than 1024 numbers as keys"):
        etf.encode(honest | {1: 1})
    term = b"\x83t" + struct.pack(">I", 1025)
    for repeated in (b"a\x01a\x00", b"F" + struct.pack(">d", 2.5) + b"a\x00"):
        with pytest.raises(EtfError, match="more than 1024 numbers as keys"):
            etf.decode(term + repeated * 1025)


def test_a_compressed_bomb_is_refused_whatever_size_it_claims() -> None:
    bomb = b"m" + struct.pack(">I", 2**25) + bytes(2**25)
    with pytest.raises(EtfError, match="over the limit"):
        etf.decode(_packed(bomb))
    with pytest.raises(EtfError, match="does not unpack to its 100 bytes"):
        etf.decode(_packed(bomb, 100))


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {"a": object()},
        float("nan"),
        [float("inf")],
        "\ud800",
        {"\ud800": 1},
        {None: 1},
        {True: 1},
        {1.5: 1},
        {(1, 2): 1},
        {b"a": 1},
        msgspec.Raw(b"{}"),
        {"d": msgspec.Raw(b"{}")},
    ],
)
def test_data_without_a_term_is_refused(value: Any) -> None:
    with pytest.raises(EtfError, match="data for ETF"):
        etf.encode(value)


def test_data_that_holds_itself_is_refused() -> None:
    data: list[Any] = []
    data.append(data)
    with pytest.raises(EtfError, match="deep"):
        etf.encode(data)


def _mutated(chance: random.Random, term: bytes) -> bytes:
    changed = bytearray(term)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(1, len(changed))
        choice = chance.random()
        if choice < 0.5:
            changed[at] = chance.choice((0, 1, 255, chance.randrange(256), *b"FPabcdhijklmnostvw"))
        elif choice < 0.75:
            del changed[at : at + chance.randint(1, 4)]
        else:
            changed[at:at] = chance.randbytes(chance.randint(1, 4))
        if len(changed) < 2:
            break
    return bytes(changed)


def test_a_corrupt_term_is_decoded_or_refused_with_an_etf_error() -> None:
    chance = random.Random(20)
    whole = [term for term, _ in VECTORS]
    whole.append(
        etf.encode({"op": 0, "d": {"id": 2**60, "roles": ["1", "2"], "nick": None, "at": [1.5, -3]}})
    )
    refused = 0
    for _ in range(20_000):
        term = _mutated(chance, chance.choice(whole))
        try:
            etf.decode(term)
        except EtfError:
            refused += 1
    assert 5_000 < refused < 20_000


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(tail: bytes) -> None:
    try:
        etf.decode(b"\x83" + tail)
    except EtfError as exc:
        assert len(str(exc)) < 300  # noqa: PT017  # success is fine too
