"""Values have the bytes of the Go registry, and every form that it reads is read."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given

from keywright import CodecError, Context
from keywright.errors import StoredDataError, ValueRefusedError
from keywright_registry import go_encoding as encoding
from keywright_registry.go_encoding import (
    ZERO_TIME,
    GoInt64,
    GoRepository,
    LogPosition,
    decode_leniently,
    decode_repository,
)
from keywright_registry.repository import Repository
from keywright_registry.schema import CachedRepository

from .registry_vectors import GOLDEN, VECTORS, Vector, int64, repositories

codec = GoRepository()
pack = msgspec.msgpack.encode
SECONDS_2022 = 1_650_000_000
MUTATIONS = 100_000


@pytest.mark.parametrize("vector", [GOLDEN, *VECTORS], ids=lambda vector: vector.repository.path[:20])
def test_a_repository_is_what_go_writes_in_both_directions(vector: Vector) -> None:
    assert codec.encode(vector.repository) == vector.stored
    assert codec.decode(vector.stored) == vector.repository
    assert decode_repository(vector.stored) == decode_leniently(vector.stored) == vector.repository


def test_there_are_twenty_vectors_of_the_documented_size() -> None:
    assert len(VECTORS) == 20
    assert len(GOLDEN.stored) == 246
    assert 200 < sum(len(vector.stored) for vector in VECTORS) / len(VECTORS) < 300


@given(repositories)
def test_both_decoders_read_back_an_encoded_repository(repository: Repository) -> None:
    stored = codec.encode(repository)
    assert codec.decode(stored) == decode_repository(stored) == decode_leniently(stored) == repository
    assert codec.decode_many([stored, None]) == [repository, None]


def go_repository(**changes: Any) -> dict[str, Any]:
    """The struct as a map, in the order of its fields."""
    null_time = {"Time": ZERO_TIME, "Valid": False}
    return {
        "ID": 7,
        "NamespaceID": 3,
        "Name": "b",
        "Path": "a/b",
        "ParentID": {"Int64": 0, "Valid": False},
        "CreatedAt": datetime.fromtimestamp(SECONDS_2022, UTC),
        "UpdatedAt": null_time,
        "DeletedAt": null_time,
        "Size": None,
        "LastPublishedAt": null_time,
    } | changes


PLAIN = Repository(
    id=7, namespace_id=3, name="b", path="a/b", created_at=datetime.fromtimestamp(SECONDS_2022, UTC)
)


def test_the_struct_of_july_2022_is_read() -> None:
    """With two fields of the migration, without size and publication."""
    old = go_repository(MigrationStatus="native", MigrationError={"String": "", "Valid": False})
    del old["Size"], old["LastPublishedAt"]
    assert codec.decode(pack(old)) == PLAIN


@pytest.mark.parametrize("missing", list(go_repository()))
def test_a_missing_field_is_its_zero_value(missing: str) -> None:
    fields = go_repository()
    del fields[missing]
    zeros: dict[str, dict[str, Any]] = {"ID": {"id": 0}, "NamespaceID": {"namespace_id": 0}}
    zeros |= {"Name": {"name": ""}, "Path": {"path": ""}, "CreatedAt": {"created_at": ZERO_TIME}}
    assert codec.decode(pack(fields)) == msgspec.structs.replace(PLAIN, **zeros.get(missing, {}))


@pytest.mark.parametrize("nil", ["ID", "NamespaceID", "Name", "Path", "ParentID", "UpdatedAt", "CreatedAt"])
def test_nil_is_a_zero_value(nil: str) -> None:
    without = go_repository()
    del without[nil]
    assert codec.decode(pack(go_repository(**{nil: None}))) == codec.decode(pack(without))


def test_a_struct_may_come_as_an_array_of_all_fields() -> None:
    fields = list(go_repository(ParentID=[9, True], UpdatedAt=[]).values())
    assert codec.decode(pack(fields)) == msgspec.structs.replace(PLAIN, parent_id=9)
    with pytest.raises(CodecError):
        codec.decode(pack(fields[:-1]))


def test_names_of_fields_may_be_binary() -> None:
    fields = {name.encode(): value for name, value in go_repository(Name=b"b").items()}
    assert codec.decode(pack(fields)) == PLAIN


@pytest.mark.parametrize("form", ["B", "b", "H", "h", "I", "i", "Q", "q"])
def test_an_integer_may_have_any_width(form: str) -> None:
    heads = {"B": b"\xcc", "H": b"\xcd", "I": b"\xce", "Q": b"\xcf"}
    heads |= {"b": b"\xd0", "h": b"\xd1", "i": b"\xd2", "q": b"\xd3"}
    number = heads[form] + struct.pack(f">{form}", 100)
    stored = pack(go_repository(Size=msgspec.Raw(number), ID=msgspec.Raw(number)))
    assert codec.decode(stored) == msgspec.structs.replace(PLAIN, size=100, id=100)
    assert GoInt64().decode(number) == 100


def test_an_integer_beyond_64_signed_bits_is_refused() -> None:
    for name in ("ID", "NamespaceID", "Size"):
        with pytest.raises(CodecError):
            codec.decode(pack(go_repository(**{name: 2**63})))
    with pytest.raises(CodecError):
        GoInt64().decode(pack(2**63))


def test_the_time_of_an_invalid_null_time_is_never_looked_at() -> None:
    year_318857 = b"\xc7\x0c\xff" + struct.pack(">Iq", 0, 10**13)
    null = {"Time": msgspec.Raw(year_318857), "Valid": False}
    assert codec.decode(pack(go_repository(DeletedAt=null))) == PLAIN
    with pytest.raises(CodecError):
        codec.decode(pack(go_repository(DeletedAt=null | {"Valid": True})))


@pytest.mark.parametrize(
    ("nanoseconds", "microseconds"),
    [(0, 0), (499, 0), (501, 1), (123_456_789, 123_457), (999_999_999, 10**6)],
)
def test_a_time_is_rounded_to_the_microsecond(nanoseconds: int, microseconds: int) -> None:
    time = b"\xd7\xff" + struct.pack(">Q", nanoseconds << 34 | SECONDS_2022)
    found = codec.decode(pack(go_repository(CreatedAt=msgspec.Raw(time))))
    assert found.created_at == PLAIN.created_at + timedelta(microseconds=microseconds)


def test_a_time_is_written_as_a_moment_whatever_its_zone() -> None:
    elsewhere = PLAIN.created_at.astimezone(timezone(timedelta(hours=-7)))
    assert codec.encode(msgspec.structs.replace(PLAIN, created_at=elsewhere)) == codec.encode(PLAIN)


@pytest.mark.parametrize(
    "wrong",
    [
        {"created_at": datetime(2022, 4, 15)},  # without a zone
        {"updated_at": datetime(2022, 4, 15)},
        {"id": 2**63},
        {"size": -(2**63) - 1},
        {"name": "\ud800"},
    ],
    ids=str,
)
def test_values_that_go_cannot_hold_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueRefusedError, match="registry Repository"):
        CachedRepository.of("a/b").set(msgspec.structs.replace(PLAIN, **wrong))


@given(int64)
def test_a_size_with_descendants_has_nine_bytes(number: int) -> None:
    stored = GoInt64().encode(number)
    assert len(stored) == 9
    assert stored[0] == 0xD3
    assert GoInt64().decode(stored) == number


@pytest.mark.parametrize(
    ("text", "number"), [(b"0/0", 0), (b"16/B374D848", 0x16_B374D848), (b"FFFFFFFF/FFFFFFFF", 2**64 - 1)]
)
def test_a_log_position_is_two_halves(text: bytes, number: int) -> None:
    assert LogPosition().encode(number) == text
    assert LogPosition().decode(text) == LogPosition().decode(text.lower()) == number


@pytest.mark.parametrize("text", [b"", b"/", b"1", b"1/", b"/1", b"g/1", b"1/123456789", b"1/2/3", b" 1/2"])
def test_a_malformed_log_position_is_refused(text: bytes) -> None:
    with pytest.raises(CodecError):
        LogPosition().decode(text)


def mutants(count: int) -> Iterator[bytes]:
    """Random bytes, and vectors that were cut, flipped, doubled or spliced."""
    chance = random.Random(20_221_115)
    stored = [vector.stored for vector in VECTORS]
    for number in range(count):
        data = bytearray(chance.choice(stored))
        place = chance.randrange(len(data))
        match number % 6:
            case 0:
                yield chance.randbytes(chance.randrange(300))
            case 1:
                yield bytes(data[:place])
            case 2:
                data[place] = chance.randrange(256)
                yield bytes(data)
            case 3:
                for _ in range(chance.randrange(1, 20)):
                    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                yield bytes(data)
            case 4:
                del data[place : place + chance.randrange(1, 20)]
                yield bytes(data)
            case _:
                yield bytes(data[:place]) + chance.choice(stored)[place:]


def read(data: bytes) -> Repository | StoredDataError:
    """Return what `get` returns or raises for these stored bytes."""
    rounds = CachedRepository.of("a/b").get().attempt().rounds(Context())
    next(rounds)
    try:
        rounds.send([data])
    except StopIteration as stop:
        found: Repository | StoredDataError = stop.value
        return found
    raise AssertionError("one round is enough")


def test_any_bytes_are_a_repository_or_a_stored_data_error() -> None:
    decoded = refused = 0
    for data in mutants(MUTATIONS):
        found = read(data)
        if isinstance(found, Repository):
            assert codec.decode(codec.encode(found)) == found
            decoded += 1
        else:
            assert found.expected == codec.expected
            refused += 1
    assert min(decoded, refused) > MUTATIONS / 20


def test_the_cache_of_decoded_repositories_is_bounded() -> None:
    encoding.remembered.clear()
    for number in range(encoding.REMEMBERED + 10):
        repository = msgspec.structs.replace(PLAIN, id=number)
        assert codec.decode(codec.encode(repository)) == repository
    assert len(encoding.remembered) == 10
    long = msgspec.structs.replace(PLAIN, path="a/" + "b" * encoding.LONGEST_REMEMBERED)
    assert codec.decode(codec.encode(long)) == long
    assert len(encoding.remembered) == 10
    assert codec.decode(codec.encode(PLAIN)) is codec.decode(codec.encode(PLAIN))


def test_hostile_nesting_and_lengths_are_refused() -> None:
    for data in (
        b"\x91" * 100_000,
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\xff",
    ):
        with pytest.raises(CodecError):
            codec.decode(data)
