"""The type of stored values, from the values that were seen. Nothing is unpickled or unpacked."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from keywright.keyspace import Boolean, CodecError, EpochMs, EpochSeconds, Int64, Raw, Zstd
from keywright.keyspace.codecs import unpacking_at_most
from keywright.keyspace.codecs.numeric import Float
from keywright.keyspace.codecs.times import Rfc3339
from keywright.tools.infer.structs import Structs

__all__ = ["Hint", "hint_of", "rough_form", "scalar_hint"]

SECONDS = range(1_000_000_000, 2_100_000_000)
MILLISECONDS = range(1_000_000_000_000, 2_100_000_000_000)
ENOUGH = 3
MOST_UNPACKED = 1 << 22
_OPAQUE = (
    ("pickled by Python", re.compile(rb"\x80[\x02-\x05].*\.", re.DOTALL).fullmatch),
    ("compressed with gzip", re.compile(rb"\x1f\x8b\x08").match),
    ("compressed with zlib", re.compile(rb"\x78[\x01\x5e\x9c\xda]").match),
    ("compressed with lz4", re.compile(rb"\x04\x22\x4d\x18").match),
    ("serialised by Java", re.compile(rb"\xac\xed\x00\x05").match),
    ("serialised by PHP", re.compile(rb"(?:a:\d+:\{.*\}|O:\d+:\".*\})", re.DOTALL).fullmatch),
)
_PACKED = bytes([*range(0x80, 0xA0), *range(0xDC, 0xE0)])
_PACKED_NUMBERS = range(0xCC, 0xD4)
_ZSTD = b"\x28\xb5\x2f\xfd"


class Hint(NamedTuple):
    """A type hint as source text, the names that it needs from `keywright`, and what is doubtful."""

    text: str
    names: tuple[str, ...] = ()
    doubt: str = ""
    note: str = ""


TEXT, BYTES = Hint("str"), Hint("bytes")
UNREAD = Hint("bytes", doubt="no value was read")


def hint_of(values: Sequence[bytes], structs: Structs, label: str) -> Hint:
    """Return the type of whole values. `label` names the struct of JSON and MessagePack objects."""
    if not values:
        return UNREAD
    for note, matches in _OPAQUE:
        if all(map(matches, values)):
            return Hint("bytes", note=f"The bytes are {note}.")
    if any(value.startswith(_ZSTD) for value in values):
        return _compressed(values, structs, label)
    objects = _decoded(values, _json, b"{[")
    if objects is not None:
        return Hint(f"Annotated[{structs.hint(objects, label)}, Json]", ("Json",))
    packed = _decoded(values, msgspec.msgpack.decode, _PACKED)
    if packed is not None:
        return Hint(f"Annotated[{structs.hint(packed, label)}, MessagePack]", ("MessagePack",))
    if all(len(value) > 1 and value[0] in _PACKED_NUMBERS for value in values) and all(
        map(_is_packed, values)
    ):
        return Hint("Annotated[int, MessagePack]", ("MessagePack",))
    return scalar_hint(values)


def scalar_hint(values: Sequence[bytes]) -> Hint:
    """Return the type of texts that are not documents."""
    if not values:
        return UNREAD
    if _reads(Int64(), values):
        return _number(values)
    if _reads(Float(), values):
        return Hint("float")
    if _reads(Rfc3339(), values):
        return Hint("datetime")
    for true, false in (("true", "false"), ("True", "False")):
        if _reads(Boolean(true, false), values):
            return Hint(f'Annotated[bool, Boolean("{true}", "{false}")]', ("Boolean",))
    with suppress(UnicodeDecodeError):
        for value in values:
            value.decode()
        return TEXT
    return BYTES


def rough_form(values: Sequence[bytes]) -> str:
    """Return the form of values in a word, to tell keys of different templates apart."""
    if not values:
        return ""
    objects = _decoded(values, _json, b"{[")
    if objects is not None:
        return "objects" if isinstance(objects[0], dict) else "lists"
    for note, matches in _OPAQUE:
        if all(map(matches, values)):
            return note
    return scalar_hint(values).text.partition("[")[0]


def _compressed(values: Sequence[bytes], structs: Structs, label: str) -> Hint:
    """Return the type of values of which some are zstd frames and the others too short for it."""
    if importlib.util.find_spec("zstandard") is None:
        return Hint("bytes", note="The bytes are compressed with zstd.")
    codec = Zstd(Raw(), max_size=MOST_UNPACKED)
    try:
        with unpacking_at_most(MOST_UNPACKED):
            inner = hint_of([codec.decode(value) for value in values if value != _ZSTD], structs, label)
    except (CodecError, RecursionError):
        return Hint("bytes", note="Some of the bytes are compressed with zstd.")
    outer, _, mark = inner.text.removeprefix("Annotated[").removesuffix("]").rpartition(", ")
    text = (
        f"Annotated[{outer}, {mark}, Zstd]"
        if inner.text.startswith("Annotated[")
        else f"Annotated[{inner.text}, Zstd]"
    )
    return inner._replace(text=text, names=(*inner.names, "Zstd"))


def _is_packed(value: bytes) -> bool:
    try:
        return isinstance(msgspec.msgpack.decode(value), int)
    except (msgspec.MsgspecError, ValueError):
        return False


def _number(values: Sequence[bytes]) -> Hint:
    numbers = {int(value) for value in values}
    for unit, codec in ((SECONDS, EpochSeconds), (MILLISECONDS, EpochMs)):
        if all(number in unit for number in numbers):
            enough = len(numbers) >= ENOUGH
            name = codec.__name__
            doubt = "" if enough else f"a time by its size, from {len(numbers)} value(s)"
            return Hint(f"Annotated[datetime, {name}()]", (name,), doubt)
    return Hint("int")


def _reads(codec: Any, values: Iterable[bytes]) -> bool:
    try:
        for value in values:
            codec.decode(value)
    except (CodecError, IndexError):
        return False
    return True


def _json(data: bytes) -> Any:
    return msgspec.json.decode(data)


def _decoded(
    values: Sequence[bytes], decode: Callable[[bytes], Any], first: bytes
) -> list[dict[Any, Any]] | list[list[Any]] | None:
    """Return the objects or lists that all values hold, or None if one holds something else."""
    if not all(value and value[0] in first for value in values):
        return None
    try:
        found = [decode(value) for value in values]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return found if all(isinstance(each, dict | list) for each in found) else None
