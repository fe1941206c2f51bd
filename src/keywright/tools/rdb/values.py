"""Decoding values: the entries of a collection part by part, in the stored form of its layout.

A part is what the format has in one piece: one entry of a table, all entries of a packed collection, one node
of a list or a stream. So a collection of any size is read in bounded memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from keywright.errors import DumpError
from keywright.tools.rdb.cursors import LARGEST_PACKED, Cursor
from keywright.tools.rdb.packed import intset, listpack, ziplist, zipmap
from keywright.tools.rdb.streams import stream_facts, stream_node
from keywright.tools.rdb.types import Type

__all__ = ["ENTRIES", "entry_count", "parts", "table_start"]

Entry = tuple[list[bytes], int]
"""The stored form of one entry of a table, and the moment of its own expiry in milliseconds, 0 for none."""

_PLAIN, _PACKED_NODE = 1, 2

PACKED: dict[int, Callable[[bytes], list[bytes]]] = {
    Type.HASH_ZIPMAP: zipmap,
    Type.LIST_ZIPLIST: ziplist,
    Type.SET_INTSET: intset,
    Type.ZSET_ZIPLIST: ziplist,
    Type.HASH_ZIPLIST: ziplist,
    Type.HASH_LISTPACK: listpack,
    Type.ZSET_LISTPACK: listpack,
    Type.SET_LISTPACK: listpack,
}
"""The types that are one string of items in their stored form."""


def _item(cursor: Cursor, soonest: int) -> Entry:
    return [cursor.string()], 0


def _pair(cursor: Cursor, soonest: int) -> Entry:
    return [cursor.string(), cursor.string()], 0


def _scored(cursor: Cursor, soonest: int) -> Entry:
    return [cursor.string(), cursor.score()], 0


def _scored_in_words(cursor: Cursor, soonest: int) -> Entry:
    return [cursor.string(), cursor.score_in_words()], 0


def _field_after_expiry(cursor: Cursor, soonest: int) -> Entry:
    """Return a field and its value; its expiry counts from the soonest one, with 0 for none."""
    after = cursor.length()
    return [cursor.string(), cursor.string()], after + soonest - 1 if after else 0


def _field_after_moment(cursor: Cursor, soonest: int) -> Entry:
    moment = cursor.length()
    return [cursor.string(), cursor.string()], moment


def _field_before_moment(cursor: Cursor, soonest: int) -> Entry:
    return [cursor.string(), cursor.string()], max(0, cursor.milliseconds())


ENTRIES: dict[int, Callable[[Cursor, int], Entry]] = {
    Type.LIST: _item,
    Type.SET: _item,
    Type.ZSET: _scored_in_words,
    Type.HASH: _pair,
    Type.ZSET_2: _scored,
    Type.HASH_METADATA_PRE_GA: _field_after_moment,
    Type.HASH_METADATA: _field_after_expiry,
    Type.HASH_VALKEY: _field_before_moment,
}
"""How one entry of each type that is a table is read."""


def table_start(kind: int, cursor: Cursor) -> tuple[int, int]:
    """Return how many entries of a table follow, and the moment at which the first of them expires."""
    soonest = cursor.milliseconds() if kind == Type.HASH_METADATA else 0
    return cursor.length(), soonest


def parts(
    kind: int, cursor: Cursor, now_ms: int, expiries: dict[bytes, int] | None = None
) -> Iterator[list[Any]]:
    """Yield the parts of a collection. Fields that had expired at `now_ms` are left out.

    The moments of the expiries of single fields are added to `expiries`.
    """
    packed = PACKED.get(kind)
    try:
        if packed is not None:
            yield packed(cursor.string(LARGEST_PACKED))
        elif kind in ENTRIES:
            yield from _table(kind, cursor, now_ms, expiries)
        elif kind in (Type.HASH_LISTPACK_EX, Type.HASH_LISTPACK_EX_PRE_GA):
            if kind == Type.HASH_LISTPACK_EX:
                cursor.skip(8)
            yield _expiring_listpack(listpack(cursor.string(LARGEST_PACKED)), now_ms, expiries)
        elif kind == Type.LIST_QUICKLIST:
            for _ in range(cursor.length()):
                yield ziplist(cursor.string(LARGEST_PACKED))
        elif kind == Type.LIST_QUICKLIST_2:
            for _ in range(cursor.length()):
                yield _node(cursor)
        else:
            for _ in range(cursor.length()):
                yield stream_node(cursor.string(16), listpack(cursor.string(LARGEST_PACKED)))
    except DumpError:
        raise
    except (ValueError, IndexError) as error:
        raise cursor.malformed(str(error) or "a value is truncated") from None


def _table(
    kind: int, cursor: Cursor, now_ms: int, expiries: dict[bytes, int] | None
) -> Iterator[list[bytes]]:
    read = ENTRIES[kind]
    count, soonest = table_start(kind, cursor)
    for _ in range(count):
        flat, moment = read(cursor, soonest)
        if moment:
            if moment <= now_ms:
                continue
            if expiries is not None:
                expiries[flat[0]] = moment
        yield flat


def _expiring_listpack(items: list[bytes], now_ms: int, expiries: dict[bytes, int] | None) -> list[bytes]:
    if len(items) % 3:
        raise ValueError("a hash with expiries has a field without value or expiry")
    flat = []
    for place in range(0, len(items), 3):
        moment = int(items[place + 2])
        if moment and moment <= now_ms:
            continue
        flat += items[place : place + 2]
        if moment and expiries is not None:
            expiries[items[place]] = moment
    return flat


def _node(cursor: Cursor) -> list[bytes]:
    form = cursor.length()
    if form == _PLAIN:
        return [cursor.string()]
    if form != _PACKED_NODE:
        raise ValueError(f"a node of a list has the unknown form {form}")
    return listpack(cursor.string(LARGEST_PACKED))


def entry_count(kind: int, cursor: Cursor, now_ms: int) -> int:
    """Return how many entries a collection has; of a stream, as it says itself."""
    if kind in (Type.STREAM_1, Type.STREAM_2, Type.STREAM_3):
        return stream_facts(kind, cursor).length
    if kind in ENTRIES:
        return table_start(kind, cursor)[0]
    width = 1 if kind in (Type.LIST_QUICKLIST, Type.LIST_QUICKLIST_2, Type.LIST_ZIPLIST) else 2
    return sum(len(part) for part in parts(kind, cursor, now_ms)) // width
