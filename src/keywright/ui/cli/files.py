"""Files that commands write: told before the work begins that they cannot be, not after it."""

from __future__ import annotations

from pathlib import Path

from keywright.errors import UsageError

__all__ = ["check_writable", "write_file"]


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
