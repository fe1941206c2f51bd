"""A file system of a few megabytes that can be filled: a tmpfs, which needs root."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

__all__ = ["TinyDisk"]

_CHUNK = 64 * 1024


class TinyDisk:
    """A tmpfs on a folder. `available` is False where mounting is not permitted."""

    def __init__(self, folder: Path, *, megabytes: int) -> None:
        self.folder = folder
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "tmpfs", str(folder)]
        self.available = subprocess.run(command, capture_output=True, check=False).returncode == 0

    def fill(self) -> None:
        """Write until no byte is left."""
        file = os.open(self.folder / "filler", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        size = _CHUNK
        while size:
            try:
                os.write(file, b"\0" * size)
            except OSError:
                size //= 2
        os.close(file)

    def free(self) -> None:
        (self.folder / "filler").unlink(missing_ok=True)

    def close(self) -> None:
        """Unmount it. Its files are gone then."""
        if self.available:
            subprocess.run(["umount", "-l", str(self.folder)], check=True)
        self.folder.rmdir()
