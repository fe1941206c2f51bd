"""The lines of an export: a header, one line for each key, and a last line that says how many there are.

Stored bytes are text where they are UTF-8, else `{"base64": …}`. They are what an import writes, so a round
trip is exact; the decoded variables and value beside them are for people, and an import compares them.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import msgspec

from keywright.errors import UsageError
from keywright.keyspace import Key
from keywright.keyspace.layouts import pairs
from keywright.tools.transfer.stored import GroupState, PendingState, StoredKey, StreamState, number_of

__all__ = [
    "FORMAT",
    "LONGEST_LINE",
    "FileEnd",
    "FileHeader",
    "KeyLine",
    "LineError",
    "as_bytes",
    "as_item",
    "encode_line",
    "line_of",
    "parse_line",
    "stored_of",
]

FORMAT = 1
LONGEST_LINE = 128 << 20
"""Bytes of a line. An export leaves out keys that would need more."""

# Text that JSON would make longer than base64 does, or that an editor would not keep.
_AWKWARD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_ID = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")


ABSENT = msgspec.Raw()
"""Members of a line that are left out: encoders know a default by its identity."""


class LineError(UsageError):
    """A line of an export that cannot be imported; `reason` says why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Base64(msgspec.Struct, forbid_unknown_fields=True):
    """Bytes that are not text."""

    base64: bytes


Item = str | Base64


class PendingLine(msgspec.Struct, forbid_unknown_fields=True):
    """An entry that a consumer has not acknowledged."""

    id: str
    consumer: Item
    delivered_at_ms: int
    deliveries: int


