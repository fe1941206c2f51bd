"""A codec with a keyring, as a bound database has it."""

from __future__ import annotations

from typing import TypeVar

from keywright import Codec, Keyring
from keywright.keyspace.codecs import Ciphertext, Plaintext, SealPlace, is_sealed

T = TypeVar("T")


class Bound(Codec[T]):
    """A codec that seals plaintext and opens sealed values, like the engine does."""

    def __init__(self, codec: Codec[T], keyring: Keyring, name: bytes) -> None:
        self.codec = codec
        self.keyring = keyring
        self.place = SealPlace(b"template", b"", b"", name)
        self.expected = codec.expected
        self.python_type = codec.python_type
        self.secret = codec.secret
        self.sealed = codec.sealed
        self.samples = codec.samples

    def encode(self, value: T) -> bytes:
        written = self.codec.encode(value)
        return self.keyring.seal(written, self.place) if type(written) is Plaintext else written

    def decode(self, data: bytes) -> T:
        placed = Ciphertext.at(data, self.place, lambda: self.keyring) if is_sealed(data) else data
        return self.codec.decode(placed)
