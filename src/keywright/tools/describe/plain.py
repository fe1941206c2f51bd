"""Decoded values as plain JSON data, exactly: integers stay whole, secrets stay hidden.

Times are RFC 3339, bytes are `{"base64": …}` whatever they hold, numbers that JSON lacks are text.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import math
from collections.abc import Callable, Mapping, Set
from datetime import date, datetime, time
from typing import Any

import msgspec

from keywright.keyspace import Secret
from keywright.keyspace.kinds import Geo, Map, SortedSet, Stream
from keywright.keyspace.kinds.hyperloglog import Estimate
from keywright.tools.describe.inspection import Hidden, Inspection

__all__ = ["inspected", "plain"]


def inspected(found: Inspection) -> Any:
    """Return an inspected key as JSON data: records and maps as objects, other collections as arrays."""
    if found.older is not None:
        return plain(_readable(found.value))
    if isinstance(found.key, SortedSet):
        return [{"member": plain(member), "score": plain(score)} for member, score in found.value]
    if isinstance(found.key, Geo):
        return [{"member": plain(member), **point._asdict()} for member, point in found.value]
    if isinstance(found.key, Stream):
        return [{"id": entry.id, "value": plain(entry.value)} for entry in found.value]
    if isinstance(found.key, Map):
        return _as_object(found.value)
    return plain(found.value)


def plain(value: Any) -> Any:
    """Return a value as JSON data. A value of an unknown type is written as its text."""
    if value is None or type(value) in (bool, int, str):
        return value
    for kinds, convert in _CONVERSIONS:
        if isinstance(value, kinds):
            return convert(value)
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    try:
        return msgspec.to_builtins(value)
    except TypeError:
        return str(value)


def _as_object(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    if any(isinstance(field, Hidden) for field, _ in pairs):
        # Hidden names are alike, and one object cannot hold two of them.
        return {f"{field.value} {number}": plain(value) for number, (field, value) in enumerate(pairs, 1)}
    return {_name(field): plain(value) for field, value in pairs}


def _name(field: Any) -> str:
    written = plain(field)
    return written if isinstance(written, str) else msgspec.json.encode(written).decode()


def _secret(value: object) -> str:
    return Hidden.SECRET.value


def _float(value: float) -> float | str:
    return float(value) if math.isfinite(value) else str(float(value))


def _struct(value: msgspec.Struct) -> Any:
    config = type(value).__struct_config__
    members = {
        field.encode_name: plain(getattr(value, field.name)) for field in msgspec.structs.fields(type(value))
    }
    if config.array_like:
        return list(members.values())
    return {config.tag_field: config.tag, **members} if config.tag_field else members


def _readable(stored: Any) -> Any:
    """Return bytes of an unknown type as text if they are valid UTF-8."""
    if isinstance(stored, dict):
        return {name.decode("utf-8", "backslashreplace"): _readable(value) for name, value in stored.items()}
    try:
        return stored.decode() if isinstance(stored, bytes) else stored
    except UnicodeDecodeError:
        return stored


_CONVERSIONS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    (Hidden, lambda value: value.value),
    (Secret, _secret),
    (enum.Enum, lambda value: plain(value.value)),
    (str, str.__str__),
    (Estimate, lambda value: {"estimate": int(value)}),
    (int, int),
    (float, _float),
    ((datetime, date, time), lambda value: value.isoformat()),
    ((bytes, bytearray), lambda value: {"base64": base64.b64encode(value).decode()}),
    (msgspec.Struct, _struct),
    (Mapping, lambda value: {_name(field): plain(item) for field, item in value.items()}),
    ((list, tuple), lambda value: [plain(item) for item in value]),
    (Set, lambda value: sorted((plain(item) for item in value), key=repr)),
)
