"""A Markdown document as blocks: headings, lines of text, list items, tables and code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from keywright.errors import UsageError, dependencies_of

if TYPE_CHECKING:
    from markdown_it.token import Token

__all__ = ["LARGEST", "Block", "Code", "Heading", "Line", "Span", "Table", "Text", "blocks_of", "text_of"]

LARGEST = 1 << 19
MOST_BLOCKS = 20_000


class Span(NamedTuple):
    """A run of text, or a code span."""

    text: str
    is_code: bool = False


Line: TypeAlias = tuple[Span, ...]


class Heading(NamedTuple):
    number: int
    level: int
    line: Line


class Text(NamedTuple):
    """A paragraph. In a list, `depth` is how deep it is nested and `group` is the same for all items."""

    number: int
    lines: tuple[Line, ...]
    depth: int = 0
    group: int = 0


class Table(NamedTuple):
    number: int
    header: tuple[Line, ...]
    rows: tuple[tuple[Line, ...], ...]


class Code(NamedTuple):
    number: int
    language: str
    text: str


Block: TypeAlias = Heading | Text | Table | Code


def text_of(line: Line) -> str:
    return "".join(span.text for span in line)


def blocks_of(source: bytes) -> list[Block]:
    """Return the blocks of a document. Raise UsageError if it is too large."""
    if len(source) > LARGEST:
        raise UsageError(
            f"the document has {len(source):,} bytes, more than {LARGEST:,}. "
            "Give the part that describes keys."
        )
    with dependencies_of("inference from a document", install="keywright[cli]"):
        from markdown_it import MarkdownIt

    # Without HTML, `<id>` is text.
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(source.decode("utf-8", "replace").removeprefix("\ufeff"))
    found: list[Block] = []
    for block in _blocks(tokens):
        found.append(block)
        if len(found) >= MOST_BLOCKS:
            break
    return found


def _blocks(tokens: Sequence[Token]) -> Iterator[Block]:
    groups: list[int] = []
    level, number = 0, 0
    rows: list[list[Line]] = []
    in_table = False
    for token in tokens:
        if token.map:
            number = token.map[0] + 1
        match token.type:
            case "heading_open":
                level = int(token.tag[1:])
            case "heading_close":
                level = 0
            case "bullet_list_open" | "ordered_list_open":
                groups.append(number)
            case "bullet_list_close" | "ordered_list_close":
                groups.pop()
            case "table_open":
                rows, in_table = [], True
            case "tr_open":
                rows.append([])
            case "table_close":
                in_table = False
                if rows:
                    yield Table(number, tuple(rows[0]), tuple(map(tuple, rows[1:])))
            case "fence" | "code_block":
                yield Code(number, token.info.strip().split(" ")[0].lower(), token.content)
            case "inline":
                lines = _lines(token.children or ())
                joined = tuple(span for line in lines for span in line)
                if in_table:
                    rows[-1].append(joined)
                elif level:
                    yield Heading(number, level, joined)
                else:
                    yield Text(number, lines, len(groups), groups[-1] if groups else 0)


def _lines(children: Sequence[Token]) -> tuple[Line, ...]:
    lines: list[list[Span]] = [[]]
    for child in children:
        if child.type in ("softbreak", "hardbreak"):
            lines.append([])
        elif child.type == "code_inline":
            lines[-1].append(Span(child.content, is_code=True))
        elif child.content and child.type in ("text", "text_special"):
            lines[-1].append(Span(child.content))
    return tuple(tuple(line) for line in lines if line)
