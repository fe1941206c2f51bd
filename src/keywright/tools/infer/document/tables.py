"""Tables of a document: of keys, or of the members of one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from keywright.tools.infer.document.blocks import Line, Table, text_of
from keywright.tools.infer.document.keys import MOST_MEMBERS, DocumentedKey, Member, member_of, members_within
from keywright.tools.infer.document.notation import Notation, Piece, notation_of
from keywright.tools.infer.document.words import kinds_in, per_in

__all__ = ["keys_in", "lists_members", "members_in"]

_KEY_COLUMN = re.compile(r"(?i)\bkeys?\b|\bpattern\b|\btemplate\b")
_TYPE_COLUMN = re.compile(r"(?i)\btype\b|\bkind\b|\bstructure\b|\bformat\b|\bdata type\b")
_FIELD_COLUMN = re.compile(
    r"(?i)^\W*(?:members?|fields?|hash fields?|propert(?:y|ies)|attributes?|names?|keys?)\W*$"
)


def lists_members(table: Table, *, holding: bool) -> bool:
    """Return whether the rows are members, of a key that is `holding` some as far as is known."""
    header = _titles(table)
    if not header or not _FIELD_COLUMN.match(header[0]) or _has_certain(table.rows, 0):
        return False
    return holding or not re.match(r"(?i)^\W*(?:names?|keys?)\W*$", header[0])


def members_in(table: Table) -> list[Member]:
    """Return the members that a table lists."""
    header = _titles(table)
    members = []
    for row in table.rows[:MOST_MEMBERS]:
        cells = [text_of(cell).strip() for cell in row]
        typed = [n for n, title in enumerate(header) if n and _TYPE_COLUMN.search(title)]
        about = ". ".join(text for n, text in enumerate(cells) if n and n not in typed and text)
        member = member_of(cells[0], about) if cells else None
        if member is not None:
            kind = " ".join(cells[n] for n in typed if n < len(cells)) or member.type
            members.append(member._replace(type=kind))
    return members


def keys_in(table: Table, headings: Sequence[str]) -> list[DocumentedKey]:
    """Return the keys of a table; none if no column has names of keys."""
    header, found = _titles(table), []
    column = _key_column(header, table.rows)
    if column is None:
        return []
    for offset, row in enumerate(table.rows):
        cells = {number: text_of(cell).strip() for number, cell in enumerate(row)}
        kinds = " ".join(
            cells[n] for n, title in enumerate(header) if _TYPE_COLUMN.search(title) and n != column
        )
        ends = " ".join(
            f"TTL {cells[n]}"
            for n, title in enumerate(header)
            if re.search(r"(?i)\bttl\b|expir|time to live|lifetime", title) and n != column
        )
        about = " ".join(
            text
            for n, text in cells.items()
            if n != column
            and re.search(
                r"(?i)descr|purpose|note|meaning|content|value|comment|about|use|what|holds|details",
                header[n],
            )
        )
        members = [member for n, cell in enumerate(row) if n != column for member in members_within(cell)]
        for notation in _cell_notations(row[column]):
            for kind, made in _per(notation, kinds):
                key = DocumentedKey(made, table.number + offset, headings, defined=True)
                key.short, key.expiry = kind, ends
                key.describe(about)
                if key.holds_members:
                    key.members += members[:MOST_MEMBERS]
                if made is not notation:
                    key.doubts.append("the name: the table has one for several, of which one is `per`")
                found.append(key)
    return found


def _titles(table: Table) -> list[str]:
    return [text_of(cell).strip() for cell in table.header]


def _has_certain(rows: Sequence[Sequence[Line]], column: int) -> bool:
    return any(
        notation.is_certain for row in rows if column < len(row) for notation in _cell_notations(row[column])
    )


def _cell_notations(cell: Line) -> list[Notation]:
    codes = [span.text for span in cell if span.is_code]
    texts = codes or [text_of(cell)]
    found = [notation_of(text) for text in texts[:8]]
    return [each for each in found if each is not None and not each.is_prefix]


def _key_column(header: Sequence[str], rows: Sequence[Sequence[Line]]) -> int | None:
    """Return the column that has names of keys, or None."""
    best, most = None, 0.0
    for column, title in enumerate(header):
        cells = [row[column] for row in rows if column < len(row) and text_of(row[column]).strip()]
        found = [_cell_notations(cell) for cell in cells]
        certain = sum(any(each.is_certain for each in notations) for notations in found)
        named = sum(bool(notations) for notations in found)
        titled = _KEY_COLUMN.search(title) is not None
        if not cells or not (certain or titled) or named < 0.6 * len(cells):
            continue
        if not titled and certain < 0.5 * len(cells):
            continue
        score = certain / len(cells) + named / len(cells) + titled
        if score > most:
            best, most = column, score
    return best


def _per(notation: Notation, kinds: str) -> Iterator[tuple[str, Notation]]:
    """Yield a notation for each kind of a cell: `hash, set per guild` is a key and one for each guild."""
    parts = [part for part in re.split(r"[,;+]|\band\b", kinds) if kinds_in(part, short=True)] or [kinds]
    seen = set()
    for part in parts:
        noun = per_in(part)
        made = notation
        if noun and not notation.variables:
            pieces = (*notation.pieces, Piece("text", ":"), Piece("variable", noun))
            merged = (Piece("text", notation.pieces[-1].text + ":"), pieces[-1])
            made = notation._replace(pieces=(*notation.pieces[:-1], *merged))
        if made.shape not in seen:
            seen.add(made.shape)
            yield part, made
