"""The property test of codecs finds each fault that a codec may have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from keywright import Codec, Int64
from keywright.testing import assert_codec, stored_bytes


class Sound(Codec[int]):
    """A number in hexadecimal."""

    expected = "a hexadecimal number"
    python_type = int
    samples: tuple[int, ...] = (0, 255)

    def encode(self, value: int) -> bytes:
        if type(value) is not int or not 0 <= value < 2**64:
            raise self.refusal(value)
        return b"%x" % value

    def decode(self, data: bytes) -> int:
        if not 0 < len(data) <= 16 or data.strip(b"0123456789abcdef"):
            raise self.refusal(data)
        return int(data, 16)


class WithoutSamples(Sound):
    samples = ()


class RaisesOnBytes(Sound):
    def decode(self, data: bytes) -> int:
        return int(data, 16)


class RaisesOnValues(Sound):
    def encode(self, value: int) -> bytes:
        return b"%x" % value


class LosesSign(Sound):
    def encode(self, value: int) -> bytes:
        return super().encode(abs(value) if type(value) is int else value)


class ReadsMoreThanItWrites(Sound):
    def decode(self, data: bytes) -> int:
        return -1 if data == b"" else super().decode(data)


class ReturnsText(Sound):
    def encode(self, value: int) -> Any:
        return super().encode(value).decode()


class PrintsStrangers(Sound):
    def encode(self, value: int) -> bytes:
        if type(value) is not int:
            raise self.refusal(repr(value))
        return super().encode(value)


class QuotesEverything(Sound):
    def decode(self, data: bytes) -> int:
        try:
            return super().decode(data)
        except ValueError as error:
            error.found = repr(data) * 100  # type: ignore[attr-defined]
            raise


def test_a_sound_codec_passes() -> None:
    assert_codec(Sound(), st.integers(0, 2**64 - 1))


@pytest.mark.parametrize(
    ("codec", "fault"),
    [
        (WithoutSamples(), "has no samples"),
        (RaisesOnBytes(), "not CodecError"),
        (RaisesOnValues(), "not CodecError"),
        (LosesSign(), "read it back as"),
        (ReadsMoreThanItWrites(), "cannot write what it read"),
        (ReturnsText(), "not bytes"),
        (PrintsStrangers(), "repr"),
        (QuotesEverything(), "quotes"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Codec) else "",
)
def test_a_fault_is_found(codec: Codec[int], fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        assert_codec(codec, st.integers(-(2**64) + 1, -1) if isinstance(codec, LosesSign) else None)


def test_stored_bytes_are_drawn_for_a_codec_without_samples_too() -> None:
    assert isinstance(stored_bytes(WithoutSamples()), st.SearchStrategy)
    assert isinstance(stored_bytes(Int64()), st.SearchStrategy)
