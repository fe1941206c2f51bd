"""Lines and tables laid out for a number of columns, with the codes of colours.

Everything is made printable first, so no stored name controls the terminal: the only codes are those of here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from keywright.tools.layout import Block, Column, Line, Meaning, Part, Span, Table, text_of
from keywright.tools.terminal import printable

__all__ = ["cells", "laid_out", "painted", "wrapped"]

_CODES = {
    Meaning.ERROR: "1;31",
    Meaning.WARNING: "33",
    Meaning.OK: "32",
    Meaning.NAME: "36",
    Meaning.HEADING: "1",
    Meaning.MUTED: "2",
}
_GAP = "  "
_LEAST = 12
"""A flexible column is at least this wide."""

# A word with the spaces before it. One that is too long is cut after a joint; the first are the best.
_WORD = re.compile(r" *[^ ]+| +$")
_JOINTS = (" ", ":/;,|", ".-_=>")


def laid_out(blocks: Iterable[Block], width: int | None, *, coloured: bool) -> Iterator[str]:
    """Yield the lines of blocks for a stream; without a width each line stays whole."""
    for block in blocks:
        if isinstance(block, Table):
            yield from _table(block, width, coloured=coloured)
        else:
            line = Line(block) if isinstance(block, str) else block
            for parts in wrapped(line.parts, width, line.hang):
                yield painted(parts, coloured=coloured)


def painted(parts: Iterable[Part], *, coloured: bool) -> str:
    """Return the text of printable parts, with the codes of their colours."""
    return "".join(
        part
        if isinstance(part, str)
        else f"\x1b[{_CODES[part.meaning]}m{part.text}\x1b[0m"
        if coloured and part.text
        else part.text
        for part in parts
    )


def cells(text: str) -> int:
    """Return the number of columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrapped(parts: Iterable[Part], width: int | None, hang: int = 0) -> Iterator[list[Part]]:
    """Yield the parts of each line. The lines after the first are indented by `hang`."""
    safe = [_like(part, printable(part if isinstance(part, str) else part.text)) for part in parts]
    text = text_of(safe)
    if width is None or cells(text) <= width or " " not in text.strip():
        yield safe  # a name or an address that is too long stays whole, so that it can be copied
        return
    hang = min(hang, width // 2)
    for number, (start, end) in enumerate(_folds(text, width, hang)):
        indent: list[Part] = [" " * hang] if number else []
        yield indent + _between(safe, start, end)


def _folds(text: str, width: int, hang: int) -> Iterator[tuple[int, int]]:
    """Yield where the lines of a text begin and end: at spaces, or within a word that is too long."""
    start, end, room = 0, 0, width
    for found in _WORD.finditer(text):
        while cells(text[start : found.end()]) > room:
            if text[start:end].strip() and cells(found.group().lstrip()) <= width - hang:
                yield start, end
                start = found.end() - len(found.group().lstrip())
            else:
                cut = start + len(_head(text[start : found.end()], room))
                yield start, start + len(text[start:cut].rstrip())
                start = cut + len(text[cut : found.end()]) - len(text[cut : found.end()].lstrip())
            room = width - hang
        end = found.end()
    if start < len(text):
        yield start, len(text)


def _between(parts: Iterable[Part], start: int, end: int) -> list[Part]:
    found: list[Part] = []
    for part in parts:
        text = text_of([part])
        if start < len(text) and end > 0 and text[max(0, start) : end]:
            found.append(_like(part, text[max(0, start) : end]))
        start, end = start - len(text), end - len(text)
    return found


def _like(part: Part, text: str) -> Part:
    return text if isinstance(part, str) else Span(text, part.meaning)


def _head(word: str, room: int) -> str:
    """Return the part of a text that fits: up to the best joint in its second half."""
    end = max(1, room)
    while end > 1 and cells(word[:end]) > room:
        end -= 1
    for joints in _JOINTS:
        joint = max(map(word[:end].rfind, joints))
        if joint >= end // 2:
            return word[: joint + 1]
    return word[:end]


def _table(table: Table, width: int | None, *, coloured: bool) -> Iterator[str]:
    rows = [[printable(cell) for cell in row] for row in table.rows]
    headings = [column.heading for column in table.columns]
    widths = [max(map(cells, each)) for each in zip(headings, *rows, strict=True)]
    if width is not None:
        _shrink(widths, table.columns, width)
    meanings = [column.meaning for column in table.columns]
    for number, row in enumerate([headings, *rows]):
        marks = [Meaning.MUTED] * len(row) if number == 0 else meanings
        yield from _row(row, widths, table.columns, marks, coloured=coloured)


def _shrink(widths: list[int], columns: Sequence[Column], width: int) -> None:
    """Take from the widest flexible column until the table fits, or none can give more."""
    flexible = [number for number, column in enumerate(columns) if column.flexible]
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    while excess > 0 and flexible:
        widest = max(flexible, key=widths.__getitem__)
        if widths[widest] <= _LEAST:
            return
        widths[widest] -= 1
        excess -= 1


def _row(
    row: Sequence[str],
    widths: Sequence[int],
    columns: Sequence[Column],
    marks: Sequence[Meaning | None],
    *,
    coloured: bool,
) -> Iterator[str]:
    folded = [
        [cell[start:end] for start, end in _folds(cell, width, 0)]
        for cell, width in zip(row, widths, strict=True)
    ]
    for number in range(max(map(len, folded))):
        line, space = "", ""
        for lines, width, column, mark in zip(folded, widths, columns, marks, strict=True):
            text = lines[number].rstrip() if number < len(lines) else ""
            padding = " " * (width - cells(text))
            shown = painted([mark(text)], coloured=coloured) if mark else text
            line += space + (padding + shown if column.right else shown)
            space = _GAP if column.right else padding + _GAP
        yield line.rstrip()
