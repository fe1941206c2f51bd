"""The help of commands, for the width of the terminal.

A docstring is a summary, paragraphs, and below a line `Examples:` the indented examples.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from inspect import cleandoc
from typing import Any, NamedTuple

from keywright.cli.paragraphs import cells, laid_out
from keywright.cli.params import is_option, notes_of, spelling, usage
from keywright.cli.terminal import help_width, is_coloured
from keywright.tools.layout import Block, Line, Meaning, Part

__all__ = ["HelpText", "help_text", "rendered"]

EXAMPLES = "Examples:"
GLOBAL = "Global options"

_LITERAL = re.compile(r"(`[^`]+`|(?<![\w-])--[a-z][a-z-]*[a-z])")
_LARGEST_SHARE = 0.34
"""Of the width, for the names of options."""

Row = tuple[str, str, str]
"""What is explained, the explanation, and notes such as the default."""


class HelpText(NamedTuple):
    """The parts of a docstring."""

    paragraphs: list[str]
    examples: list[str]


def help_text(text: str) -> HelpText:
    """Return the paragraphs of a docstring, each as one line, and its examples."""
    paragraphs, examples, found = [], list[str](), False
    for block in re.split(r"\n\s*\n", cleandoc(text).strip()):
        first, _, rest = block.partition("\n")
        if first.strip() == EXAMPLES:
            found = True
            examples += [line.strip() for line in rest.splitlines()]
        elif found:
            examples += [line.strip() for line in block.splitlines()]
        elif block:
            paragraphs.append(" ".join(block.split()))
    return HelpText(paragraphs, examples)


def rendered(command: Any, ctx: Any, common: set[str]) -> str:
    """Return the help of a command. `common` are the names of the options that every command has."""
    width = help_width(sys.stdout)
    lines = laid_out(_blocks(command, ctx, common, width), width, coloured=is_coloured(sys.stdout))
    return "\n".join(lines)


def _blocks(command: Any, ctx: Any, common: set[str], width: int) -> Iterator[Block]:
    text = help_text(command.help or "")
    for paragraph in text.paragraphs[:1]:
        yield Line(*_marked(paragraph))
    yield ""
    yield Line(Meaning.HEADING("Usage:"), f" {usage(command, ctx.command_path)}", hang=7)
    for paragraph in text.paragraphs[1:]:
        yield ""
        yield Line(*_marked(paragraph))
    if text.examples:
        yield from _headed("Examples", [Line("  ", *_example(line)) for line in text.examples])
    sections = [*_sections(command, ctx, common)]
    for heading, rows in sections:
        # Options have one column, and arguments and commands another.
        alike = [row for _, others in sections for row in others if _is_option(row) == _is_option(rows[0])]
        column = _column(alike, width)
        yield from _headed(heading, [line for row in rows for line in _row(row, column)])
    if hasattr(command, "sections"):
        yield ""
        yield Line(*_marked(f"`{ctx.command_path} COMMAND --help` explains a command."))


def _sections(command: Any, ctx: Any, common: set[str]) -> Iterator[tuple[str, list[Row]]]:
    params = [param for param in command.get_params(ctx) if not getattr(param, "hidden", False)]
    arguments = [param for param in params if not is_option(param)]
    if any(param.help for param in arguments):
        yield "Arguments", [_described(param) for param in arguments]
    if hasattr(command, "sections"):
        for heading, commands in command.sections(ctx).items():
            yield heading, [(name, summary, "") for name, summary in commands]
    groups: dict[str, list[Row]] = {}
    for param in params:
        if is_option(param):
            everywhere = param.name in common or param.name == "help"
            heading = GLOBAL if everywhere else str(getattr(param, "rich_help_panel", None) or "Options")
            groups.setdefault(heading, []).append(_described(param))
    for heading in sorted(groups, key=lambda heading: (heading == GLOBAL, heading != "Options")):
        yield heading, groups[heading]


def _described(param: Any) -> Row:
    return spelling(param), " ".join((param.help or "").split()), notes_of(param)


def _headed(heading: str, lines: Iterable[Block]) -> Iterator[Block]:
    yield ""
    yield Line(Meaning.HEADING(f"{heading}:"))
    yield from lines


def _column(rows: Sequence[Row], width: int) -> int:
    """Return how wide the names of all sections are; a longer one has a line of its own."""
    most = int(width * _LARGEST_SHARE)
    return max((cells(name) for name, _, _ in rows if cells(name) <= most), default=0)


def _is_option(row: Row) -> bool:
    return row[0].startswith("-")


def _row(row: Row, column: int) -> Iterator[Line]:
    name, text, notes = row
    parts = [*_marked(text), *([" "] if text and notes else []), *([Meaning.MUTED(notes)] if notes else [])]
    indent = column + 4
    if cells(name) > column:
        yield Line("  ", Meaning.NAME(name), hang=4)
        yield Line(" " * indent, *parts, hang=indent)
    else:
        yield Line("  ", Meaning.NAME(name), " " * (indent - 2 - cells(name)), *parts, hang=indent)


def _marked(text: str) -> list[Part]:
    return [Meaning.NAME(part) if number % 2 else part for number, part in enumerate(_LITERAL.split(text))]


def _example(line: str) -> list[Part]:
    command, mark, comment = line.partition("  #")
    return [Meaning.NAME(command), *([Meaning.MUTED(mark + comment)] if mark else [])]
