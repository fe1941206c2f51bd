"""Skipping values: where each ends, without decoding it."""

from __future__ import annotations

from collections.abc import Callable

from keywright.tools.rdb.cursors import Cursor
from keywright.tools.rdb.streams import stream_facts
from keywright.tools.rdb.types import SINGLE, STRINGS, Type

__all__ = ["skip_module", "skip_value"]


def _strings(each: int) -> Callable[[Cursor], None]:
    def skip(cursor: Cursor) -> None:
        cursor.skip_strings(cursor.length() * each)

    return skip


def _entries(skip_entry: Callable[[Cursor], None]) -> Callable[[Cursor], None]:
    def skip(cursor: Cursor) -> None:
        for _ in range(cursor.length()):
            skip_entry(cursor)

    return skip


def _scored(cursor: Cursor) -> None:
    cursor.skip_string()
    cursor.skip(8)


def _scored_in_words(cursor: Cursor) -> None:
    cursor.skip_string()
    cursor.score_in_words()


def _expiring(cursor: Cursor) -> None:
    cursor.length()
    cursor.skip_strings(2)


def _expiring_valkey(cursor: Cursor) -> None:
    cursor.skip_strings(2)
    cursor.skip(8)


def _node(cursor: Cursor) -> None:
    cursor.length()
    cursor.skip_string()


def _after_the_soonest(skip_rest: Callable[[Cursor], None]) -> Callable[[Cursor], None]:
    """Skip the moment at which the first field expires, and the rest."""

    def skip(cursor: Cursor) -> None:
        cursor.skip(8)
        skip_rest(cursor)

    return skip


def _stream(kind: int) -> Callable[[Cursor], None]:
    def skip(cursor: Cursor) -> None:
        stream_facts(kind, cursor)

    return skip


def skip_module(cursor: Cursor) -> None:
    """Skip the parts of a module's value, up to the sign of its end."""
    while True:
        part = cursor.length()
        if part == 0:
            return
        if part in (1, 2):
            cursor.length()
        elif part == 3:
            cursor.skip(4)
        elif part == 4:
            cursor.skip(8)
        elif part == 5:
            cursor.skip_string()
        else:
            raise cursor.malformed(f"the value of a module has a part of the unknown form {part}")


def _module(cursor: Cursor) -> None:
    cursor.length()
    skip_module(cursor)


SKIPS: dict[int, Callable[[Cursor], None]] = {
    **{kind: _strings(each) for kind, each in STRINGS.items()},
    Type.ZSET: _entries(_scored_in_words),
    Type.ZSET_2: _entries(_scored),
    Type.MODULE_2: _module,
    Type.STREAM_1: _stream(Type.STREAM_1),
    Type.LIST_QUICKLIST_2: _entries(_node),
    Type.STREAM_2: _stream(Type.STREAM_2),
    Type.STREAM_3: _stream(Type.STREAM_3),
    Type.HASH_METADATA_PRE_GA: _entries(_expiring),
    Type.HASH_METADATA: _after_the_soonest(_entries(_expiring)),
    Type.HASH_LISTPACK_EX: _after_the_soonest(Cursor.skip_string),
    Type.HASH_VALKEY: _entries(_expiring_valkey),
}
"""How the types of several parts are skipped."""


def skip_value(kind: int, cursor: Cursor) -> None:
    """Move behind a value. Raise an error for a type that is not known."""
    if kind in SINGLE:
        cursor.skip_string()
        return
    skip = SKIPS.get(kind)
    if skip is None:
        raise cursor.malformed(f"a key has the unknown type {kind}")
    skip(cursor)
