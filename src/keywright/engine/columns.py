"""Batches of commands that are alike: packed argument by argument, not command by command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keywright.keyspace.wires import Arguments

__all__ = ["are_worth_it", "columns_of", "packed_alike", "packed_columns"]

# With fewer rows, or shorter ones, it is as fast to pack each command.
LEAST_ROWS, LEAST_COLUMNS = 16, 4


def are_worth_it(rows: int, columns: int) -> bool:
    """Return whether commands are packed in less time by columns."""
    return rows >= LEAST_ROWS and columns >= LEAST_COLUMNS


def packed_alike(commands: Sequence[Arguments]) -> list[bytes] | None:
    """Return the pieces of commands, or None if it takes no less time than to pack each."""
    if not are_worth_it(len(commands), len(commands[0])):
        return None
    columns = columns_of(commands)
    return None if columns is None else packed_columns(columns)


def columns_of(commands: Sequence[Arguments]) -> list[Sequence[Any]] | None:
    """Return the columns of commands, or None if their lengths differ."""
    if len(set(map(len, commands))) != 1:
        return None
    return list(zip(*commands, strict=True))


def packed_columns(*in_turn: Sequence[Sequence[Any]]) -> list[bytes] | None:
    """Return the pieces of rows of commands, or None if they differ in their forms.

    `in_turn` has the columns of the first commands of all rows, then those of the second ones, and so on.
    What is the same in every row is packed once: 0.2 against 0.5 µs for a ZRANGE, 0.4 against 0.8 µs for an
    HSET of five members.
    """
    rows = len(in_turn[0][0])
    columns: list[Sequence[bytes]] = []
    shared = b""  # packed, and to be written before the next argument that differs
    for arguments in in_turn:
        shared += b"*%d" % len(arguments)
        for column in arguments:
            encoded = _encoded(column)
            if encoded is None:
                return None
            lengths = list(map(len, encoded))
            heads = {length: b"%b\r\n$%d\r\n" % (shared, length) for length in set(lengths)}
            if len(encoded) < rows:
                shared = heads[lengths[0]] + encoded[0]
                continue
            columns += [list(map(heads.__getitem__, lengths)), encoded]
            shared = b""
        shared += b"\r\n"
    columns.append([shared] * rows)
    pieces = [b""] * (len(columns) * rows)
    for place, pieces_of_rows in enumerate(columns):
        pieces[place :: len(columns)] = pieces_of_rows
    return pieces


def _encoded(column: Sequence[Any]) -> Sequence[bytes] | None:
    """Return the bytes of arguments, once if they are all the same, or None if they are of several types."""
    first = column[0]
    same = first == column[-1] and column.count(first) == len(column)
    encode = _ENCODERS.get(type(first))
    if encode is not None and same and type(first) in (bytes, str):
        return encode(column[:1])
    if encode is None or len(set(map(type, column))) > 1:  # 1, 1.0 and True are equal
        return None
    same = same and not (first == 0 and type(first) is float)  # 0.0 and -0.0 are, too
    return encode(column[:1] if same else column)


_ENCODERS: dict[type[Any], Callable[[Sequence[Any]], Sequence[bytes]]] = {
    bytes: lambda column: column,
    str: lambda column: list(map(str.encode, column)),
    int: lambda column: [b"%d" % each for each in column],
    float: lambda column: [repr(each).encode() for each in column],
}
