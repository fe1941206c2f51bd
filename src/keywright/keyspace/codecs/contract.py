"""The base of codecs: bytes from a value, the value from the bytes, and one error for both.

Codecs know nothing of keys. A kind catches `CodecError` and adds the key's name.
A codec declared wrongly (an enum of floats, say) raises TypeError when it is made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

__all__ = ["Codec", "CodecError", "SealRefused", "UnpackedTooLarge"]

T = TypeVar("T")

_EXCERPT = 80


class CodecError(ValueError):
    """A value that cannot be written, or bytes that cannot be read, as declared."""

    def __init__(self, expected: str, found: str) -> None:
        self.expected = expected
        self.found = found
        super().__init__(expected, found)

    def withhold(self) -> None:
        """Remove the quoted value, of a key that hides a part of its values."""
        self.found = "<secret>"
        self.args = (self.expected, self.found)

    def __str__(self) -> str:
        return f"expected {self.expected}, found {self.found}"


class SealRefused(CodecError):  # noqa: N818 - the seal is what was refused; SealError is the public name
    """Bytes that no key of the bound keyring opens in this context."""


class UnpackedTooLarge(CodecError):  # noqa: N818 - it is valid as far as it was read
    """Compressed bytes that unpack to more than the reader of the moment allows. Shows nothing of them."""


class Codec(ABC, Generic[T]):
    """How one value is written; instances are immutable and safe to share between threads."""

    expected: str
    """What the bytes are, in words for messages and documentation."""
    python_type: object
    secret: bool = False
    """Neither values nor bytes may be shown."""
    sealed: bool = False
    optional_seal: bool = False
    """Sealed only in a database with a keyring, and stored in clear in others."""
    quick_encode: Callable[[T], bytes] | None = None
    """The bare function behind `encode`, where there is one; it may raise anything when `encode` would."""
    quick_decode: Callable[[bytes], T] | None = None
    """The same for `decode`."""
    inline_encode: str | None = None
    """`quick_encode` as source: an expression, where `{0}` is the value and `{1}` the name of `encode`."""
    inline_decode: str | None = None
    """The same for `decode`."""
    layout: type | None = None
    """A struct or dataclass that names the parts of the bytes, for documentation, where there are such."""
    alike: Codec[Any] | None = None
    """Of a codec of a program: one of the library that reads what it writes, and the other way, for programs
    in other languages."""
    samples: tuple[T, ...] = ()
    """Values that must round-trip."""
    undeclared: Callable[[bytes], list[str]] | None = None
    """Returns the members of stored bytes that the type does not declare; None if it has no members."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        for method in ("encode", "decode"):
            if method in vars(cls):  # the quick forms of a base do what its own method did
                for form in (f"quick_{method}", f"inline_{method}"):
                    if form not in vars(cls):
                        setattr(cls, form, None)

    @abstractmethod
    def encode(self, value: T) -> bytes:
        """Return the bytes to store. Raise CodecError if the value is not of the declared type."""

    @abstractmethod
    def decode(self, data: bytes) -> T:
        """Return the value. Raise CodecError, and nothing else, if the bytes are malformed."""

    def decode_many(self, replies: Sequence[bytes | None]) -> list[T | None]:
        """Return the values of several replies; None stays None."""
        if self.quick_decode is not None:
            try:
                quick = self.quick_decode
                return [None if data is None else quick(data) for data in replies]
            except Exception:  # noqa: BLE001  # the slow way reports the malformed one
                pass
        decode = self.decode
        return [None if data is None else decode(data) for data in replies]

    def encode_many(self, values: Sequence[T]) -> list[bytes]:
        """Return the bytes of many values. Raise any error if `encode` would refuse one of them."""
        encode = self.quick_encode or self.encode
        return [encode(value) for value in values]

    def for_member(self, member: bytes) -> Codec[T]:
        """Return the codec of one member: itself, unless its bytes depend on where they are stored."""
        del member
        return self

    def encoding(self, value: str, encode: str) -> str:
        """Return an expression that encodes a value: in line, unless a subclass encodes in another way."""
        return (self.inline_encode or "{1}({0})").format(value, encode)

    def decoding(self, data: str, decode: str) -> str:
        """Return an expression that decodes bytes: in line, unless a subclass decodes in another way."""
        return (self.inline_decode or "{1}({0})").format(data, decode)

    def refusal(self, found: object, reason: object = "") -> CodecError:
        """Return the error to raise; it shows nothing of a secret."""
        if self.secret:
            return CodecError(self.expected, "<secret>")
        detail = f" ({_shortened(str(reason))})" if reason else ""
        return CodecError(self.expected, _excerpt(found) + detail)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.expected}>"


def _excerpt(found: object) -> str:
    """Return a short form without a foreign __repr__, which may raise, recurse or reveal too much."""
    if isinstance(found, bytes):
        return _shortened(repr(found[:_EXCERPT]), cut=len(found) > _EXCERPT)
    if type(found) is str:
        return _shortened(repr(found[:_EXCERPT]), cut=len(found) > _EXCERPT)
    if type(found) is int and found.bit_length() > 4 * _EXCERPT:
        return f"an int of {found.bit_length()} bits"
    if found is None or type(found) in (bool, int, float):
        return _shortened(repr(found))
    return f"a value of type {type(found).__name__}"


def _shortened(text: str, *, cut: bool = False) -> str:
    if len(text) > _EXCERPT or cut:
        return f"{text[: _EXCERPT - 1]}…"
    return text
