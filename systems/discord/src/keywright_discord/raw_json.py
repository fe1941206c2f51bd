"""Discord's objects one level deep: fields by name, each still the bytes that were received.

Nothing below the first level is decoded unless it is needed, so every field survives as it came,
known or not, `[]` and null included, and ids above 2^53 never become floats.
"""

from __future__ import annotations

from codecs import utf_8_decode
from typing import Any, TypeAlias

import msgspec

from keywright import Rest
from keywright.errors import UsageError

Fields: TypeAlias = dict[str, msgspec.Raw]

_fields = msgspec.json.Decoder(Fields).decode
_list = msgspec.json.Decoder(list[Fields]).decode
_ids = msgspec.json.Decoder(list[str | int]).decode
_any = msgspec.json.Decoder().decode

encode = msgspec.json.encode

_REST = Rest()
_PART = 32 * 1024
LARGEST_ID = 2**64 - 1


_NULL = msgspec.Raw(b"null")


class _Identified(msgspec.Struct):
    id: str | int


_identified = msgspec.json.Decoder(_Identified).decode


class PayloadError(UsageError):
    """A payload that is not what its event says; nothing of it was applied."""

    def __init__(self, what: str, expected: str, found: object) -> None:
        self.what = what
        self.expected = expected
        self.found = found
        super().__init__(f"{what} must be {expected}, not {_excerpt(found)}. The event was left out.")


def check_text(data: bytes, what: str) -> None:
    """PayloadError unless it is UTF-8: what is stored undecoded must be readable all the same.

    In parts, since the text itself is not wanted: 0.2 ms for a guild of 640 KB, against 1.1 ms for the whole,
    which takes four bytes a character as soon as there is one emoji.
    """
    start = 0
    try:
        while start < len(data):
            part = data[start : start + _PART]
            start += utf_8_decode(part, "strict", start + _PART >= len(data))[1]
        # One character is searched for at the speed of memory, two at a tenth of it.
        if b"\\" in data and any(part.startswith(b"u") for part in data.split(b"\\")[1:]):
            _any(data)  # it may hold half of a surrogate pair, which no text can
    except UnicodeDecodeError as error:
        raise PayloadError(what, "UTF-8", data[start + error.start :]) from error
    except (msgspec.MsgspecError, RecursionError) as error:
        raise PayloadError(what, "JSON", data) from error


def fields(raw: msgspec.Raw | bytes, what: str) -> Fields:
    """An object's fields; PayloadError when it is no object."""
    try:
        return _fields(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise PayloadError(what, "an object", bytes(raw)) from error


def stored_fields(body: bytes | None) -> Fields | None:
    """The fields of a stored object; none when there is none, or when another writer left something else."""
    if body is None:
        return None
    try:
        return _fields(body)
    except (msgspec.MsgspecError, RecursionError):
        return None


def objects(raw: msgspec.Raw | bytes | None, what: str) -> list[Fields]:
    """The objects of an array; none when it is absent or null."""
    if absent(raw):
        return []
    assert raw is not None
    try:
        return _list(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise PayloadError(what, "an array of objects", bytes(raw)) from error


def ids(raw: msgspec.Raw | None, what: str) -> list[str]:
    """The ids of an array; none when it is absent or null."""
    if absent(raw):
        return []
    assert raw is not None
    try:
        return [identity(each, what) for each in _ids(raw)]
    except (msgspec.MsgspecError, RecursionError) as error:
        raise PayloadError(what, "an array of ids", bytes(raw)) from error


def absent(raw: msgspec.Raw | bytes | None) -> bool:
    """Whether a field is missing or null."""
    # A Raw is compared where it is: its bytes may be half a megabyte.
    return raw is None or raw == _NULL or raw == b"null"


def one_id(given: Fields, field: str, what: str) -> str:
    """An id that must be there, in canonical decimal."""
    raw = given.get(field)
    if raw is None:
        raise PayloadError(f"{what}.{field}", "an id", "nothing")
    return identity(scalar(raw, f"{what}.{field}"), f"{what}.{field}")


def maybe_id(given: Fields, field: str, what: str) -> str | None:
    """An id, or None where it is missing or null."""
    return None if absent(given.get(field)) else one_id(given, field, what)


def name_of(given: Fields, field: str, what: str, expected: str) -> str:
    """Text that a key is named by, so neither empty nor with braces or control characters."""
    found = scalar(given[field], f"{what}.{field}") if field in given else None
    try:
        return _REST.render(found)
    except ValueError as error:
        raise PayloadError(f"{what}.{field}", expected, found) from error


def id_of(raw: msgspec.Raw, what: str) -> str:
    """The `id` of an object of which nothing else is needed."""
    try:
        found = _identified(raw).id
    except (msgspec.MsgspecError, RecursionError) as error:
        raise PayloadError(f"{what}.id", "an id", bytes(raw)) from error
    return identity(found, f"{what}.id")


def identity(found: object, what: str) -> str:
    """A snowflake as Redis keeps it: decimal, without leading zeros, 64 bits."""
    if type(found) is str and found.isascii() and found.isdigit():
        if (found[0] != "0" and len(found) < 20) or _canonical(found):
            return found
    elif type(found) is int and 0 <= found <= LARGEST_ID:
        return str(found)
    raise PayloadError(what, "a snowflake", found)


def _canonical(digits: str) -> bool:
    return (digits[0] != "0" or digits == "0") and (len(digits) < 20 or int(digits) <= LARGEST_ID)


def scalar(raw: msgspec.Raw, what: str) -> Any:
    """A string, number, boolean or null."""
    try:
        found = _any(raw)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise PayloadError(what, "JSON", bytes(raw)) from error
    if isinstance(found, dict | list):
        raise PayloadError(what, "a plain value", found)
    return found


def written(value: object) -> msgspec.Raw:
    """A value of ours as a field."""
    return msgspec.Raw(encode(value))


def _excerpt(found: object, limit: int = 80) -> str:
    text = repr(found[:limit] if isinstance(found, bytes | str) else found)
    return text if len(text) <= limit else f"{text[:limit]}…"
