"""Forms of stored bytes, recognised by their beginning and their structure. Nothing is executed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from keywright.keyspace import CodecError, Pickled

__all__ = ["are_bits", "are_hyperloglogs", "are_pickles", "opaque_form"]

MOST_OPCODES = 2_000
MOST_PARTS = 1_000
FEW_BITS = 0.15
"""Of a bitmap that is guessed, at most this share of the bits is set; of other bytes it is about half."""
ENOUGH = 2

_PHP = re.compile(
    rb"(?:a:\d+:\{.*\}|O:\d+:\".*\}|s:\d+:\".*\";|[ib]:-?\d+;|d:[-+.\dEINFA]+;|N;)", re.DOTALL
).fullmatch
_JAVA = re.compile(rb"\xac\xed\x00\x05[pqr-~]").match
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_PICKLE = re.compile(rb"\x80[\x02-\x05].*\.", re.DOTALL).fullmatch
_pickled = Pickled(most=MOST_OPCODES)


def are_pickles(values: Sequence[bytes]) -> bool:
    """Return whether all are pickles of protocol 2 or later, by their opcodes."""
    if not all(map(_PICKLE, values)):
        return False
    try:
        for value in values:
            _pickled.decode(value)
    except CodecError:
        return False
    return True


def are_hyperloglogs(values: Sequence[bytes]) -> bool:
    """Return whether all have the header of a HyperLogLog, as PFADD writes it."""
    return all(len(value) >= 16 and value.startswith(b"HYLL") and value[4] < 2 for value in values)


def are_bits(values: Sequence[bytes]) -> bool:
    """Return whether values are perhaps bitmaps: bytes that are not text, of which few bits are set."""
    joined = b"".join(values)
    if len(values) < ENOUGH or len(joined) < 4 * len(values) or not all(map(_CONTROLS.search, values)):
        return False
    return int.from_bytes(joined).bit_count() <= len(joined) * 8 * FEW_BITS


def opaque_form(values: Sequence[bytes]) -> tuple[str, str] | None:
    """Return what wrote the bytes, and what is doubtful about that; None if it is not known."""
    for words, doubt, matches in _OPAQUE:
        if matches(values):
            return words, doubt
    return None


def _are_php(values: Sequence[bytes]) -> bool:
    return all(map(_PHP, values)) and any(value[:1] in b"aOs" for value in values)


def _are_java(values: Sequence[bytes]) -> bool:
    return all(map(_JAVA, values))


def _are_protobuf(values: Sequence[bytes]) -> bool:
    """Return whether all are read to their end as fields of protobuf, and begin with the same field."""
    if len(values) < ENOUGH or len({value[:1] for value in values}) > 1:
        return False
    return all(_CONTROLS.search(value) and _is_protobuf(value) for value in values)


def _is_protobuf(value: bytes) -> bool:
    place = parts = 0
    while place < len(value):
        parts += 1
        tag, place = _varint(value, place)
        if not 0 < tag >> 3 < 4096 or parts > MOST_PARTS:
            return False
        match tag & 7:
            case 0:
                number, place = _varint(value, place)
                if number < 0:
                    return False
            case 1:
                place += 8
            case 2:
                length, place = _varint(value, place)
                if length < 0:
                    return False
                place += length
            case 5:
                place += 4
            case _:
                return False
    return place == len(value) and parts > 0


def _varint(value: bytes, place: int) -> tuple[int, int]:
    """Return a number of seven bits in each byte, and where it ends; -1 if it is malformed."""
    number = 0
    for count, byte in enumerate(value[place : place + 10]):
        number |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return number, place + count + 1
    return -1, place


_OPAQUE: tuple[tuple[str, str, Callable[[Sequence[bytes]], bool]], ...] = (
    ("serialised by PHP", "", _are_php),
    ("serialised by Java", "", _are_java),
    ("perhaps a message of protobuf", "bytes that can be read as fields of protobuf", _are_protobuf),
)
