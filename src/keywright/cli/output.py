"""The output of commands: lines for people, JSON and other formats for programs.

All text that a command prints goes through here, so that no stored name or value controls a terminal. On a
terminal lines are wrapped to its width and coloured by meaning; elsewhere each stays whole and plain.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import typer

from keywright.cli.paragraphs import laid_out
from keywright.cli.terminal import is_coloured, manner, width_of
from keywright.tools.layout import Block, Line, Meaning
from keywright.tools.terminal import printable

__all__ = [
    "UNCHANGED",
    "as_json",
    "detail",
    "echo",
    "echo_error",
    "echo_exact",
    "echo_json",
    "note",
    "printable",
    "warn",
]

UNCHANGED = Line(Meaning.MUTED("Nothing was changed. Add --yes to do it."))
"""Ends the output of a command that only shows its plan."""

# Those that JSON leaves as they are.
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def echo(*blocks: Block, err: bool = False) -> None:
    """Print lines and tables for people. A newline or a control character inside a line is escaped."""
    stream = sys.stderr if err else sys.stdout
    coloured = is_coloured(stream)
    for line in laid_out(blocks, width_of(stream), coloured=coloured):
        # Told whether it may have colours, typer does not remove those of --color always.
        typer.echo(line, err=err, color=coloured)


def echo_error(message: str, *more: str) -> None:
    """Print to standard error why a command does not do what it was asked for, and further lines."""
    echo(Line(Meaning.ERROR("error:"), f" {message}", hang=2), *more, err=True)


def warn(message: str) -> None:
    """Print to standard error what a person should know about the result, even with --quiet."""
    echo(Line(Meaning.WARNING("warning:"), " ", message, hang=2), err=True)


def note(*lines: Block) -> None:
    """Print to standard error what a command does or did, and what can be done next. Not with --quiet."""
    if not manner.quiet:
        echo(*lines, err=True)


def detail(*lines: str) -> None:
    """Print to standard error what only --verbose shows."""
    if manner.verbosity:
        echo(*(Line(Meaning.MUTED(line), hang=2) for line in lines), err=True)


def echo_json(text: str | bytes, *, nl: bool = True) -> None:
    """Print JSON as it is; on a terminal, characters that could control it are JSON escapes."""
    if sys.stdout.isatty():
        text = text if isinstance(text, str) else text.decode("utf-8", "replace")
        text = _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
    echo_exact(text, nl=nl)


def echo_exact(text: str | bytes, *, nl: bool = True) -> None:
    """Print a document in a format for programs, byte for byte."""
    typer.echo(text, nl=nl)


def as_json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=not _prints_unicode(), allow_nan=False)


def _prints_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
