"""Files that hold data of a database: undo files, plans, and the progress of audits and migrations.

Only their owner may read and write them. Symbolic links and files of other users are refused, since someone
else could choose what is overwritten, or what is carried out.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

from keywright.errors import UsageError

__all__ = ["open_private", "overwrite_private", "read_private"]


def open_private(path: Path) -> IO[bytes]:
    """Open a file for reading and writing, and create it if need be. Raise UsageError if it is refused."""
    return _checked(path, os.O_RDWR | os.O_CREAT, "r+b")


def overwrite_private(path: Path) -> IO[bytes]:
    """Open an empty file for writing. Raise UsageError if it is refused."""
    file = open_private(path)
    file.truncate()
    return file


def read_private(path: Path) -> IO[bytes]:
    """Open a file for reading. Raise UsageError if others may write it, too."""
    return _checked(path, os.O_RDONLY, "rb")


def _checked(path: Path, flags: int, mode: str) -> IO[bytes]:
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise UsageError(f"{path} is a symbolic link. Name the file itself.") from error
    try:
        _check(path, os.fstat(descriptor), written=flags != os.O_RDONLY)
        if flags != os.O_RDONLY:
            os.fchmod(descriptor, 0o600)
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, mode)


def _check(path: Path, found: os.stat_result, *, written: bool) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UsageError(f"{path} is not a regular file. Name another one.")
    if found.st_uid != os.geteuid():
        raise UsageError(f"{path} belongs to another user. Name a file of your own.")
    if not written and found.st_mode & 0o022:
        raise UsageError(
            f"{path} can be changed by other users. Check its content, then run chmod 600 on it."
        )
