"""Streams: the entries of a node, and what follows them, as consumer groups and their lag."""

from __future__ import annotations

from struct import Struct
from typing import Any, NamedTuple, TypeAlias

from keywright.tools.rdb.cursors import Cursor
from keywright.tools.rdb.types import Type

__all__ = ["StreamFacts", "StreamGroup", "stream_facts", "stream_node"]

Identity: TypeAlias = tuple[int, int]

_IDENTITY = Struct(">QQ").unpack
_UNKNOWN = 2**64 - 1
_DELETED, _SAME_FIELDS = 1, 2


def stream_node(key: bytes, items: list[bytes]) -> list[list[Any]]:
    """Return the entries of a node, each as its id and a flat list of fields and values.

    The first entry has the fields that most entries have; ids are stored as differences to that of the node.
    """
    if len(key) != 16:
        raise ValueError("a node of a stream has no id")
    milliseconds, number = _IDENTITY(key)
    width = int(items[2])
    common = items[3 : 3 + width]
    if width < 0 or len(common) != width:
        raise ValueError("a node of a stream has fewer fields than it says")
    found = []
    place, end = width + 4, len(items)
    while place < end:
        flags = int(items[place])
        identity = b"%d-%d" % (milliseconds + int(items[place + 1]), number + int(items[place + 2]))
        place += 3
        if flags & _SAME_FIELDS:
            values = items[place : place + width]
            if len(values) != width:
                raise ValueError("an entry of a stream has fewer values than fields")
            flat = [part for pair in zip(common, values, strict=True) for part in pair]
            place += width
        else:
            size = 2 * int(items[place])
            place += 1
            flat = items[place : place + size]
            if size < 0 or len(flat) != size:
                raise ValueError("an entry of a stream has fewer fields than it says")
            place += size
        place += 1  # how many items the entry takes, for walks backwards
        if not flags & _DELETED:
            found.append([identity, flat])
    return found


class StreamGroup(NamedTuple):
    """A consumer group; `read` is None where the server did not know it."""

    name: bytes
    last: Identity
    read: int | None
    pending: int
    consumers: int


class StreamFacts(NamedTuple):
    """What a stream has besides its entries; `added` is None in the form of servers before 7.0."""

    length: int
    last: Identity
    first: Identity
    deleted: Identity
    added: int | None
    groups: list[StreamGroup]

    def lag(self, group: StreamGroup) -> int | None:
        """Return how many entries a group has not read; None if that cannot be known."""
        if not self.added:
            return 0 if self.added == 0 else None
        if group.read is not None and not self._has_deleted_after(group.last):
            return self.added - group.read
        read = self._read_at(group.last)
        return None if read is None else self.added - read

    def _has_deleted_after(self, identity: Identity) -> bool:
        return bool(self.length) and self.deleted != (0, 0) and identity <= self.deleted

    def _read_at(self, identity: Identity) -> int | None:
        """Return how many entries were added up to an id, where the ends of the stream determine it."""
        assert self.added is not None
        if not self.length and identity <= self.last:
            return self.added
        if identity != (0, 0) and identity < self.deleted:
            return None
        if identity == self.last:
            return self.added
        if identity > self.last:
            return None
        if self.deleted == (0, 0) or self.deleted < self.first:
            if identity < self.first:
                return self.added - self.length
            if identity == self.first:
                return self.added - self.length + 1
        return None


def stream_facts(kind: int, cursor: Cursor, most_groups: int = 100_000) -> StreamFacts:
    """Return what follows the entries of a stream."""
    cursor.skip_strings(2 * cursor.length())
    is_first_form = kind == Type.STREAM_1
    length, last = cursor.length(), _identity(cursor)
    first = deleted = (0, 0)
    added = None
    if not is_first_form:
        first, deleted, added = _identity(cursor), _identity(cursor), cursor.length()
    groups: list[StreamGroup] = []
    for _ in range(cursor.length()):
        name, place = cursor.string(1 << 20), _identity(cursor)
        read = None if is_first_form else cursor.length()
        pending = cursor.length()
        for _ in range(pending):
            cursor.skip(24)
            cursor.length()
        consumers = cursor.length()
        for _ in range(consumers):
            cursor.skip_string()
            cursor.skip(16 if kind == Type.STREAM_3 else 8)
            cursor.skip(16 * cursor.length())
        if len(groups) < most_groups:
            groups.append(StreamGroup(name, place, None if read == _UNKNOWN else read, pending, consumers))
    return StreamFacts(length, last, first, deleted, added, groups)


def _identity(cursor: Cursor) -> Identity:
    return cursor.length(), cursor.length()
