"""Checkpoints: the state of an audit in a file, from which an interrupted audit resumes.

SCAN cursors stay valid as long as the server runs: after a restart of a node it is walked from the start.
Counts are kept with the cursor, so a resumed audit reports on everything; a key that is written meanwhile
behind the cursor is not seen.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from keywright.errors import UsageError
from keywright.tools.audit.tally import Tally
from keywright.tools.private_files import overwrite_private, read_private

__all__ = ["Checkpoint"]

EVERY_SECONDS = 5.0


class _Node(msgspec.Struct):
    cursor: int | None
    tally: Tally


class _Saved(msgspec.Struct):
    scope: list[str]
    nodes: dict[str, _Node] = {}


class _Written(msgspec.Struct):
    """The content of the file, with its nodes as text: a tally that is changed later must not go with it."""

    scope: list[str]
    nodes: dict[str, msgspec.Raw]


class Checkpoint:
    """The cursors and counts of each node, written every few seconds and at the end of each node."""

    def __init__(self, path: Path, scope: Sequence[str], saved: dict[str, _Node]) -> None:
        self.path = path
        self._saved = saved
        nodes = {name: msgspec.Raw(msgspec.json.encode(node)) for name, node in saved.items()}
        self._written = _Written(list(scope), nodes)
        self._times: dict[str, float] = {}
        self._begun = time.monotonic()

    @classmethod
    def at(cls, path: Path, scope: Sequence[str]) -> Checkpoint:
        """Load a checkpoint, or begin one. Raise UsageError if the file is malformed or of another audit.

        `scope` identifies the audit: its keyspaces, and the options that its counts depend on.
        """
        if not path.exists():
            return cls(path, scope, {})
        try:
            with read_private(path) as file:
                saved = msgspec.json.decode(file.read(), type=_Saved)
        except (OSError, msgspec.MsgspecError, ValueError) as error:
            raise UsageError(
                f"{path} is not a checkpoint of an audit: {error}. Name another file."
            ) from error
        if saved.scope != list(scope):
            known = ", ".join(saved.scope)
            raise UsageError(f"{path} is the checkpoint of an audit of {known}. Name another file.")
        return cls(path, scope, saved.nodes)

    def of(self, node: str) -> tuple[int | None, Tally]:
        """Return the cursor to resume a node from, None if it is done, and its counts so far."""
        saved = self._saved.get(node)
        return (0, Tally()) if saved is None else (saved.cursor, saved.tally)

    def due(self, node: str) -> bool:
        since = self._times.get(node, self._begun)
        return time.monotonic() - since > EVERY_SECONDS

    def save(self, node: str, cursor: int | None, tally: Tally) -> None:
        self._written.nodes[node] = msgspec.Raw(msgspec.json.encode(_Node(cursor, tally)))
        fresh = self.path.with_name(f"{self.path.name}.new")
        with overwrite_private(fresh) as file:
            file.write(msgspec.json.encode(self._written))
        fresh.replace(self.path)
        self._times[node] = time.monotonic()

    def done(self) -> None:
        """Remove the file: nothing is left to resume."""
        self.path.unlink(missing_ok=True)
