"""How kinds turn codecs into encoders and decoders with errors that name the template."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from keywright.errors import DeclarationError, ValueRefusedError
from keywright.keyspace.codecs import Codec, CodecError
from keywright.keyspace.wires import Reply

if TYPE_CHECKING:
    from keywright.keyspace.key import Key

T = TypeVar("T")


def comparable(cls: type[Key], codec: Codec[T]) -> Codec[T]:
    """The codec of what the server itself compares; a seal differs each time, so it is refused."""
    if codec.sealed:
        raise DeclarationError(
            cls.__name__, "a sealed member never equals itself, so it is never found", "Seal values only."
        )
    return codec


def encoder(cls: type[Key], codec: Codec[T]) -> Callable[[T], bytes]:
    """The codec's encoder; what it refuses becomes a ValueRefusedError of this template."""
    quick, encode = codec.quick_encode or codec.encode, codec.encode

    def encoded(value: T) -> bytes:
        try:
            return quick(value)
        except Exception:  # noqa: BLE001  # the careful way says what is wrong
            pass
        try:
            return encode(value)
        except CodecError as error:
            raise ValueRefusedError(cls._template.source, error.expected, error.found) from error

    return encoded


def many_encoder(cls: type[Key], codec: Codec[T]) -> Callable[[Sequence[T]], list[bytes]]:
    """The same for many values; they are encoded one by one only to find which is refused."""
    encode_many, encode = codec.encode_many, encoder(cls, codec)

    def encoded(values: Sequence[T]) -> list[bytes]:
        try:
            return encode_many(values)
        except Exception:  # noqa: BLE001  # the careful way says what is wrong
            return [encode(value) for value in values]

    return encoded


def optional(codec: Codec[T]) -> Callable[[Reply], T | None]:
    """A decoder that lets an absent value through as None."""
    quick, decode = codec.quick_decode or codec.decode, codec.decode

    def decoded(reply: bytes | None) -> T | None:
        if reply is None:
            return None
        try:
            return quick(reply)
        except Exception:  # noqa: BLE001  # the careful way says what is wrong
            return decode(reply)

    if codec.quick_decode is not None:
        vars(decoded)["quick"] = quick
    return decoded


def each(decode: Callable[[Any], T]) -> Callable[[Reply], list[T]]:
    def decoded(reply: list[Any]) -> list[T]:
        return [decode(item) for item in reply]

    return decoded


def unique(codec: Codec[T]) -> Callable[[Reply], set[T]]:
    def decoded(reply: list[bytes]) -> set[T]:
        return set(cast("list[T]", codec.decode_many(reply)))

    return decoded


def paired(
    decode_first: Callable[[bytes], Any], decode_second: Callable[[bytes], T]
) -> Callable[[Reply], dict[Any, T]]:
    """Decode a flat list of alternating fields and values."""

    def decoded(reply: list[bytes]) -> dict[Any, T]:
        flat = iter(reply)
        return {decode_first(first): decode_second(second) for first, second in zip(flat, flat, strict=True)}

    return decoded
