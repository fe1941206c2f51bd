"""A document as Markdown, as GitHub and GitLab show it, the diagram in Mermaid."""

from __future__ import annotations

import re
from collections.abc import Iterable

from keywright.tools.docs.content import (
    Block,
    Bullets,
    Code,
    Figure,
    Heading,
    Inline,
    Line,
    Link,
    Paragraph,
    Table,
)
from keywright.tools.docs.mermaid import mermaid

__all__ = ["markdown"]

_MARKUP = re.compile(r"([\\`*_\[\]<>#|~])")


def markdown(blocks: Iterable[Block], origin: str) -> str:
    """Return the whole text. `origin` is the command that makes it again."""
    note = f"<!-- Made by `{origin}`. Change the declaration, not this file. -->"
    return "\n\n".join([note, *map(_block, blocks)]) + "\n"


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        return f'<a id="{_attribute(block.anchor)}"></a>\n\n{"#" * block.level} {_line(block.line)}'
    if isinstance(block, Paragraph):
        return _line(block.line)
    if isinstance(block, Bullets):
        return "\n".join(f"- {_line(item)}" for item in block.items)
    if isinstance(block, Table):
        return _table(block)
    assert isinstance(block, Figure)
    return f"```mermaid\n{mermaid(block.schema)}\n```\n\n{_line_of_text(block.caption)}"


def _table(table: Table) -> str:
    header = f"| {' | '.join(table.header)} |"
    rule = "|" + " --- |" * len(table.header)
    # A bar ends a cell even inside code.
    rows = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in table.rows]
    return "\n".join([header, rule, *rows])


def _cell(line: Line) -> str:
    return "".join(
        _inline(part) if not isinstance(part, Code | Link) else _inline(part).replace("|", "\\|")
        for part in line
    )


def _line(line: Line) -> str:
    return "".join(map(_inline, line))


def _inline(part: Inline) -> str:
    if isinstance(part, Link):
        return f"[{_code(part.text)}](#{_attribute(part.anchor)})"
    if isinstance(part, Code):
        return _code(part.text)
    return _line_of_text(part.text)


def _line_of_text(text: str) -> str:
    return _MARKUP.sub(r"\\\1", " ".join(text.split("\n")))


def _code(text: str) -> str:
    """Return a code span, fenced by more backticks than it contains in a row."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest or text.startswith(" ") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _attribute(text: str) -> str:
    """Return an anchor as an attribute, with other characters spelled out, so that links need no escapes."""
    return "".join(
        char if char.isascii() and (char.isalnum() or char in "-_") else f"-{ord(char):x}-" for char in text
    )
