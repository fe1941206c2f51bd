"""The file of a dump: which file it is, its header, and reads at any place of it.

A path is a dump (`dump.rdb`), an append-only file that begins with one, or the folder of a server's
append-only files, whose manifest names the dump. Commands behind the dump are not read, and reported.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from keywright.errors import DumpError, UsageError

__all__ = ["DumpFile", "Header", "open_dump"]

_MAGIC = re.compile(rb"(?:(REDIS)[0-9]|(VALKEY))([0-9]{3})")
_LISTED = re.compile(r'file\s+("(?:[^"\\]|\\.)*"|\S+)\s+seq\s+[0-9]+\s+type\s+([bhi])')
LARGEST_MANIFEST = 1 << 20
LOWEST = {"Redis": 1, "Valkey": 80}


class Header(NamedTuple):
    """The first bytes: which product wrote the file, in which version of the format, and where they end."""

    product: str
    version: int
    end: int


class DumpFile:
    """An open file. Reads take an offset, so several readers share it."""

    def __init__(self, path: Path, shown: str, unread: int = 0) -> None:
        self.shown = shown
        self.unread = unread
        """The bytes of other files with commands that were written after the dump."""
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}. Name the file of a dump.") from error
        try:
            found = os.fstat(self._descriptor)
            self.size = found.st_size
            self.modified_ms = found.st_mtime_ns // 1_000_000
            self.identity = f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}"
            if not os.path.isfile(path):
                raise UsageError(f"{path} is not a regular file. Save the dump in one.")
            self.header = self._header()
        except BaseException:
            self.close()
            raise

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from a place on; fewer at the end of the file."""
        if self._descriptor < 0:
            raise UsageError(f"{self.shown} is closed. Open it again.")
        try:
            return os.pread(self._descriptor, size, offset)
        except (OSError, OverflowError) as error:
            raise self.malformed(offset, f"it cannot be read: {error}") from error

    def malformed(self, offset: int, reason: str) -> DumpError:
        return DumpError(self.shown, offset, reason)

    def truncated(self, offset: int) -> DumpError:
        return self.malformed(offset, "the file ends in the middle of it")

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _header(self) -> Header:
        start = self.read(0, 10)
        found = _MAGIC.match(start)
        if found is None:
            if start[:1] == b"*":
                raise self.malformed(
                    0, "it is an append-only file of commands without a dump at its beginning"
                )
            raise self.malformed(0, "it does not begin with REDIS or VALKEY")
        product = "Redis" if found[1] else "Valkey"
        version = int(start[5:9] if found[1] else found[3])
        if version < LOWEST[product]:
            raise self.malformed(0, f"its version {version} does not exist")
        return Header(product, version, found.end())


def open_dump(path: Path) -> DumpFile:
    """Open a dump. Raise UsageError for a path without one, DumpError for a file of another form."""
    if not path.is_dir():
        return DumpFile(path, str(path))
    manifest = next(iter(sorted(path.glob("*.manifest"))), None)
    if manifest is None:
        raise UsageError(f"{path} has no manifest of append-only files. Name the file of a dump.")
    base, unread = _listed(path, manifest)
    return DumpFile(base, str(base), unread)


def _listed(folder: Path, manifest: Path) -> tuple[Path, int]:
    """Return the file that a manifest names as the dump, and the size of the later files of commands."""
    try:
        with manifest.open("rb") as file:
            text = file.read(LARGEST_MANIFEST).decode("utf-8", "surrogateescape")
    except OSError as error:
        raise UsageError(f"{manifest} cannot be read: {error.strerror}. Name the file of a dump.") from error
    base, unread = None, 0
    for quoted, kind in _LISTED.findall(text):
        name = quoted.strip('"')
        if "/" in name or name in ("", ".", ".."):
            raise UsageError(f"{manifest} names a file outside of its folder. Name the file of a dump.")
        if kind == "b":
            base = folder / name
        elif kind == "i":
            unread += (folder / name).stat().st_size if (folder / name).is_file() else 0
    if base is None:
        raise UsageError(
            f"{manifest} names no base file. Run BGREWRITEAOF on the server, or take a dump: redis-cli --rdb."
        )
    return base, unread
