"""The keys of one database of a dump: pages of names, lookups of single ones, and their values.

Keys of the latest pages are remembered, so what is read next about them costs no search. Another name is
found with a table on disk, which is made when the first one is looked for: one pass over the file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from keywright.tools.rdb.cursors import Cursor, string_at, string_size
from keywright.tools.rdb.entries import Collection, LargeCollection, SmallCollection
from keywright.tools.rdb.files import DumpFile
from keywright.tools.rdb.frames import Frames, Stored
from keywright.tools.rdb.streams import StreamFacts, stream_facts
from keywright.tools.rdb.tables import LARGEST_FILE, PlaceTable
from keywright.tools.rdb.types import REDIS_TYPES, Type, module_name

__all__ = ["StoredKeys"]

MOST_TOGETHER = 1 << 30
"""Bytes of strings that are read together."""
MOST_PAGES = 8
MOST_FOUND = 2048
MOST_DECODED = 256
MOST_DECODED_BYTES = 32 << 20
SMALL = 1 << 20
LOOKUP_WINDOW = 1 << 12
NO_DATABASE = -1


class StoredKeys:
    """The keys of one database as they were when the dump was taken."""

    def __init__(self, file: DumpFile, number: int, now_ms: int) -> None:
        self.file = file
        self.number = number
        self.now_ms = now_ms
        self.frames = Frames(file)
        self._pages: deque[dict[bytes, Stored]] = deque()
        self._recent: dict[bytes, Stored] = {}
        self._found: dict[bytes, Stored | None] = {}
        self._table: PlaceTable | None = None
        self._decoded: dict[int, Collection] = {}
        self._decoded_bytes = 0

    def page(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """Return the next cursor, 0 at the end, and names. A cursor stays valid with the file."""
        place, number = (cursor >> 32, cursor & 0xFFFFFFFF) if cursor else (self.frames.start, 0)
        place, number, found = self.frames.page(place, number, self.number, count, self.now_ms)
        self._remember(found)
        return (place << 32 | number if place else 0), list(found)

    def find(self, name: bytes) -> Stored | None:
        """Return a key, or None."""
        stored = self._recent.get(name)
        if stored is not None:
            return stored
        if name not in self._found:
            if len(self._found) >= MOST_FOUND:
                self._found.clear()
            self._found[name] = self._looked_up(name)
        return self._found[name]

    def numbers(self) -> dict[int, int]:
        """Return the databases that have keys, and about how many each has. This reads the whole file."""
        frames = Frames(self.file)
        for _ in frames.pages(NO_DATABASE, self.now_ms):
            pass
        return dict(sorted(frames.counts.items()))

    def type_of(self, stored: Stored) -> str:
        """Return the type as TYPE replies with it."""
        kind, data, start, _, _, base, _ = stored
        if kind == Type.MODULE_2:
            return module_name(self._cursor(data, start, base).length())
        return REDIS_TYPES[kind]

    def string(self, stored: Stored) -> bytes:
        _, data, start, _, _, base, _ = stored
        if data:
            try:
                return string_at(data, start)
            except ValueError as error:
                raise self.file.malformed(base + start, str(error)) from None
        return self._cursor(data, start, base).string()

    def strings(self, names: Iterable[bytes]) -> list[bytes | None]:
        """Return the values of several names, None for those that are not strings."""
        found: list[bytes | None] = []
        add, recent, find, string = found.append, self._recent, self.find, self.string
        room = MOST_TOGETHER
        for name in names:
            stored = recent.get(name) or find(name)
            if stored is None or stored[0] != Type.STRING:
                add(None)
                continue
            data, start = stored[1], stored[2]
            is_short = data and data[start] < 0x40  # as most are
            value = data[start + 1 : stored[3]] if is_short else string(stored)
            room -= len(value)
            if room < 0:
                raise self.file.malformed(stored[5] + stored[4], "the strings of a page exceed 1 GiB")
            add(value)
        return found

    def string_size(self, stored: Stored) -> int:
        _, data, start, _, _, base, _ = stored
        return string_size(self._cursor(data, start, base))

    def collection(self, stored: Stored) -> Collection:
        """Return the entries of a key that is not a string."""
        kind, data, start, end, _, base, _ = stored
        known = self._decoded.get(base + start)
        if known is not None:
            return known
        if end - start > SMALL:
            return self._keep(
                base + start, LargeCollection(kind, self.file, start, end, self.now_ms), 1 << 20
            )
        small = SmallCollection(kind, self._cursor(data, start, base), self.now_ms)
        return self._keep(base + start, small, small.memory)

    def stream_facts(self, stored: Stored) -> StreamFacts:
        kind, data, start, _, _, base, _ = stored
        return stream_facts(kind, self._cursor(data, start, base))

    def close(self) -> None:
        self._forget_decoded()
        if self._table is not None:
            self._table.close()
            self._table = None
        self.file.close()

    def _cursor(self, data: bytes, start: int, base: int) -> Cursor:
        # With the file, so that an error has a place. What a window has is not read again.
        return Cursor(data, start, base, self.file) if data else Cursor.on(self.file, start)

    def _remember(self, found: dict[bytes, Stored]) -> None:
        self._pages.append(found)
        self._recent.update(found)
        if len(self._pages) > MOST_PAGES:
            for name in self._pages.popleft():
                self._recent.pop(name, None)

    def _keep(self, place: int, collection: Collection, size: int) -> Collection:
        self._decoded_bytes += size
        if self._decoded_bytes > MOST_DECODED_BYTES or len(self._decoded) >= MOST_DECODED:
            self._forget_decoded()
            self._decoded_bytes = size
        self._decoded[place] = collection
        return collection

    def _forget_decoded(self) -> None:
        for collection in self._decoded.values():
            collection.close()
        self._decoded.clear()

    def _looked_up(self, name: bytes) -> Stored | None:
        if self._table is None:
            expected = self.frames.counts.get(self.number, 0)
            if self.file.size >= LARGEST_FILE:
                raise self.file.malformed(0, "it is larger than 4 TiB, and keys of it would be looked up")
            self._table = PlaceTable(self._places, expected)
        for place in self._table.places(name):
            _, _, found = self.frames.page(place, self.number, self.number, 1, self.now_ms, LOOKUP_WINDOW)
            if name in found:
                return found[name]
        return None

    def _places(self) -> Iterator[tuple[bytes, int]]:
        for page in Frames(self.file).pages(self.number, self.now_ms):
            for name, stored in page.items():
                yield name, stored[4] + stored[5]
