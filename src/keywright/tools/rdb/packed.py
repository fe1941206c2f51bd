"""Collections that are one string: listpack, ziplist, intset and zipmap. Each returns its items as bytes.

All raise ValueError for malformed data. Integers are returned as the decimals that a server replies with.
"""

from __future__ import annotations

import struct
import sys
from array import array
from struct import Struct

__all__ = ["intset", "listpack", "ziplist", "zipmap"]

_SMALL = [b"%d" % number for number in range(128)]
_U32 = Struct("<I").unpack_from
_I16 = Struct("<h").unpack_from
_I32 = Struct("<i").unpack_from
_I64 = Struct("<q").unpack_from
_BIG_U32 = Struct(">I").unpack_from
_END = 255
_WIDTHS = {2: "h", 4: "i", 8: "q"}


def listpack(data: bytes) -> list[bytes]:
    """Return the items of a listpack."""
    items: list[bytes] = []
    add = items.append
    position, last = 6, len(data) - 1
    if last < position or data[last] != _END:
        raise ValueError("a listpack has no end")
    try:
        while position < last:
            tag = data[position]
            if tag < 0x80:
                add(_SMALL[tag])
                position += 2
            elif tag < 0xC0:
                position += 1
                end = position + (tag & 0x3F)
                add(data[position:end])
                position = end + 1
            else:
                item, position = _listpack_item(data, position, tag)
                add(item)
    except (IndexError, struct.error):
        raise ValueError("a listpack is truncated") from None
    if position != last:
        raise ValueError("an item of a listpack is longer than the listpack")
    return items


def _listpack_item(data: bytes, position: int, tag: int) -> tuple[bytes, int]:
    """Return one of the rarer items, and the place of the next one."""
    if tag < 0xE0:
        number = (tag & 0x1F) << 8 | data[position + 1]
        return b"%d" % (number - 8192 if number >= 4096 else number), position + 3
    if tag <= 0xF0:
        if tag < 0xF0:
            start, size = position + 2, (tag & 0x0F) << 8 | data[position + 1]
        else:
            start, size = position + 5, _U32(data, position + 1)[0]
        end = start + size
        return data[start:end], end + _length_of_length(end - position)
    if tag == 0xF1:
        return b"%d" % _I16(data, position + 1)[0], position + 4
    if tag == 0xF2:
        return b"%d" % int.from_bytes(data[position + 1 : position + 4], "little", signed=True), position + 5
    if tag == 0xF3:
        return b"%d" % _I32(data, position + 1)[0], position + 6
    if tag == 0xF4:
        return b"%d" % _I64(data, position + 1)[0], position + 10
    raise ValueError(f"a listpack has an item of the unknown form {tag:#04x}")


def _length_of_length(size: int) -> int:
    """Return how many bytes after an item of a listpack repeat its size, for walks backwards."""
    return (
        1 if size < 1 << 7 else 2 if size < 1 << 14 else 3 if size < 1 << 21 else 4 if size < 1 << 28 else 5
    )


def ziplist(data: bytes) -> list[bytes]:
    """Return the items of a ziplist, which servers before 7.0 wrote."""
    items: list[bytes] = []
    position, last = 10, len(data) - 1
    if last < position or data[last] != _END:
        raise ValueError("a ziplist has no end")
    try:
        while position < last:
            position += 1 if data[position] < 254 else 5
            item, position = _ziplist_item(data, position, data[position])
            items.append(item)
    except (IndexError, struct.error):
        raise ValueError("a ziplist is truncated") from None
    if position != last:
        raise ValueError("an item of a ziplist is longer than the ziplist")
    return items


def _ziplist_item(data: bytes, position: int, tag: int) -> tuple[bytes, int]:
    if tag < 0xC0:
        if tag < 0x40:
            start, size = position + 1, tag
        elif tag < 0x80:
            start, size = position + 2, (tag & 0x3F) << 8 | data[position + 1]
        else:
            start, size = position + 5, _BIG_U32(data, position + 1)[0]
        return data[start : start + size], start + size
    position += 1
    if tag == 0xC0:
        return b"%d" % _I16(data, position)[0], position + 2
    if tag == 0xD0:
        return b"%d" % _I32(data, position)[0], position + 4
    if tag == 0xE0:
        return b"%d" % _I64(data, position)[0], position + 8
    if tag == 0xF0:
        return b"%d" % int.from_bytes(data[position : position + 3], "little", signed=True), position + 3
    if tag == 0xFE:
        return b"%d" % int.from_bytes(data[position : position + 1], "little", signed=True), position + 1
    if 0xF1 <= tag <= 0xFD:
        return _SMALL[tag - 0xF1], position
    raise ValueError(f"a ziplist has an item of the unknown form {tag:#04x}")


def intset(data: bytes) -> list[bytes]:
    """Return the members of a set of integers, in their order."""
    if len(data) < 8:
        raise ValueError("a set of integers is truncated")
    width, count = _U32(data, 0)[0], _U32(data, 4)[0]
    if width not in _WIDTHS or len(data) != 8 + width * count:
        raise ValueError("a set of integers has another length than it says")
    numbers = array(_WIDTHS[width])
    numbers.frombytes(data[8:])
    if sys.byteorder == "big":
        numbers.byteswap()
    return [b"%d" % number for number in numbers]


def zipmap(data: bytes) -> list[bytes]:
    """Return the fields and values of a zipmap, which servers before 2.6 wrote."""
    items: list[bytes] = []
    position, last = 1, len(data) - 1
    if last < position or data[last] != _END:
        raise ValueError("a zipmap has no end")
    try:
        while position < last:
            size = data[position]
            position += 1
            if size == 254:
                size = _U32(data, position)[0]
                position += 4
            elif size == _END:
                raise ValueError("a zipmap ends before its end")
            free = 0
            if len(items) & 1:  # behind the length of a value are the free bytes behind the value
                free = data[position]
                position += 1
            items.append(data[position : position + size])
            position += size + free
    except (IndexError, struct.error):
        raise ValueError("a zipmap is truncated") from None
    if position != last or len(items) & 1:
        raise ValueError("an item of a zipmap is longer than the zipmap")
    return items
