"""Codecs of the registry's values, byte for byte as its Go program writes them.

The Go program encodes structs with vmihailenco/msgpack v5 and default options: a map keyed by the Go field
names in declaration order, all fields present, 64-bit integers always in nine bytes, times as the timestamp
extension, and the zero time of year 1 inside a null time. Its decoder accepts more, and so does this one: any
width of integer, missing and unknown fields, nil for a zero value, a struct as an array, field names as
binary (docs/resolutions.md#repository-encoding).

Go has nanoseconds, PostgreSQL and Python microseconds: a time is rounded to the nearest microsecond, as
PostgreSQL does, so times that came from the database are exact. Valid times after the year 9999 are refused.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeAlias

import msgspec

from keywright import Codec
from keywright_registry.repository import Repository

__all__ = ["GoInt64", "GoRepository", "LogPosition"]

ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)
# MessagePack has integers up to 2**64 - 1, Go's int64 has not; the lower bound is that of MessagePack.
Int64 = Annotated[int, msgspec.Meta(le=2**63 - 1)]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]

_pack = msgspec.msgpack.Encoder().encode
_ids = struct.Struct(">5sq13sq").pack
_int64 = struct.Struct(">cq").pack

_NO_PARENT = b"\xa8ParentID\x82\xa5Int64" + _int64(b"\xd3", 0) + b"\xa5Valid\xc2"
_PARENT = b"\xa8ParentID\x82\xa5Int64"
_NO_TIME = b"\x82\xa4Time" + _pack(ZERO_TIME) + b"\xa5Valid\xc2"
_TIME = b"\x82\xa4Time"
_VALID = b"\xa5Valid\xc3"
_NO_SIZE = b"\xa4Size\xc0"


def encode_repository(repository: Repository) -> bytes:
    """Return the bytes that Go writes. May raise any exception for fields of the wrong type."""
    parent, size = repository.parent_id, repository.size
    return b"".join(
        (
            _ids(b"\x8a\xa2ID\xd3", repository.id, b"\xabNamespaceID\xd3", repository.namespace_id),
            b"\xa4Name",
            _pack(repository.name),
            b"\xa4Path",
            _pack(repository.path),
            _NO_PARENT if parent is None else _PARENT + _int64(b"\xd3", parent) + _VALID,
            b"\xa9CreatedAt",
            _time(repository.created_at),
            b"\xa9UpdatedAt",
            _null_time(repository.updated_at),
            b"\xa9DeletedAt",
            _null_time(repository.deleted_at),
            _NO_SIZE if size is None else b"\xa4Size" + _int64(b"\xd3", size),
            b"\xafLastPublishedAt",
            _null_time(repository.last_published_at),
        )
    )


def _time(moment: datetime) -> bytes:
    if moment.tzinfo is None:
        raise ValueError("a time without a time zone is ambiguous")
    return _pack(moment)


def _null_time(moment: datetime | None) -> bytes:
    return _NO_TIME if moment is None else _TIME + _time(moment) + _VALID


class NullInt64(msgspec.Struct, gc=False, frozen=True, rename={"number": "Int64", "valid": "Valid"}):
    """A nullable integer (`sql.NullInt64`)."""

    number: Int64 = 0
    """The integer; ignored unless it is valid."""
    valid: bool = False
    """Whether there is an integer."""


class NullTime(msgspec.Struct, gc=False, frozen=True, rename={"time": "Time", "valid": "Valid"}):
    """A nullable time (`sql.NullTime`)."""

    time: Moment = ZERO_TIME
    """The time, as a MessagePack timestamp; ignored unless it is valid."""
    valid: bool = False
    """Whether there is a time."""


_GO_NAMES = {
    "id": "ID",
    "namespace": "NamespaceID",
    "name": "Name",
    "path": "Path",
    "parent": "ParentID",
    "created": "CreatedAt",
    "updated": "UpdatedAt",
    "deleted": "DeletedAt",
    "size": "Size",
    "published": "LastPublishedAt",
}


class StoredRepository(msgspec.Struct, gc=False, rename=_GO_NAMES):
    """The Go struct `Repository`. All fields are written; a missing one is read as its zero value."""

    id: Int64 = 0
    """The primary key in the metadata database."""
    namespace: Int64 = 0
    """The id of the top-level namespace."""
    name: str = ""
    """The last segment of the path."""
    path: str = ""
    """The full path. Compare it with the requested one."""
    parent: NullInt64 = NullInt64()
    """The id of the repository one segment above."""
    created: Moment = ZERO_TIME
    """The time of creation, as a MessagePack timestamp."""
    updated: NullTime = NullTime()
    """The time of the last change."""
    deleted: NullTime = NullTime()
    """The time of deletion."""
    size: Int64 | None = None
    """The size in bytes; null means unknown or invalidated, 0 is a real size."""
    published: NullTime = NullTime()
    """The time of the last push."""


_decode_stored = msgspec.msgpack.Decoder(StoredRepository).decode


def decode_repository(data: bytes) -> Repository:
    """Return the repository that Go wrote, in any version of the struct.

    Raise any exception for the other forms that Go's decoder accepts; `decode_leniently` reads those.
    """
    stored = _decode_stored(data)
    parent, updated = stored.parent, stored.updated
    deleted, published = stored.deleted, stored.published
    return Repository(
        id=stored.id,
        namespace_id=stored.namespace,
        name=stored.name,
        path=stored.path,
        parent_id=parent.number if parent.valid else None,
        created_at=stored.created,
        updated_at=updated.time if updated.valid else None,
        deleted_at=deleted.time if deleted.valid else None,
        size=stored.size,
        last_published_at=published.time if published.valid else None,
    )


REMEMBERED = 8192
LONGEST_REMEMBERED = 1024


class Remembered(dict[bytes | None, Repository | None]):
    """A cache of decoded repositories by their bytes; None stands for itself.

    A registry reads the same few repositories over and over, mostly unchanged, and a Repository is immutable,
    so the object of the same bytes can be returned again. A dict with `__missing__` costs no Python call for
    a hit.
    """

    def __missing__(self, data: bytes | None) -> Repository | None:
        if data is None:
            return None
        repository = decode_repository(data)
        if len(data) <= LONGEST_REMEMBERED:
            if len(self) >= REMEMBERED:
                self.clear()
            self[data] = repository
        return repository


remembered = Remembered()
_decode: Callable[[bytes], Repository] = remembered.__getitem__  # type: ignore[assignment]  # of bytes, never None


_any_struct = msgspec.msgpack.Decoder(dict[object, msgspec.Raw] | list[msgspec.Raw] | None).decode
_any_value = msgspec.msgpack.Decoder().decode
_any_int = msgspec.msgpack.Decoder(Int64 | None).decode
_any_bool = msgspec.msgpack.Decoder(bool | None).decode
_any_time = msgspec.msgpack.Decoder(Moment | None).decode

_REPOSITORY = tuple(_GO_NAMES.values())


def decode_leniently(data: bytes) -> Repository:
    """Return the repository of any form that Go's decoder accepts. Slower: field by field."""
    given = _members(data, _REPOSITORY)
    return Repository(
        id=_number(given.get("ID")),
        namespace_id=_number(given.get("NamespaceID")),
        name=_text(given.get("Name")),
        path=_text(given.get("Path")),
        parent_id=_if_valid(given.get("ParentID"), "Int64", _number),
        created_at=_moment(given.get("CreatedAt")),
        updated_at=_if_valid(given.get("UpdatedAt"), "Time", _moment),
        deleted_at=_if_valid(given.get("DeletedAt"), "Time", _moment),
        size=_any_int(given["Size"]) if "Size" in given else None,
        last_published_at=_if_valid(given.get("LastPublishedAt"), "Time", _moment),
    )


