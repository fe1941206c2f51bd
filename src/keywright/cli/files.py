"""Files that commands read and write: told before the work begins that they cannot be, not after it."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from keywright.errors import UsageError

__all__ = ["check_writable", "open_source", "write_file"]


def check_writable(*paths: Path | None) -> None:
    """UsageError for a file that cannot be made: its folder is missing, or it is one itself."""
    for path in paths:
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            reason = "it is a folder" if path.is_dir() else f"there is no folder {path.parent}"
            raise UsageError(f"{path} cannot be written: {reason}. Name another file.")


def write_file(path: Path, text: str) -> None:
    """Write a text file, whatever was in it before."""
    try:
        path.write_text(text, "utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}. Name another file.") from error


def open_source(source: str, opened: ExitStack, expected: str) -> BinaryIO:
    """A file to read, or standard input for `-`; it closes with `opened`."""
    if source == "-":
        return sys.stdin.buffer
    try:
        return opened.enter_context(Path(source).open("rb"))
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror}. Give {expected}.") from error
