"""Text for people as lines and tables whose parts have a meaning, so that each reader lays them out its way.

A file or a pipe gets `plain` text: each line as it is. The command line wraps lines to the terminal, shrinks
tables and colours the meanings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple, TypeAlias

__all__ = ["Block", "Column", "Line", "Meaning", "Part", "Span", "Table", "plain", "text_of"]


class Meaning(Enum):
    """What a part of a line is. Call it with a text to get a span: `Meaning.OK("proved")`."""

    ERROR = "error"
    WARNING = "warning"
    OK = "ok"
    NAME = "name"
    """The name of a key, a template, a command or an option."""
    HEADING = "heading"
    MUTED = "muted"

    def __call__(self, text: str) -> Span:
        return Span(text, self)


class Span(NamedTuple):
    """A piece of text with one meaning."""

    text: str
    meaning: Meaning


Part: TypeAlias = "str | Span"


class Line:
    """One line. If it is wrapped, the lines that follow are indented by `hang` columns."""

    __slots__ = ("hang", "parts")

    def __init__(self, *parts: Part, hang: int | None = None) -> None:
        self.parts = parts
        text = text_of(parts)
        self.hang = len(text) - len(text.lstrip(" ")) if hang is None else hang


class Column(NamedTuple):
    """A column of a table; the cells of a flexible one are wrapped where the table is too wide."""

    heading: str
    right: bool = False
    flexible: bool = False
    meaning: Meaning | None = None


class Table(NamedTuple):
    """Rows below headings, without frames."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]


Block: TypeAlias = "str | Line | Table"


def text_of(parts: Iterable[Part]) -> str:
    return "".join(part if isinstance(part, str) else part.text for part in parts)


def plain(blocks: Iterable[Block]) -> str:
    """Return the text of blocks, one line for each line and each row, of any width."""
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, Table):
            lines += _aligned(block)
        else:
            lines.append(block if isinstance(block, str) else text_of(block.parts))
    return "\n".join(lines)


def _aligned(table: Table) -> list[str]:
    rows = [[column.heading for column in table.columns], *table.rows]
    widths = [max(len(row[number]) for row in rows) for number in range(len(table.columns))]
    return [
        "  ".join(
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(row, widths, table.columns, strict=True)
        ).rstrip()
        for row in rows
    ]