class GroupLine(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A consumer group."""

    name: Item
    last_id: str
    entries_read: int | None = None
    consumers: list[Item] = []
    pending: list[PendingLine] = []


class StreamLine(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The state of a stream beside its entries."""

    last_id: str
    added: int | None = None
    max_deleted_id: str | None = None
    groups: list[GroupLine] = []


class FileHeader(msgspec.Struct, forbid_unknown_fields=True):
    """The first line of an export."""

    keywright: str
    format: int
    model: str
    made_at: str
    leads: dict[str, str]
    """The beginning of all names of each keyspace, to which sealed values are bound."""
    with_secrets: bool = False


class KeyLine(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One key. `name` is without the prefix and version; `expires_at_ms` is the time of the epoch."""

    keyspace: str
    template: str
    name: Item
    type: str
    stored: msgspec.Raw = ABSENT
    variables: msgspec.Raw = ABSENT
    value: msgspec.Raw = ABSENT
    expires_at_ms: int | None = None
    fields_expire_at_ms: list[tuple[Item, int]] = []
    stream: StreamLine | None = None
    dump: bytes | None = None


class FileEnd(msgspec.Struct, forbid_unknown_fields=True):
    """The last line, without which an export is not complete."""

    keys: int
    left_out: dict[str, int] = {}


_TYPES: dict[str, Any] = {
    "string": Item,
    "ReJSON-RL": Item,
    "hash": list[tuple[Item, Item]],
    "set": list[Item],
    "list": list[Item],
    "zset": list[tuple[Item, str]],
    "stream": list[tuple[str, list[Item]]],
}
_encoder = msgspec.json.Encoder()
_decoders = {name: msgspec.json.Decoder(kind) for name, kind in _TYPES.items()}
_lines = msgspec.json.Decoder(KeyLine)


def encode_line(line: msgspec.Struct) -> bytes:
    return _encoder.encode(line) + b"\n"


def parse_line(data: bytes) -> KeyLine:
    """Return the line of a key. Raise LineError if it is malformed."""
    try:
        return _lines.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise LineError(f"it is not a line of an export: {_reason(error)}") from error


def as_item(data: bytes) -> Item:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return Base64(data)
    return Base64(data) if _AWKWARD.search(text) else text


def as_bytes(item: Item) -> bytes:
    return item.base64 if isinstance(item, Base64) else item.encode()


def line_of(key: Key, found: StoredKey, *, variables: Any, value: Any = msgspec.UNSET) -> KeyLine:
    """Return the line of a key in its stored form; the value is left out if it is not given."""
    declared = key.declaration
    return KeyLine(
        declared.space.name,
        declared.template.source,
        as_item(bytes(key)),
        key.redis_type,
        stored=ABSENT if found.dump is not None else _raw(_shown(key.redis_type, found.stored)),
        variables=_raw(variables),
        value=ABSENT if value is msgspec.UNSET else _raw(value),
        expires_at_ms=found.expires_at_ms,
        fields_expire_at_ms=[(as_item(field), moment) for field, moment in found.fields_expire_at_ms],
        stream=None if found.stream is None else _shown_stream(found.stream),
        dump=found.dump,
    )


def stored_of(line: KeyLine) -> StoredKey:
    """Return the stored form of a line. Raise LineError if it has another form than its type."""
    fields = [(as_bytes(field), moment) for field, moment in line.fields_expire_at_ms]
    if (line.dump is not None) == bool(bytes(line.stored)):
        raise LineError("it has neither 'stored' nor 'dump', or both")
    if (line.stream is not None) != (line.type == "stream" and line.dump is None):
        raise LineError("'stream' is for streams, which need it")
    if fields and line.type != "hash":
        raise LineError("'fields_expire_at_ms' is for hashes")
    if line.dump is not None:
        return StoredKey(None, line.expires_at_ms, dump=line.dump)
    decoder = _decoders.get(line.type)
    if decoder is None:
        raise LineError(f"no keys of type {line.type!r} are imported")
    try:
        read = decoder.decode(line.stored)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise LineError(f"'stored' is not the content of a {line.type}: {_reason(error)}") from error
    stored = _stored(line.type, read)
    if not stored and line.type not in ("string", "stream"):
        raise LineError(f"a {line.type} without entries is not stored")
    if not {field for field, _ in fields} <= set(stored[::2] if fields else ()):
        raise LineError("'fields_expire_at_ms' names a field that the hash does not have")
    stream = None if line.stream is None else _stream(line.stream)
    if stream is not None:
        _check_order(stored, stream)
    return StoredKey(stored, line.expires_at_ms, fields, stream)


def _raw(data: Any) -> msgspec.Raw:
    return msgspec.Raw(_encoder.encode(data))


def _shown(redis_type: str, stored: Any) -> Any:
    if redis_type in ("string", "ReJSON-RL"):
        return as_item(stored)
    if redis_type == "hash":
        return [(as_item(field), as_item(value)) for field, value in pairs(stored)]
    if redis_type == "zset":
        return [(as_item(member), score.decode()) for member, score in pairs(stored)]
    if redis_type == "stream":
        return [(entry.decode(), list(map(as_item, flat))) for entry, flat in stored]
    return list(map(as_item, stored))


def _stored(redis_type: str, read: Any) -> Any:
    if redis_type in ("string", "ReJSON-RL"):
        return as_bytes(read)
    if redis_type == "stream":
        return [[_id(entry), list(map(as_bytes, flat))] for entry, flat in read]
    if redis_type == "hash":
        flat = [as_bytes(word) for pair in read for word in pair]
        _distinct(flat[::2])
        return flat
    if redis_type == "zset":
        _distinct([as_bytes(member) for member, _ in read])
        return [word for member, score in read for word in (as_bytes(member), _score(score))]
    found = list(map(as_bytes, read))
    if redis_type == "set":
        _distinct(found)
    return found


def _distinct(names: list[bytes]) -> None:
    if len(set(names)) != len(names):
        raise LineError("'stored' has one entry twice")


def _score(text: str) -> bytes:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if number != number or not text.isascii() or len(text) > 40:
        raise LineError("a score is not a number")
    return text.encode()


def _id(text: str) -> bytes:
    if not _ID.fullmatch(text) or max(map(int, text.split("-"))) >= 1 << 64:
        raise LineError("an entry id is not two numbers, as in 1526919030474-0")
    return text.encode()


def _check_order(stored: list[Any], state: StreamState) -> None:
    numbers = [number_of(entry) for entry, _ in stored]
    if any(one >= next_one for one, next_one in itertools.pairwise(numbers)) or (0, 0) in numbers:
        raise LineError("the ids of the entries do not ascend")
    if any(not flat or len(flat) % 2 for _, flat in stored):
        raise LineError("an entry has a field without a value")
    if numbers and number_of(state.last_id) < numbers[-1]:
        raise LineError("'last_id' is before the last entry")
    if len({group.name for group in state.groups}) != len(state.groups):
        raise LineError("it has one consumer group twice")


def _shown_stream(state: StreamState) -> StreamLine:
    groups = [
        GroupLine(
            as_item(group.name),
            group.last_id.decode(),
            group.entries_read,
            list(map(as_item, group.consumers)),
            [
                PendingLine(each.id.decode(), as_item(each.consumer), each.delivered_at_ms, each.deliveries)
                for each in group.pending
            ],
        )
        for group in state.groups
    ]
    deleted = None if state.max_deleted_id is None else state.max_deleted_id.decode()
    return StreamLine(state.last_id.decode(), state.added, deleted, groups)


def _stream(line: StreamLine) -> StreamState:
    groups = [
        GroupState(
            as_bytes(group.name),
            _id(group.last_id),
            group.entries_read,
            list(map(as_bytes, group.consumers)),
            [
                PendingState(_id(each.id), as_bytes(each.consumer), each.delivered_at_ms, each.deliveries)
                for each in group.pending
            ],
        )
        for group in line.groups
    ]
    deleted = None if line.max_deleted_id is None else _id(line.max_deleted_id)
    return StreamState(_id(line.last_id), line.added, deleted, groups)


def _reason(error: Exception) -> str:
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)[:200]
