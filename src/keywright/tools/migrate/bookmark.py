"""Bookmarks: the state of a migration in a file, from which a stopped migration resumes.

Losing the file costs only time: keys that are up to date stay unchanged, so a migration may always restart.
"""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from keywright.errors import UsageError
from keywright.tools.migrate.progress import SweepCounts
from keywright.tools.private_files import overwrite_private, read_private

__all__ = ["Bookmark"]

EVERY_SECONDS = 1.0


class _Saved(msgspec.Struct):
    task: str
    cursors: dict[str, int | None] = {}
    counts: dict[str, SweepCounts] = {}
    seen: int = 0
    page: str = ""


class Bookmark:
    """The cursor of each node, or the last page of a conversion, and the counts until there."""

    def __init__(self, task: str, path: Path | None = None) -> None:
        self.path = path
        self.saved = _Saved(task)
        self._written = 0.0

    @classmethod
    def at(cls, path: Path, task: str) -> Bookmark:
        """Load a bookmark, or begin one. Raise UsageError if it is malformed or of another migration."""
        bookmark = cls(task, path)
        if path.exists():
            bookmark.saved = _read(path)
            if bookmark.saved.task != task:
                raise UsageError(
                    f"{path} is the bookmark of {bookmark.saved.task!r}, not of {task!r}. Name another file."
                )
        return bookmark

    def cursor(self, node: str) -> int | None:
        """Return the cursor to resume a node from; None if it is done."""
        return self.saved.cursors.get(node, 0)

    def passed(self, page: str) -> bool:
        """Return whether a page of a conversion was converted before the bookmark was saved."""
        return page <= self.saved.page

    def at_cursor(self, node: str, cursor: int | None) -> None:
        """Save the cursor that the scan of a node has reached; None is the end."""
        self.saved.cursors[node] = cursor
        self._save()

    def at_page(self, page: str) -> None:
        """Save the page that the conversion has reached."""
        self.saved.page = page
        self._save()

    def save(self) -> None:
        """Write the file now, as before stopping."""
        if self.path is None:
            return
        fresh = self.path.with_name(f"{self.path.name}.new")
        with overwrite_private(fresh) as file:
            file.write(msgspec.json.encode(self.saved))
        fresh.replace(self.path)
        self._written = time.monotonic()

    def done(self) -> None:
        """Remove the file: nothing is left to resume."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _save(self) -> None:
        if time.monotonic() - self._written > EVERY_SECONDS:
            self.save()


def _read(path: Path) -> _Saved:
    try:
        with read_private(path) as file:
            return msgspec.json.decode(file.read(), type=_Saved)
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        raise UsageError(f"{path} is not a bookmark of a migration: {error}. Name another file.") from error
