"""Forms that other software gives to names and values, as alphabets and codecs of our own."""

from __future__ import annotations

import pickle
import pickletools
from dataclasses import dataclass
from typing import Annotated

from keywright import Codec, Language, Verbatim, characters, literal

__all__ = ["Pickled", "Uuid", "UuidText"]

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