Field: TypeAlias = msgspec.Raw | None


def _members(data: bytes | msgspec.Raw, names: Sequence[str]) -> Mapping[str, msgspec.Raw]:
    """Return the fields of a struct that is a map, an array of all its fields, or nil."""
    found = _any_struct(data)
    if isinstance(found, dict):
        return {name.decode() if isinstance(name, bytes) else str(name): raw for name, raw in found.items()}
    if found and len(found) != len(names):
        raise ValueError(f"an array of {len(found)} for a struct of {len(names)} fields")
    return dict(zip(names, found or (), strict=False))


def _if_valid(field: Field, name: str, read: Callable[[Field], Any]) -> Any:
    """Return the content of a nullable field, which is not decoded unless it is valid."""
    if field is None:
        return None
    given = _members(field, (name, "Valid"))
    return read(given.get(name)) if "Valid" in given and _any_bool(given["Valid"]) else None


def _number(field: Field) -> int:
    return 0 if field is None else _any_int(field) or 0


def _moment(field: Field) -> datetime:
    return ZERO_TIME if field is None else _any_time(field) or ZERO_TIME


def _text(field: Field) -> str:
    found = "" if field is None else _any_value(field)
    if isinstance(found, bytes):
        return found.decode()
    if found is None or isinstance(found, str):
        return found or ""
    raise ValueError("not a text")


