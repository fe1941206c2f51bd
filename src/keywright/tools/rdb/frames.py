"""Framing: where each key of a dump begins and ends, its type and its expiry, without decoding its value.

A page is the keys of one database from a place in the file on. Its place is enough to go on from, so nothing
is kept between two pages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from struct import Struct
from typing import TypeAlias

from keywright.tools.rdb.cursors import Cursor, length_at, string_at, string_end, strings_end
from keywright.tools.rdb.files import DumpFile
from keywright.tools.rdb.skips import skip_module, skip_value
from keywright.tools.rdb.types import SINGLE, STRINGS, Type

__all__ = ["Frames", "Stored"]

Stored: TypeAlias = tuple[int, bytes, int, int, int, int, int]
"""A key: type, window, start and end of the value, start of the key, all in the window; the window's place
in the file; and the moment of its expiry in milliseconds, 0 for none. An empty window is the file itself.
"""

PAGE_WINDOW = 1 << 20
MOST_WINDOWS = 2
"""A page ends after so many, so that what its keys refer to is bounded."""
LARGEST_KEPT = 1 << 16

_MOMENT = Struct("<q").unpack_from
_SECONDS = Struct("<i").unpack_from
FIRST_OPCODE = 243
SLOT_IMPORT, SLOT_INFO, FUNCTION_2, FUNCTION_PRE_GA, MODULE_AUX, IDLE, FREQUENCY, AUX, RESIZE = range(
    243, 252
)
MOMENT, SECONDS, SELECT, END = range(252, 256)
MOST_DATABASES = 1 << 31
AT_END = -2
"""In the place of the number of a database: there are no more keys."""


class Frames:
    """The keys of a dump, page by page."""

    def __init__(self, file: DumpFile) -> None:
        self.file = file
        self.start = file.header.end
        self.facts: dict[str, str] = {}
        """The auxiliary fields: who wrote the dump, and when."""
        self.counts: dict[int, int] = {}
        """How many keys each database has, as far as the file has been read and says so."""
        self.end: int | None = None
        """The place behind the last key and the sign of the end, once it is known."""
        self.expired = 0
        """Keys that had expired when the dump was taken, in the pages of this object."""
        self._read_facts()

    def page(
        self, offset: int, number: int, wanted: int, count: int, now_ms: int, window: int = PAGE_WINDOW
    ) -> tuple[int, int, dict[bytes, Stored]]:
        """Return the keys of one database from a place on, where database `number` is selected.

        Also return the next place, 0 at the end, and the number that is selected there. Keys that had expired
        at `now_ms` are left out.
        """
        found: dict[bytes, Stored] = {}
        place = offset
        for _ in range(MOST_WINDOWS):
            data = self.file.read(place, window)
            used, number = self._window(data, place, number, wanted, count, now_ms, found)
            if used:
                place += used
            else:  # its first key is larger than the window
                place, number = self._large(place, number, wanted, now_ms, found)
            if number == AT_END:
                self.end = place
                return 0, 0, found
            if len(found) >= count:
                break
        return place, number, found

    def _window(
        self,
        data: bytes,
        base: int,
        number: int,
        wanted: int,
        count: int,
        now_ms: int,
        found: dict[bytes, Stored],
    ) -> tuple[int, int]:
        """Add the keys that a window has as a whole. Return how much of it they take, and the number there.

        Most of the time of a walk is spent here, so the frequent forms of lengths are read in place.
        """
        valkey = self.file.header.product == "Valkey"
        single, strings, moment = SINGLE, STRINGS, _MOMENT
        limit, position, first = len(data), 0, 0
        try:
            while len(found) < count:
                first = position
                expiry = 0
                kind = data[position]
                position += 1
                if kind == MOMENT:
                    expiry = moment(data, position)[0]
                    kind = data[position + 8]
                    position += 9
                if kind >= FIRST_OPCODE:
                    cursor = Cursor(data, position, base)
                    kind, expiry, selected = self._opcodes(kind, expiry, number, cursor)
                    position = cursor.position
                    if kind == END:
                        return position, AT_END
                else:
                    selected = number
                size = data[position]
                if size < 64:
                    start = position + 1 + size
                    name = data[position + 1 : start]
                else:
                    name, start = string_at(data, position), string_end(data, position)
                position = start
                if kind in single:
                    size = data[position]
                    position = position + 1 + size if size < 64 else string_end(data, position)
                elif kind in strings:
                    size, position = length_at(data, position)
                    position = strings_end(data, position, size * strings[kind])
                else:
                    if kind == Type.HASH_METADATA_PRE_GA and valkey:
                        kind = Type.HASH_VALKEY
                    cursor = Cursor(data, position, base)
                    skip_value(kind, cursor)
                    position = cursor.position
                if position > limit:
                    break
                number = selected
                if number != wanted:
                    continue
                if expiry and expiry <= now_ms:
                    self.expired += 1
                elif position - start <= LARGEST_KEPT:
                    found[name] = (kind, data, start, position, first, base, expiry)
                else:
                    found[name] = (kind, b"", base + start, base + position, base + first, 0, expiry)
            else:
                return position, number
        except (IndexError, struct.error):
            pass  # the last key goes on behind the window
        except ValueError as error:
            raise self.file.malformed(base + first, str(error)) from None
        return first, number

    def pages(self, wanted: int, now_ms: int) -> Iterator[dict[bytes, Stored]]:
        """Yield all pages of one database."""
        place, number = self.start, 0
        while place:
            place, number, found = self.page(place, number, wanted, 1000, now_ms)
            yield found

    def _large(
        self, offset: int, number: int, wanted: int, now_ms: int, found: dict[bytes, Stored]
    ) -> tuple[int, int]:
        """Add one key that is larger than a window. Return the next place, and the number there."""
        cursor = Cursor.on(self.file, offset)
        kind, expiry, number = self._opcodes(cursor.byte(), 0, number, cursor)
        if kind == END:
            return cursor.offset, AT_END
        name = cursor.string()
        if kind == Type.HASH_METADATA_PRE_GA and self.file.header.product == "Valkey":
            kind = Type.HASH_VALKEY
        start = cursor.offset
        skip_value(kind, cursor)
        if expiry and expiry <= now_ms:
            self.expired += number == wanted
        elif number == wanted:
            found[name] = (kind, b"", start, cursor.offset, offset, 0, expiry)
        return cursor.offset, number

    def _opcodes(self, kind: int, expiry: int, number: int, cursor: Cursor) -> tuple[int, int, int]:
        """Read what stands before a key. Return its type, or END, its expiry and the selected database."""
        while kind >= FIRST_OPCODE and kind != END:
            if kind == MOMENT:
                expiry = cursor.milliseconds()
            elif kind == SECONDS:
                expiry = int(_SECONDS(cursor.take(4))[0]) * 1000
            elif kind == SELECT:
                number = cursor.length()
                if number >= MOST_DATABASES:
                    raise cursor.malformed(f"there is no database {number}")
                self.counts.setdefault(number, 0)
            else:
                self._other(kind, number, cursor)
            kind = cursor.byte()
        return kind, expiry, number

    def _other(self, kind: int, number: int, cursor: Cursor) -> None:
        """Skip what is about the file, or only about the memory of a server."""
        if kind == RESIZE:
            self.counts[number] = min(cursor.length(), self.file.size // 3)
            cursor.length()
        elif kind == AUX:
            cursor.skip_strings(2)
        elif kind == FREQUENCY:
            cursor.skip(1)
        elif kind == IDLE:
            cursor.length()
        elif kind == SLOT_INFO:
            for _ in range(3):
                cursor.length()
        elif kind == FUNCTION_2:
            cursor.skip_string()
        elif kind == MODULE_AUX:
            for _ in range(3):
                cursor.length()
            skip_module(cursor)
        elif kind == SLOT_IMPORT and self.file.header.product == "Valkey":
            cursor.skip_string()
            for _ in range(2 * cursor.length()):
                cursor.length()
        else:
            raise cursor.malformed(f"the opcode {kind} is not known")

    def _read_facts(self) -> None:
        """Read the fields at the beginning, and the number of keys of the first database."""
        cursor = Cursor.on(self.file, self.start)
        number = 0
        while True:
            kind = cursor.byte()
            if kind == AUX and len(self.facts) < 100:
                name, value = cursor.string(1 << 16), cursor.string(1 << 16)
                self.facts[name.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
            elif kind == SELECT:
                number = cursor.length()
            elif kind == RESIZE:
                self._other(kind, number, cursor)
                return
            elif FIRST_OPCODE <= kind < MOMENT:
                self._other(kind, number, cursor)
            else:
                return
