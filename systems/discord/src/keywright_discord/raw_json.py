"""Discord's objects as raw JSON: one level of fields, each still the bytes that were received.

Nothing below the first level is decoded unless it is needed, so every field survives as it came,
known or not, `[]` and null included, and ids above 2^53 never become floats. `Document` stores an
object the same way: bytes are written as they are.
"""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias, cast

import msgspec

from keywright import Codec, Json, Rest, SnowflakeText
from keywright.errors import UsageError

Fields: TypeAlias = dict[str, msgspec.Raw]
Body: TypeAlias = Fields | bytes
"""An object as its fields, or as its bytes."""

_fields = msgspec.json.Decoder(Fields).decode
_list = msgspec.json.Decoder(list[Fields]).decode
_text = msgspec.json.Decoder(str).decode
_ids = msgspec.json.Decoder(list[str | int]).decode
_any = msgspec.json.Decoder().decode
decode_object = msgspec.json.Decoder(dict[str, Any]).decode
NOT_AN_OBJECT = (msgspec.MsgspecError, ValueError, RecursionError)
"""What `decode_object` raises for other bytes."""

encode = msgspec.json.encode

_REST = Rest()
_PART = 32 * 1024
LARGEST_ID = 2**64 - 1


_NULL = msgspec.Raw(b"null")


class _Identified(msgspec.Struct):
    id: str | int


_identified = msgspec.json.Decoder(_Identified).decode


class PayloadError(UsageError):
    """A payload that is malformed for its event; nothing of it was applied."""

    def __init__(self, what: str, expected: str, found: object) -> None:
        self.what = what
        self.expected = expected
        self.found = found
        super().__init__(f"{what} must be {expected}, not {excerpt(found)}. The event was not applied.")


def check_text(data: bytes, what: str) -> None:
    """Raise PayloadError unless it is UTF-8: bytes are stored without decoding, and must be readable later.

    They are decoded in parts, since the text itself is not needed: 0.2 ms for a guild of 640 KB, against 1.1
    ms for the whole, which takes four bytes per character as soon as there is one emoji.
    """
    start = 0
    try:
        while start < len(data):
            part = data[start : start + _PART]
            start += utf_8_decode(part, "strict", start + _PART >= len(data))[1]
        # Searching one character runs at memory speed, searching two at a tenth of it.
        if b"\\" in data and any(part.startswith(b"u") for part in data.split(b"\\")[1:]):
            _any(data)  # it may hold half of a surrogate pair, which is not valid text
    except UnicodeDecodeError as error:
        raise PayloadError(what, "UTF-8", data[start + error.start :]) from error
    except (msgspec.MsgspecError, RecursionError) as error:
        raise PayloadError(what, "JSON", data) from error


