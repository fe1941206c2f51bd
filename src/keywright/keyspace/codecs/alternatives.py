"""Values that are stored in one of several forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Union

from keywright.keyspace.codecs.contract import Codec, CodecError, UnpackedTooLarge
from keywright.keyspace.misuse import explained_constructor

__all__ = ["FirstOf", "alternatives_in"]


@explained_constructor
class FirstOf(Codec[Any]):
    """The first of several codecs that accepts a value, or reads the bytes: `FirstOf(Int64(), Pickled())`.

    A value whose bytes an earlier codec would read as another value is not written.
    """

    def __init__(self, *codecs: Codec[Any]) -> None:
        if len(codecs) < 2 or not all(isinstance(codec, Codec) for codec in codecs):
            raise TypeError(f"FirstOf needs two codecs or more, not {codecs!r}: FirstOf(Int64(), Json())")
        if any(codec.sealed for codec in codecs):
            raise TypeError("a sealed value has one form: put Sealed around FirstOf")
        self.expected = ", or ".join(codec.expected for codec in codecs)
        self.python_type = Union[tuple(codec.python_type for codec in codecs)]  # noqa: UP007  # at run time
        self.secret = any(codec.secret for codec in codecs)
        self.codecs = codecs
        # A sample that another codec claims is a finding of `check`, with its reason.
        self.samples = tuple(
            sample for codec in codecs for sample in codec.samples if self.mistaken(codec, sample) is None
        )
        if any(codec.undeclared is not None for codec in codecs):
            self.undeclared = self._undeclared

    def encode(self, value: Any) -> bytes:
        for codec in self.codecs:
            try:
                data = codec.encode(value)
            except CodecError:
                continue
            earlier = self._misreading(codec, data, value)
            if earlier is not None:
                raise self.refusal(value, f"it would be read as {earlier.expected}")
            return data
        raise self.refusal(value)

    def decode(self, data: bytes) -> Any:
        return self._read(data)[1]

    def mistaken(self, codec: Codec[Any], sample: Any) -> Codec[Any] | None:
        """Return the earlier codec that reads the bytes of a sample of a later one as another value."""
        try:
            return self._misreading(codec, codec.encode(sample), sample)
        except CodecError:
            return None

    def _misreading(self, written_by: Codec[Any], data: bytes, value: Any) -> Codec[Any] | None:
        reader, found = self._read(data)
        return None if reader is written_by or _same(found, value) else reader

    def _read(self, data: bytes) -> tuple[Codec[Any], Any]:
        for codec in self.codecs:
            try:
                return codec, codec.decode(data)
            except UnpackedTooLarge:
                raise
            except CodecError:
                continue
        raise self.refusal(data)

    def _undeclared(self, data: bytes) -> list[str]:
        try:
            search = self._read(data)[0].undeclared
        except CodecError:
            return []
        return [] if search is None else search(data)


def alternatives_in(codec: Codec[Any]) -> Iterator[FirstOf]:
    """Yield the alternatives of a codec, and of those that it goes around."""
    inner = getattr(codec, "inner", None)
    if isinstance(codec, FirstOf):
        yield codec
        for each in codec.codecs:
            yield from alternatives_in(each)
    elif isinstance(inner, Codec):
        yield from alternatives_in(inner)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)
