"""Forms that other software gives to names and values, as alphabets and codecs of our own."""

from __future__ import annotations

import pickle
import pickletools
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from keywright import Codec, Language, Verbatim, characters, literal

__all__ = ["Deflated", "Pickled", "TimeOrEmpty", "Uuid", "UuidText"]

_HEX = characters("", (0x30, 0x39), (0x61, 0x66))


@dataclass(frozen=True)
class UuidText(Verbatim):
    """A UUID in its usual form: lower case, with hyphens."""

    @property
    def expected(self) -> str:
        return "a UUID in lower case with hyphens"

    @property
    def language(self) -> Language:
        found = _HEX.repeat(8, 8)
        for length in (4, 4, 4, 12):
            found = found + literal(b"-") + _HEX.repeat(length, length)
        return found

    @property
    def samples(self) -> tuple[str, ...]:
        return ("00000000-0000-0000-0000-000000000000", "3fa85f64-5717-4562-b3fc-2c963f66afa6")


Uuid = Annotated[str, UuidText()]


class TimeOrEmpty(Codec[datetime | None]):
    """An ISO 8601 time in UTC with `Z`, or nothing at all for a moment that has not come yet."""

    expected = "a time such as 2026-01-31T12:00:00.000001Z, or an empty string"
    python_type = datetime
    samples = (None, datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=UTC))

    def encode(self, value: datetime | None) -> bytes:
        if value is None:
            return b""
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").encode()

    def decode(self, data: bytes) -> datetime | None:
        if not data:
            return None
        try:
            return datetime.strptime(data.decode(), "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
        except ValueError as error:
            raise self.refusal(data) from error


class Deflated(Codec[bytes]):
    """Bytes compressed with zlib."""

    expected = "bytes compressed with zlib"
    python_type = bytes
    samples = (b"", b"plain")

    def encode(self, value: bytes) -> bytes:
        return zlib.compress(value)

    def decode(self, data: bytes) -> bytes:
        try:
            return zlib.decompress(data)
        except zlib.error as error:
            raise self.refusal(data, error) from error


class Pickled(Codec[bytes]):
    """A pickle as bytes. Its structure is checked; it is never loaded, because loading runs code."""

    expected = "a pickle"
    python_type = bytes
    samples = (pickle.dumps({"a": [1, 2.5, None]}),)

    def encode(self, value: bytes) -> bytes:
        return self.decode(value)

    def decode(self, data: bytes) -> bytes:
        try:
            for _ in pickletools.genops(data):
                pass
        except (ValueError, IndexError, OverflowError) as error:
            raise self.refusal(data, error) from error
        return data
