"""Files that commands read and write, checked before the work begins."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from keywright.errors import UsageError

__all__ = ["check_writable", "open_source", "write_file"]


def check_writable(*paths: Path | None) -> None:
    """Raise UsageError for a path that is a folder, or whose folder does not exist."""
    for path in paths:
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            reason = "it is a folder" if path.is_dir() else f"the folder {path.parent} does not exist"
            raise UsageError(f"{path} cannot be written: {reason}. Name another file.")


def write_file(path: Path, text: str) -> None:
    """Write a text file, replacing its content. Raise UsageError if that fails."""
    try:
        path.write_text(text, "utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}. Name another file.") from error


def open_source(source: str, opened: ExitStack, expected: str) -> BinaryIO:
    """Return an open file, or standard input for `-`; it closes with `opened`."""
    if source == "-":
        return sys.stdin.buffer
    try:
        return opened.enter_context(Path(source).open("rb"))
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror}. Give {expected}.") from error
