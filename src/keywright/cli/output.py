"""The output of commands: lines for people, JSON and other formats for programs.

All text that a command prints goes through here, so that no stored name or value controls a terminal.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import typer

from keywright.tools.terminal import printable

__all__ = ["as_json", "echo", "echo_exact", "echo_json", "printable"]

# Those that JSON leaves as they are.
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def echo(*lines: str, err: bool = False) -> None:
    """Print lines for people. A newline or a control character inside a line is escaped."""
    for line in lines:
        typer.echo(printable(line), err=err)


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
