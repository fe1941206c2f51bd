"""Reading the primitives of the format from a place on: lengths, strings, numbers.

A cursor has a part of the file, its window. One with a file moves the window on as it goes, so a value of any
size takes the memory of a window; one without raises IndexError at the end of its window.
"""

from __future__ import annotations

from struct import Struct

from keywright.tools.rdb.files import DumpFile
from keywright.tools.rdb.lzf import decompress

__all__ = [
    "LARGEST_PACKED",
    "LARGEST_STRING",
    "Cursor",
    "length_at",
    "string_at",
    "string_end",
    "string_size",
    "strings_end",
]

WINDOW = 1 << 18
LARGEST_STRING = 512 << 20
"""No server has longer strings."""
LARGEST_PACKED = 16 << 20
"""Of a collection in one string: it is decoded as a whole."""

_BIG_U32 = Struct(">I").unpack_from
_BIG_U64 = Struct(">Q").unpack_from
_DOUBLE = Struct("<d").unpack
_STRINGS_IN_WORDS = {253: b"nan", 254: b"inf", 255: b"-inf"}
_WIDTHS = {0xC0: 1, 0xC1: 2, 0xC2: 4}
LZF = 0xC3


class Cursor:
    """A place in a window of the file."""

    __slots__ = ("base", "data", "file", "position")

    def __init__(self, data: bytes, position: int, base: int = 0, file: DumpFile | None = None) -> None:
        self.data = data
        self.position = position
        self.base = base
        self.file = file

    @classmethod
    def on(cls, file: DumpFile, offset: int) -> Cursor:
        """Return a cursor at a place in a file."""
        return cls(b"", 0, offset, file)

    @property
    def offset(self) -> int:
        """Return the place in the file."""
        return self.base + self.position

    def malformed(self, reason: str) -> Exception:
        return ValueError(reason) if self.file is None else self.file.malformed(self.offset, reason)

    def need(self, size: int) -> int:
        """Make sure that the window has so many bytes from here on. Return the position."""
        position = self.position
        if position + size <= len(self.data):
            return position
        if self.file is None:
            raise IndexError
        self.base += position
        self.position = 0
        if self.base + size > self.file.size:
            raise self.file.truncated(self.base)
        self.data = self.file.read(self.base, max(size, WINDOW))
        if len(self.data) < size:
            raise self.file.truncated(self.base)
        return 0

    def take(self, size: int) -> bytes:
        position = self.need(size)
        self.position = position + size
        return self.data[position : position + size]

    def skip(self, size: int) -> None:
        """Move on. The end of the file is checked, the bytes between are not read."""
        self.position += size
        if self.position > len(self.data):
            if self.file is None:
                raise IndexError
            if self.offset > self.file.size:
                raise self.file.truncated(self.offset)

    def byte(self) -> int:
        position = self.need(1)
        self.position = position + 1
        return self.data[position]

    def milliseconds(self) -> int:
        return int.from_bytes(self.take(8), "little", signed=True)

    def score(self) -> bytes:
        """Return the score of a sorted set as a server replies with it."""
        return shown_score(_DOUBLE(self.take(8))[0])

    def score_in_words(self) -> bytes:
        """Return a score that is stored as text, as servers before 4.0 did."""
        size = self.byte()
        return _STRINGS_IN_WORDS.get(size) or self.take(size)

    def length(self) -> int:
        """Return a length. Raise an error for the sign of an encoded string."""
        first = self.byte()
        if first < 0x40:
            return first
        if first < 0x80:
            return (first & 0x3F) << 8 | self.byte()
        if first == 0x80:
            return int(_BIG_U32(self.take(4))[0])
        if first == 0x81:
            return int(_BIG_U64(self.take(8))[0])
        raise self.malformed("a length is malformed")

    def skip_string(self) -> None:
        position = self.need(1)
        first = self.data[position]
        if first < 0x40:
            self.position = position + 1
            self.skip(first)
        elif first in _WIDTHS:
            self.position = position + 1
            self.skip(_WIDTHS[first])
        elif first == LZF:
            self.position = position + 1
            size = self.length()
            self.length()
            self.skip(size)
        else:
            self.skip(self.length())

    def skip_strings(self, count: int) -> None:
        for _ in range(count):
            self.skip_string()

    def string(self, most: int = LARGEST_STRING) -> bytes:
        """Return a string, whatever its encoding. Raise an error if it is longer than `most`."""
        position = self.need(1)
        first = self.data[position]
        if first < 0x40:
            self.position = position + 1
            return self.take(first)
        if first in _WIDTHS:
            self.position = position + 1
            return b"%d" % int.from_bytes(self.take(_WIDTHS[first]), "little", signed=True)
        compressed = None
        if first == LZF:
            self.position = position + 1
            compressed = self.length()
        size = self.length()
        if size > most or (compressed or 0) > most:
            raise self.malformed(f"a string of {size:,} bytes is longer than {most >> 20} MiB")
        if compressed is None:
            return self.take(size)
        try:
            return decompress(self.take(compressed), size)
        except ValueError as error:
            raise self.malformed(str(error)) from None