class GoRepository(Codec[Repository]):
    """A repository as MessagePack of the Go struct, about 250 bytes."""

    expected = "MessagePack of a registry Repository"
    python_type = Repository
    layout = StoredRepository
    quick_encode = staticmethod(encode_repository)
    quick_decode = staticmethod(_decode)
    samples = (
        Repository(id=1, namespace_id=1, name="a", path="a", created_at=datetime(2022, 4, 15, tzinfo=UTC)),
        Repository(
            id=2**63 - 1,
            namespace_id=-(2**63),
            name="é" * 20,
            path="b/" + "é" * 200,
            parent_id=0,
            created_at=ZERO_TIME,
            updated_at=datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            deleted_at=datetime(2106, 2, 7, 6, 28, 16, tzinfo=UTC),
            size=0,
            last_published_at=datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
        ),
    )

    def encode(self, value: Repository) -> bytes:
        try:
            return encode_repository(value)
        except struct.error as exc:
            raise self.refusal(value, "an integer of more than 64 bits") from exc
        except Exception as exc:
            raise self.refusal(value, exc) from exc

    def decode(self, data: bytes) -> Repository:
        try:
            return _decode(data)
        except Exception:  # noqa: BLE001  # another form that Go would read, or malformed
            pass
        try:
            return decode_leniently(data)
        except Exception as exc:
            raise self.refusal(data, exc) from exc

    def decode_many(self, replies: Sequence[bytes | None]) -> list[Repository | None]:
        try:
            return list(map(remembered.__getitem__, replies))
        except Exception:  # noqa: BLE001  # one by one, the error names the malformed value
            return super().decode_many(replies)


class GoInt64(Codec[int]):
    """One integer in MessagePack, written in nine bytes; any width is read."""

    expected = "MessagePack of a signed 64-bit integer"
    python_type = int
    samples = (0, 1, -1, 2**63 - 1, -(2**63))

    def encode(self, value: int) -> bytes:
        try:
            return _int64(b"\xd3", value)
        except struct.error as exc:
            raise self.refusal(value) from exc

    def decode(self, data: bytes) -> int:
        try:
            return _any_int(data) or 0
        except Exception as exc:
            raise self.refusal(data, exc) from exc


class LogPosition(Codec[int]):
    """A position in PostgreSQL's log (LSN): 64 bits, written as two halves in hexadecimal, `16/B374D848`."""

    expected = "a PostgreSQL log position such as 16/B374D848"
    python_type = int
    samples = (0, 1, 2**32, 0x16_B374D848, 2**53 + 1, 2**64 - 1)

    def encode(self, value: int) -> bytes:
        if isinstance(value, int) and 0 <= value < 2**64:
            return b"%X/%X" % (value >> 32, value & 0xFFFFFFFF)
        raise self.refusal(value)

    def decode(self, data: bytes) -> int:
        found = _LOG_POSITION(data)
        if found is None:
            raise self.refusal(data)
        return int(found[1], 16) << 32 | int(found[2], 16)


_LOG_POSITION = re.compile(rb"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})").fullmatch
