"""Encoders and decoders of the kinds, made of codecs; their errors name the template."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from keywright.errors import DeclarationError, ValueRefusedError
from keywright.keyspace.codecs import Codec, CodecError, Plaintext
from keywright.keyspace.generated import for_each, function, in_bulk
from keywright.keyspace.wires import Reply

if TYPE_CHECKING:
    from keywright.keyspace.key import Key

T = TypeVar("T")
D = TypeVar("D")


def comparable(cls: type[Key], codec: Codec[T]) -> Codec[T]:
    """Return the codec of bytes that the server compares. Raise DeclarationError if it seals them."""
    if codec.sealed:
        raise DeclarationError(
            cls.__name__, "a sealed member never equals itself, so it is never found", "Seal values only."
        )
    return codec


def encoder(cls: type[Any], codec: Codec[T]) -> Callable[[T], bytes]:
    """Return the codec's encoder; an invalid value raises a ValueRefusedError of this template."""
    encode = codec.encode

    def encoded(value: T) -> bytes:
        try:
            return encode(value)
        except CodecError as error:
            raise ValueRefusedError(cls._template.source, error.expected, error.found) from error

    line, scope = codec.encoding("value", "encode"), {"encode": codec.quick_encode or encode}
    return function("value", [f"return {line}"], scope, encoded)


def pair_encoder(
    cls: type[Any], first: Codec[Any], second: Codec[T]
) -> Callable[[Any, T], tuple[bytes, bytes]]:
    """Return the encoder of a field and its value."""
    encode_first, encode_second = encoder(cls, first), encoder(cls, second)

    def encoded(field: Any, value: T) -> tuple[bytes, bytes]:
        return encode_first(field), encode_second(value)

    line = f"return {first.encoding('field', 'encode_first')}, {second.encoding('value', 'encode_second')}"
    scope = {
        "encode_first": first.quick_encode or first.encode,
        "encode_second": second.quick_encode or second.encode,
    }
    return function("field, value", [line], scope, encoded)


def sealed_pair_encoder(
    cls: type[Any], first: Codec[Any], second: Codec[T]
) -> Callable[[Any, T], tuple[bytes, bytes]]:
    """Return an encoder like that of `pair_encoder`, of values whose seals are bound to their fields."""
    encode_first, encode_second = encoder(cls, first), encoder(cls, second)

    def encoded(field: Any, value: T) -> tuple[bytes, bytes]:
        stored, sealed = encode_first(field), encode_second(value)
        if isinstance(sealed, Plaintext):
            sealed.member = stored
        return stored, sealed

    return encoded


def many_encoder(cls: type[Key], codec: Codec[T]) -> Callable[[Sequence[T]], list[bytes]]:
    """Return the encoder of many values; it encodes them one by one only to find the invalid one."""
    encode_many, encode = codec.encode_many, encoder(cls, codec)

    def encoded(values: Sequence[T]) -> list[bytes]:
        try:
            return encode_many(values)
        except Exception:  # noqa: BLE001  # the slow way reports the invalid value
            return [encode(value) for value in values]

    return encoded


def optional(codec: Codec[T]) -> Callable[[Reply], T | None]:
    """Return a decoder that returns None for an absent value."""
    return or_else(None, codec)


def or_else(absent: D, codec: Codec[T]) -> Callable[[Reply], T | D]:
    """Return a decoder that returns `absent` for an absent value."""
    decode = codec.decode

    def decoded(reply: bytes | None) -> T | D:
        return absent if reply is None else decode(reply)

    expression = f"absent if data is None else {codec.decoding('data', 'decode')}"
    scope = {"absent": absent, "decode": codec.quick_decode or decode}
    decoder = function("data", [f"return {expression}"], scope, decoded)
    return in_bulk(decoder, for_each("data", expression, scope))


def each(decode: Callable[[Any], T]) -> Callable[[Reply], list[T]]:
    def decoded(reply: list[Any]) -> list[T]:
        return [decode(item) for item in reply]

    return decoded


def items(codec: Codec[T]) -> Callable[[Reply], list[T]]:
    """Return a decoder of a list of values."""
    item, scope = codec.decoding("item", "decode"), {"decode": codec.quick_decode or codec.decode}
    decoder = function("reply", [f"return [{item} for item in reply]"], scope, each(codec.decode))
    return in_bulk(decoder, for_each("reply", f"[{item} for item in reply]", scope))


def unique(codec: Codec[T]) -> Callable[[Reply], set[T]]:
    """Return a decoder of a set of values."""

    def decoded(reply: list[bytes]) -> set[T]:
        return set(cast("list[T]", codec.decode_many(reply))) if reply else set()

    if codec.quick_decode is None:  # some decode many values in less time
        return decoded
    item, scope = codec.decoding("item", "decode"), {"decode": codec.quick_decode}
    decoder = function("reply", [f"return {{{item} for item in reply}}"], scope, decoded)
    return in_bulk(decoder, for_each("reply", f"{{{item} for item in reply}}", scope))


def paired(first: Codec[Any], second: Codec[T]) -> Callable[[Reply], dict[Any, T]]:
    """Return a decoder of a flat list of alternating fields and values."""

    def decoded(reply: list[bytes]) -> dict[Any, T]:
        flat = iter(reply)
        pairs = zip(flat, flat, strict=True)
        return {first.decode(field): second.decode(value) for field, value in pairs}

    field, value = first.decoding("field", "decode_field"), second.decoding("value", "decode_value")
    scope = {
        "decode_field": first.quick_decode or first.decode,
        "decode_value": second.quick_decode or second.decode,
    }
    lines = [*_IN_PAIRS, f"return {{{field}: {value} for field, value in zip(flat, flat)}}"]
    return function("reply", lines, scope, decoded)


def scored(codec: Codec[Any], read: Callable[[float], Any]) -> Callable[[Reply], list[tuple[Any, Any]]]:
    """Return a decoder of a flat list of alternating members and scores."""

    def decoded(reply: list[bytes]) -> list[tuple[Any, Any]]:
        flat = iter(reply)
        return [(codec.decode(member), read(float(score))) for member, score in zip(flat, flat, strict=True)]

    member = codec.decoding("member", "decode")
    number = "float(score)" if read is float else "read(float(score))"
    scope = {"decode": codec.quick_decode or codec.decode, "read": read}
    lines = [*_IN_PAIRS, f"return [({member}, {number}) for member, score in zip(flat, flat)]"]
    return function("reply", lines, scope, decoded)


# As zip(…, strict=True) does it, in less time.
_IN_PAIRS = ("if len(reply) % 2: raise ValueError", "flat = iter(reply)")


def sealed_pairs(first: Codec[Any], second: Codec[T]) -> Callable[[Reply], dict[Any, T]]:
    """Return a decoder like that of `paired`, of values whose seals are bound to their fields."""

    def decoded(reply: list[bytes]) -> dict[Any, T]:
        flat = iter(reply)
        return {
            first.decode(field): second.for_member(field).decode(value)
            for field, value in zip(flat, flat, strict=True)
        }

    return decoded