def fields(raw: msgspec.Raw | bytes, what: str) -> Fields:
    """Return the fields of an object. Raise PayloadError if it is not an object."""
    try:
        return _fields(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise PayloadError(what, "an object", bytes(raw)) from error


def stored_fields(body: bytes | None) -> Fields | None:
    """Return the fields of a stored object, or None if another writer left something else, or nothing."""
    if body is None:
        return None
    try:
        return _fields(body)
    except (msgspec.MsgspecError, RecursionError):
        return None


def objects(raw: msgspec.Raw | bytes | None, what: str) -> list[Fields]:
    """Return the objects of an array; none when it is absent or null."""
    if absent(raw):
        return []
    assert raw is not None
    try:
        return _list(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise PayloadError(what, "an array of objects", bytes(raw)) from error


def ids(raw: msgspec.Raw | None, what: str) -> list[str]:
    """Return the ids of an array; none when it is absent or null."""
    if absent(raw):
        return []
    assert raw is not None
    try:
        return [identity(each, what) for each in _ids(raw)]
    except (msgspec.MsgspecError, RecursionError) as error:
        raise PayloadError(what, "an array of ids", bytes(raw)) from error


def absent(raw: msgspec.Raw | bytes | None) -> bool:
    """Return whether a field is missing or null."""
    # A Raw is compared without copying its bytes, which may be half a megabyte.
    return raw is None or raw == _NULL or raw == b"null"


def one_id(given: Fields, field: str, what: str) -> str:
    """Return a required id in canonical decimal. Raise PayloadError if it is missing or malformed."""
    raw = given.get(field)
    if raw is None:
        raise PayloadError(f"{what}.{field}", "an id", "nothing")
    try:
        found = _text(raw)
    except msgspec.MsgspecError:
        found = ""
    if found.isascii() and found.isdigit() and found[0] != "0" and len(found) < 20:
        return found  # in quotes, as Discord sends ids
    return identity(scalar(raw, f"{what}.{field}"), f"{what}.{field}")


def maybe_id(given: Fields, field: str, what: str) -> str | None:
    """Return an id, or None if it is missing or null."""
    raw = given.get(field)
    return None if raw is None or absent(raw) else one_id(given, field, what)


def name_of(given: Fields, field: str, what: str, expected: str) -> str:
    """Return text for a key name. Raise PayloadError if it is empty or has braces or control characters."""
    found = scalar(given[field], f"{what}.{field}") if field in given else None
    try:
        return _REST.render(found)
    except ValueError as error:
        raise PayloadError(f"{what}.{field}", expected, found) from error


def id_of(raw: msgspec.Raw, what: str) -> str:
    """Return the `id` of an object without decoding anything else of it."""
    try:
        found = _identified(raw).id
    except (msgspec.MsgspecError, RecursionError) as error:
        raise PayloadError(f"{what}.id", "an id", bytes(raw)) from error
    return identity(found, f"{what}.id")


def identity(found: object, what: str) -> str:
    """Return a snowflake as it is stored: decimal, without leading zeros, 64 bits. Raise PayloadError if it
    is not one."""
    if type(found) is str and found.isascii() and found.isdigit():
        if (found[0] != "0" and len(found) < 20) or _canonical(found):
            return found
    elif type(found) is int and 0 <= found <= LARGEST_ID:
        return str(found)
    raise PayloadError(what, "a snowflake", found)


def _canonical(digits: str) -> bool:
    return (digits[0] != "0" or digits == "0") and (len(digits) < 20 or int(digits) <= LARGEST_ID)


def reference(value: object) -> str | None:
    """Return the id that stands for an object in a decoded document, or None if the value is not an id."""
    if type(value) is str and value.isascii() and value.isdigit() and value[0] != "0" and len(value) < 20:
        return value  # most are
    if type(value) is not str and type(value) is not int:
        return None
    try:
        return identity(value, "a reference")
    except PayloadError:
        return None


def scalar(raw: msgspec.Raw, what: str) -> Any:
    """Decode a string, number, boolean or null. Raise PayloadError for an array or an object."""
    try:
        found = _any(raw)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise PayloadError(what, "JSON", bytes(raw)) from error
    if type(found) is dict or type(found) is list:
        raise PayloadError(what, "a plain value", found)
    return found


def written(value: object) -> msgspec.Raw:
    """Encode a value as a field."""
    return msgspec.Raw(encode(value))


def body_bytes(body: Body) -> bytes:
    """Return an object as it is stored."""
    return body if isinstance(body, bytes) else encode(body)


def body_fields(body: Body) -> Fields:
    """Return the fields of an object, to merge them into another."""
    return fields(body, "a stored object") if isinstance(body, bytes) else body


class Snowflakes(list[str]):
    """Many ids, validated and encoded once, however many names and members they become."""

    __slots__ = ("texts",)

    def __init__(self, ids: list[str]) -> None:
        super().__init__(ids)
        self.texts = SnowflakeText().render_all(self)

    @classmethod
    def of(cls, ids: list[str]) -> Snowflakes:
        """Return the same list if its ids have been validated already."""
        return ids if isinstance(ids, cls) else cls(ids)


class JsonObject(Codec[dict[str, Any]]):
    """A JSON object; bytes of one are stored as they are, so what was received is not encoded again."""

    expected = "a JSON object"
    python_type = dict
    quick_decode = staticmethod(decode_object)
    alike = Json(dict[str, Any])
    samples = ({}, {"id": "151120006600001", "roles": [], "nick": None})

    def encode(self, value: dict[str, Any] | bytes) -> bytes:
        if type(value) is bytes:
            return value
        if not isinstance(value, dict):
            raise self.refusal(value)
        try:
            return encode(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise self.refusal(value, error) from error

    def encode_many(self, values: Sequence[dict[str, Any] | bytes]) -> list[bytes]:
        if set(map(type, values)) == {bytes}:
            return list(cast("Sequence[bytes]", values))
        return [self.encode(value) for value in values]

    def decode(self, data: bytes) -> dict[str, Any]:
        try:
            return decode_object(data)
        except NOT_AN_OBJECT as error:
            raise self.refusal(data, error) from error


Document: TypeAlias = Annotated[dict[str, Any], JsonObject()]


def excerpt(found: object, limit: int = 80) -> str:
    """Return the beginning of a value for a message."""
    text = repr(found[:limit] if isinstance(found, bytes | str) else found)
    return text if len(text) <= limit else f"{text[:limit]}…"