def string_at(data: bytes, position: int) -> bytes:
    """Return the string at a position of a window that has all of it. Raise ValueError or IndexError."""
    first = data[position]
    if first < 0x40:
        return data[position + 1 : position + 1 + first]
    if first < 0x80:
        position += 2
        return data[position : position + ((first & 0x3F) << 8 | data[position - 1])]
    if first == LZF:
        compressed, position = length_at(data, position + 1)
        size, position = length_at(data, position)
        if size > LARGEST_STRING:
            raise ValueError(f"a string of {size:,} bytes is too long")
        return decompress(data[position : position + compressed], size)
    width = _WIDTHS.get(first)
    if width is not None:
        return b"%d" % int.from_bytes(data[position + 1 : position + 1 + width], "little", signed=True)
    size, position = length_at(data, position)
    return data[position : position + size]


def string_end(data: bytes, position: int) -> int:
    """Return the position behind a string, which may be behind the window. Raise as `string_at` does."""
    first = data[position]
    if first < 0x40:
        return position + 1 + first
    if first < 0x80:
        return position + 2 + ((first & 0x3F) << 8 | data[position + 1])
    if first == LZF:
        compressed, position = length_at(data, position + 1)
        return length_at(data, position)[1] + compressed
    width = _WIDTHS.get(first)
    if width is not None:
        return position + 1 + width
    size, position = length_at(data, position)
    return position + size


def strings_end(data: bytes, position: int, count: int) -> int:
    """Return the position behind many strings. Raise IndexError if it is behind the window."""
    for _ in range(count):
        first = data[position]
        position = position + 1 + first if first < 0x40 else string_end(data, position)
    return position


def length_at(data: bytes, position: int) -> tuple[int, int]:
    """Return a length, and the position behind it. Raise as `string_at` does."""
    first = data[position]
    if first < 0x40:
        return first, position + 1
    if first < 0x80:
        return (first & 0x3F) << 8 | data[position + 1], position + 2
    if first == 0x80:
        return int(_BIG_U32(data, position + 1)[0]), position + 5
    if first == 0x81:
        return int(_BIG_U64(data, position + 1)[0]), position + 9
    raise ValueError("a length is malformed")


def string_size(cursor: Cursor) -> int:
    """Return the length of the string at a place, without reading it."""
    position = cursor.need(1)
    first = cursor.data[position]
    if first in _WIDTHS:
        return len(cursor.string())
    if first == LZF:
        cursor.position += 1
        cursor.length()
    return cursor.length()


def shown_score(score: float) -> bytes:
    """Return a score as servers write it: integers without a point, others as short as possible."""
    if score == score // 1 and abs(score) < 1e17:
        return b"-0" if score == 0 and str(score)[0] == "-" else b"%d" % score
    return repr(score).encode()
