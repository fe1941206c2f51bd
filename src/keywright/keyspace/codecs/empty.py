"""An empty value that means None."""

from __future__ import annotations

from typing import TypeVar

from keywright.keyspace.codecs.contract import Codec, CodecError
from keywright.keyspace.misuse import explained_constructor

__all__ = ["EmptyAsNone"]

T = TypeVar("T")


@explained_constructor
class EmptyAsNone(Codec[T | None]):
    """None is the empty string; every other value is what another codec writes, which is never empty.

    For a member that is always there: `Annotated[datetime | None, EmptyAsNone]`.
    """

    def __init__(self, inner: Codec[T]) -> None:
        if inner.sealed:
            raise TypeError("a sealed value is never empty: put EmptyAsNone before Sealed")
        self.expected = f"{inner.expected}, or nothing"
        self.python_type = inner.python_type | None  # type: ignore[operator]  # it is a type hint
        self.secret = inner.secret
        self.samples = (None, *(sample for sample in inner.samples if inner.encode(sample)))
        self.inner = inner
        if inner.undeclared is not None:
            self.undeclared = self._undeclared

    def encode(self, value: T | None) -> bytes:
        if value is None:
            return b""
        written = self.inner.encode(value)
        if not written:
            raise CodecError(self.expected, "an empty value, which is read as None")
        return written

    def decode(self, data: bytes) -> T | None:
        return self.inner.decode(data) if data else None

    def _undeclared(self, data: bytes) -> list[str]:
        search = self.inner.undeclared
        return search(data) if search is not None and data else []
