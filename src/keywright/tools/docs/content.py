"""The blocks of a document, before it is Markdown or HTML: headings, paragraphs, tables, a diagram."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from keywright.tools.diagram.entities import Schema

__all__ = [
    "Block",
    "Bullets",
    "Code",
    "Figure",
    "Heading",
    "Inline",
    "Line",
    "Link",
    "Paragraph",
    "Table",
    "Text",
    "joined",
    "prose",
]


class Text(NamedTuple):
    """Plain text without markup."""

    text: str


class Code(NamedTuple):
    text: str


class Link(NamedTuple):
    """Code that links to an anchor of the same document."""

    text: str
    anchor: str


Inline: TypeAlias = Text | Code | Link
Line: TypeAlias = Sequence[Inline]


class Heading(NamedTuple):
    level: int
    line: Line
    anchor: str


class Paragraph(NamedTuple):
    line: Line


class Bullets(NamedTuple):
    items: Sequence[Line]


class Table(NamedTuple):
    header: Sequence[str]
    rows: Sequence[Sequence[Line]]


class Figure(NamedTuple):
    schema: Schema
    caption: str


Block: TypeAlias = Heading | Paragraph | Bullets | Table | Figure

_CODE = re.compile(r"(`{1,2})(.+?)\1")


def prose(text: str) -> Line:
    """Return a sentence of a docstring as a line; text in backticks and variables like <guild> are code."""
    line: list[Inline] = []
    position = 0
    for found in _CODE.finditer(text):
        line += [Text(text[position : found.start()]), Code(found[2])]
        position = found.end()
    return [part for part in (*line, Text(text[position:])) if part.text]


def joined(lines: Iterable[Line], between: str = ", ") -> Line:
    whole: list[Inline] = []
    for line in lines:
        whole += [*([Text(between)] if whole else []), *line]
    return whole
