"""Compression: zlib, gzip, lz4 and zstd, and an empty value that is None."""

from __future__ import annotations

import gzip
import zlib
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from keywright import (
    Boolean,
    Codec,
    CodecError,
    EmptyAsNone,
    EpochMs,
    Gzip,
    Int64,
    Json,
    Lz4,
    MessagePack,
    Raw,
    Sealed,
    Secret,
    Zlib,
    Zstd,
)
from keywright.errors import UsageError
from keywright.keyspace.codecs import Compressed, Text, UnpackedTooLarge, codec_of, unpacking_at_most

OTHERS = {Zlib: zlib.compress, Gzip: gzip.compress, Lz4: lz4.frame.compress, Zstd: zstandard.compress}
MAGIC = {Zlib: b"x\x9c", Gzip: b"\x1f\x8b\x08", Lz4: b"\x04\x22\x4d\x18", Zstd: b"\x28\xb5\x2f\xfd"}
each_form = pytest.mark.parametrize("form", list(OTHERS), ids=lambda form: form.form)
Form = type[Compressed[Any]]


@each_form
@given(value=st.text() | st.text(alphabet="ab", min_size=60, max_size=300))
def test_compressed_text_round_trips(form: Form, value: str) -> None:
    assert form(Text()).decode(form(Text()).encode(value)) == value


@each_form
@given(rest=st.binary(max_size=20))
def test_bytes_that_look_compressed_round_trip(form: Form, rest: bytes) -> None:
    stored = form(Raw()).encode(MAGIC[form] + rest)
    assert stored.startswith(MAGIC[form])
    assert form(Raw()).decode(stored) == MAGIC[form] + rest


@each_form
def test_small_values_stay_plain_and_large_ones_shrink(form: Form) -> None:
    assert form(Text()).encode("small") == b"small"
    assert len(form(Text()).encode("large" * 1000)) < 100


@each_form
def test_what_other_programs_compress_is_read(form: Form) -> None:
    assert form(Text()).decode(OTHERS[form](b"others")) == "others"


@each_form
def test_where_all_values_are_compressed_a_plain_one_is_refused(form: Form) -> None:
    codec = form(Text(), min_size=0)
    assert codec.decode(codec.encode("")) == ""
    with pytest.raises(CodecError):
        codec.decode(b"plain")


@each_form
def test_a_bomb_is_refused(form: Form) -> None:
    bomb = OTHERS[form](bytes(2_000_000))
    with pytest.raises(CodecError, match="limit of 1000000 bytes"):
        form(Raw(), max_size=1_000_000).decode(bomb)
    assert form(Raw(), max_size=2_000_000).decode(bomb) == bytes(2_000_000)


def test_a_bomb_of_zstd_without_a_declared_size_is_refused() -> None:
    bomb = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(2_000_000))
    with pytest.raises(CodecError, match="limit of 1000000 bytes"):
        Zstd(Raw(), max_size=1_000_000).decode(bomb)
    assert Zstd(Raw(), max_size=2_000_000).decode(bomb) == bytes(2_000_000)


@each_form
def test_a_reader_bounds_what_all_values_unpack_to(form: Form) -> None:
    codec = form(Raw())
    packed = codec.encode(bytes(600))
    with unpacking_at_most(1000) as allowance:
        assert codec.decode(packed) == bytes(600)
        with pytest.raises(UnpackedTooLarge, match="more than 400 bytes"):
            codec.decode(packed)
    assert allowance.used == 600
    assert codec.decode(packed) == bytes(600)


def test_a_frame_that_only_claims_to_be_huge_is_refused_unopened() -> None:
    claims_a_terabyte = MAGIC[Zstd] + b"\xe0" + (2**40).to_bytes(8, "little") + b"\x01\x00\x00"
    with pytest.raises(CodecError, match="more than the limit"):
        Zstd(Raw()).decode(claims_a_terabyte)


@each_form
def test_a_cut_or_lengthened_frame_is_refused(form: Form) -> None:
    frame = form(Text()).encode("abc" * 100)
    for damaged in (frame[:-1], frame + b"x", frame + frame, MAGIC[form]):
        with pytest.raises(CodecError):
            form(Text()).decode(damaged)


@each_form
def test_what_would_not_be_read_back_is_not_written(form: Form) -> None:
    with pytest.raises(CodecError, match="larger than 10 bytes"):
        form(Text(), max_size=10).encode("a" * 11)


@each_form
def test_a_level_outside_its_range_is_refused(form: Form) -> None:
    with pytest.raises(UsageError, match="levels run from"):
        form(Text(), level=99)


def test_compressions_form_chains() -> None:
    codec = codec_of(Annotated[list[int], MessagePack, partial(Lz4, min_size=0), partial(Gzip, min_size=0)])
    stored = codec.encode([1] * 100)
    assert lz4.frame.decompress(gzip.decompress(stored)) == MessagePack(list[int]).encode([1] * 100)
    assert codec.decode(stored) == [1] * 100


@pytest.mark.parametrize("inner", [Int64(), Boolean(), EpochMs(), Json(list[int])], ids=repr)
def test_an_empty_value_is_none(inner: Codec[Any]) -> None:
    codec = EmptyAsNone(inner)
    assert codec.encode(None) == b""
    assert codec.decode(b"") is None
    assert codec.decode(inner.encode(inner.samples[0])) == inner.samples[0]


def test_a_value_that_would_be_read_as_none_is_not_written() -> None:
    with pytest.raises(CodecError, match="read as None"):
        EmptyAsNone(Text()).encode("")
    assert "" not in EmptyAsNone(Text()).samples


def test_none_is_part_of_the_hint() -> None:
    codec = codec_of(Annotated[datetime | None, EmptyAsNone])
    assert codec.decode(b"2026-11-16T12:00:00Z") == datetime(2026, 11, 16, 12, tzinfo=UTC)
    assert codec_of(Annotated[datetime | None, EpochMs, EmptyAsNone]).decode(b"") is None
    assert codec_of(Annotated[Secret[str] | None, EmptyAsNone]).secret
    with pytest.raises(UsageError, match="before Sealed"):
        EmptyAsNone(Sealed(Text()))
