"""The entries of one collection: read in pages, found by name, counted, whatever its size.

A small collection is decoded once and kept for a while. Of a large one a page at a time is decoded, and its
entries are found with a table on disk, which is made when the first of them is looked for.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import chain, islice
from typing import Any, Protocol, TypeAlias

from keywright.tools.rdb.cursors import Cursor
from keywright.tools.rdb.files import DumpFile
from keywright.tools.rdb.tables import PlaceTable
from keywright.tools.rdb.types import EXPIRING, REDIS_TYPES, Type
from keywright.tools.rdb.values import ENTRIES, entry_count, parts, table_start

__all__ = ["Collection", "LargeCollection", "SmallCollection", "width_of"]

Identity: TypeAlias = tuple[int, int]

LARGEST_WHOLE = 64 << 20
LARGEST_PAGE = 8 << 20


def width_of(kind: int) -> int:
    """Return how many items of the stored list one entry takes."""
    return 2 if REDIS_TYPES.get(kind) in ("hash", "zset") else 1


class Collection(Protocol):
    """The entries of a collection; `start` counts entries."""

    @property
    def count(self) -> int: ...

    def whole(self) -> list[Any]: ...

    def page(self, start: int, count: int) -> tuple[int, list[Any]]:
        """Return where the next page starts, 0 at the end, and the stored form of this one."""
        ...

    def first(self, count: int) -> list[Any]:
        """Return the first entries in their order."""
        ...

    def find(self, name: bytes) -> tuple[bytes, int] | None:
        """Return the second item of an entry, and the moment of its expiry, 0 for none."""
        ...

    def entries(self) -> Iterator[list[Any]]:
        """Yield the entries one by one, each in its stored form."""
        ...

    def moment(self, name: bytes) -> int:
        """Return the moment at which an entry expires, 0 for none."""
        ...

    def between(self, low: Identity, high: Identity, count: int) -> list[Any]:
        """Return the first entries of a stream whose ids are in a range."""
        ...

    def close(self) -> None: ...


class SmallCollection:
    """A decoded collection."""

    def __init__(self, kind: int, cursor: Cursor, now_ms: int) -> None:
        self._expiries: dict[bytes, int] = {}
        self._width = width_of(kind)
        self._items: list[Any] = list(chain.from_iterable(parts(kind, cursor, now_ms, self._expiries)))
        if self._width == 2 and len(self._items) & 1:
            raise cursor.malformed("a collection has an entry without its second item")
        if kind in (Type.ZSET, Type.ZSET_2):
            self._items = list(chain.from_iterable(sorted(_pairs(self._items), key=_rank)))

    @property
    def count(self) -> int:
        return len(self._items) // self._width

    @property
    def memory(self) -> int:
        """Return about how much memory it takes."""
        return sum(len(item) + 48 if isinstance(item, bytes) else _entry_bytes(item) for item in self._items)

    def whole(self) -> list[Any]:
        return self._items

    def page(self, start: int, count: int) -> tuple[int, list[Any]]:
        if not start and len(self._items) <= count * self._width:
            return 0, self._items
        end = (start + count) * self._width
        return start + count if end < len(self._items) else 0, self._items[start * self._width : end]

    def first(self, count: int) -> list[Any]:
        return self._items[: count * self._width]

    def find(self, name: bytes) -> tuple[bytes, int] | None:
        found = self._by_name.get(name)
        return None if found is None else (found, self._expiries.get(name, 0))

    def entries(self) -> Iterator[list[Any]]:
        width = self._width
        return (self._items[place : place + width] for place in range(0, len(self._items), width))

    def moment(self, name: bytes) -> int:
        return self._expiries.get(name, 0)

    def between(self, low: Identity, high: Identity, count: int) -> list[Any]:
        start = bisect_left(self._items, low, key=_identity_of)
        end = bisect_right(self._items, high, key=_identity_of)
        return self._items[start : min(end, start + count)]

    def close(self) -> None:
        pass

    @cached_property
    def _by_name(self) -> dict[bytes, bytes]:
        items = self._items
        return dict(_pairs(items)) if self._width == 2 else dict(zip(items, items, strict=True))


class LargeCollection:
    """A collection in the file, of which a page at a time is in memory."""

    def __init__(self, kind: int, file: DumpFile, start: int, end: int, now_ms: int) -> None:
        self._kind = kind
        self._file = file
        self._start = start
        self._end = end
        self._now_ms = now_ms
        self._width = width_of(kind)
        self._ahead: tuple[int, Iterator[list[Any]]] | None = None
        self._ahead_of_id: tuple[Identity, Iterator[list[Any]]] | None = None
        self._count: int | None = None
        self._table: PlaceTable | None = None

    @property
    def count(self) -> int:
        if self._count is None:
            self._count = entry_count(self._kind, self._cursor(), self._now_ms)
        return self._count

    def whole(self) -> list[Any]:
        if self._end - self._start > LARGEST_WHOLE:
            raise self._file.malformed(
                self._start, f"a key is larger than {LARGEST_WHOLE >> 20} MiB and would be needed as a whole"
            )
        if self._kind in (Type.ZSET, Type.ZSET_2):
            return self.first(self.count)
        return list(chain.from_iterable(self._parts()))

    def page(self, start: int, count: int) -> tuple[int, list[Any]]:
        if self._ahead is not None and self._ahead[0] == start:
            entries = self._ahead[1]
        else:
            entries = self.entries()
            for _ in islice(entries, start):
                pass
        found: list[Any] = []
        size = 0
        for entry in islice(entries, count):
            found += entry
            start += 1
            size += sum(map(len, entry))
            if size > LARGEST_PAGE:
                break
        following = next(entries, None)
        if following is None:
            self._ahead = None
            return 0, found
        self._ahead = start, chain([following], entries)
        return start, found

    def first(self, count: int) -> list[Any]:
        if self._kind in (Type.ZSET, Type.ZSET_2):
            lowest = heapq.nsmallest(count, self.entries(), key=_rank)
            return list(chain.from_iterable(lowest))
        return list(chain.from_iterable(islice(self.entries(), count)))

    def find(self, name: bytes) -> tuple[bytes, int] | None:
        if self._kind not in ENTRIES:
            return self._searched(name)
        if self._table is None:
            self._table = PlaceTable(self._places, min(self.count, (self._end - self._start) // 2))
        for place in self._table.places(name):
            cursor = Cursor.on(self._file, self._start + place)
            flat, moment = ENTRIES[self._kind](cursor, self._soonest)
            if flat[0] == name:
                return None if moment and moment <= self._now_ms else (flat[-1], moment)
        return None

    def between(self, low: Identity, high: Identity, count: int) -> list[Any]:
        if self._ahead_of_id is not None and self._ahead_of_id[0] == low:
            entries = self._ahead_of_id[1]
        else:
            entries = self.entries()
        found: list[Any] = []
        size = 0
        for (entry,) in entries:
            identity = _identity_of(entry)
            if identity > high:
                break
            if identity >= low:
                found.append(entry)
                size += sum(map(len, entry[1]))
                if size > LARGEST_WHOLE:
                    raise self._file.malformed(self._start, "a range of a stream is too large to be read")
                if len(found) == count:
                    self._ahead_of_id = (identity[0], identity[1] + 1), entries
                    break
        return found

    def close(self) -> None:
        if self._table is not None:
            self._table.close()
            self._table = None

    def moment(self, name: bytes) -> int:
        if self._kind not in EXPIRING:
            return 0
        found = self.find(name)
        return 0 if found is None else found[1]

    def _searched(self, name: bytes) -> tuple[bytes, int] | None:
        """Find an entry of a packed collection, which has few for its size."""
        for entry in self.entries():
            if entry[0] == name:
                return entry[-1], 0
        return None

    @cached_property
    def _soonest(self) -> int:
        return table_start(self._kind, self._cursor())[1]

    def _places(self) -> Iterator[tuple[bytes, int]]:
        cursor = self._cursor()
        count, soonest = table_start(self._kind, cursor)
        read = ENTRIES[self._kind]
        for _ in range(count):
            place = cursor.offset - self._start
            yield read(cursor, soonest)[0][0], place

    def entries(self) -> Iterator[list[Any]]:
        width = self._width
        for part in self._parts():
            if len(part) == width:
                yield part
            else:
                yield from (part[place : place + width] for place in range(0, len(part), width))

    def _parts(self) -> Iterator[list[Any]]:
        return parts(self._kind, self._cursor(), self._now_ms)

    def _cursor(self) -> Cursor:
        return Cursor.on(self._file, self._start)


def _entry_bytes(entry: list[Any]) -> int:
    return 200 + sum(len(part) + 48 for part in entry[1])


def _pairs(items: list[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(items[::2], items[1::2], strict=True)


def _identity_of(entry: Any) -> Identity:
    milliseconds, _, number = entry[0].partition(b"-")
    return int(milliseconds), int(number)


def _rank(entry: Any) -> tuple[float, bytes]:
    """Return the order of a sorted set."""
    return float(entry[1]), entry[0]
