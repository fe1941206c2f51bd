"""What the terminal can show, and what the global options ask for: colour, width, quiet and verbose.

Colour: `--color`, else NO_COLOR, else FORCE_COLOR or CLICOLOR_FORCE, else whether the stream is a terminal.
Width: COLUMNS, else that of the terminal. What goes to a file or a pipe is not wrapped, except help.
"""

from __future__ import annotations

import os
import shutil
from enum import Enum
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "NARROWEST",
    "WIDEST",
    "Color",
    "Manner",
    "help_width",
    "is_coloured",
    "manner",
    "rich_console",
    "width_of",
]

NARROWEST, WIDEST = 40, 120
"""No text is laid out for fewer columns, no help for more."""
_USUAL = 80


class Color(Enum):
    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Manner:
    """The global options of this run."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.color = Color.AUTO
        self.quiet = self.debug = False
        self.verbosity = 0


manner = Manner()
"""One for the process, which runs one command; `keywright` resets it at its start."""


def is_coloured(stream: TextIO) -> bool:
    """Return whether text for the stream has colours."""
    if manner.color is not Color.AUTO:
        return manner.color is Color.ALWAYS
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def width_of(stream: TextIO) -> int | None:
    """Return the number of columns to wrap text to; None, if the stream is not a terminal."""
    if not stream.isatty():
        return None
    return max(NARROWEST, _columns() or shutil.get_terminal_size().columns)


def help_width(stream: TextIO) -> int:
    """Return the width of help, which is wrapped everywhere."""
    return max(NARROWEST, min(width_of(stream) or _columns() or _USUAL, WIDEST))


def rich_console(stream: TextIO, width: int | None = None) -> Console:
    """Return a console of rich, for bars and documents, that follows the global options."""
    from rich.console import Console

    coloured = is_coloured(stream)
    return Console(
        file=stream,
        width=width or width_of(stream),
        force_terminal=True if coloured else None,
        color_system="auto" if coloured else None,
        highlight=False,
    )


def _columns() -> int:
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isascii() and given.isdigit() else 0
