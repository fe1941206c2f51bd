"""Pickles of other programs, as bytes that are checked and never loaded."""

from __future__ import annotations

import pickletools

from keywright.keyspace.codecs.contract import Codec
from keywright.keyspace.misuse import explained_constructor

__all__ = ["Pickled"]


@explained_constructor
class Pickled(Codec[bytes]):
    """A pickle as bytes. Its opcodes are checked; it is never loaded, because loading runs code.

    Of a long one the first `most` opcodes are checked, and how it ends.
    """

    expected = "a pickle"
    python_type = bytes
    samples = (
        b"\x80\x04N.",
        b"I7\n.",
        b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01a\x94K\x01s.",
    )

    def __init__(self, *, most: int = 100_000) -> None:
        if most < 1:
            raise TypeError(f"Pickled checks at least one opcode, not {most}")
        self.most = most

    def encode(self, value: bytes) -> bytes:
        if not isinstance(value, bytes):
            raise self.refusal(value)
        return self.decode(value)

    def decode(self, data: bytes) -> bytes:
        if len(data) < 2 or not data.endswith(b"."):
            raise self.refusal(data)
        try:
            for count, (opcode, _, position) in enumerate(pickletools.genops(data), 1):
                if opcode.code == "." and position != len(data) - 1:
                    raise ValueError("followed by other bytes")
                if count == self.most:
                    break
        except Exception as exc:
            raise self.refusal(data, exc) from exc
        return bytes(data)
