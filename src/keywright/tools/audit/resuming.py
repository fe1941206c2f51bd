"""How far an audit came, in a file, so that one that was interrupted goes on from there.

SCAN cursors stay valid as long as the server does. What was counted is kept with the cursor, so a
resumed audit reports on everything; a key written meanwhile behind the cursor is not seen.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from keywright.errors import UsageError
from keywright.tools.audit.tallying import Tally

__all__ = ["Checkpoint"]

EVERY_SECONDS = 5.0


class _Node(msgspec.Struct):
    cursor: int | None
    tally: Tally


class _Saved(msgspec.Struct):
    keyspaces: list[str]
    nodes: dict[str, _Node] = {}


class Checkpoint:
    """The cursors and counts of each node, written every few seconds and at the end of each node."""

    def __init__(self, path: Path | None, keyspaces: Sequence[str], saved: dict[str, _Node]) -> None:
        self.path = path
        self._keyspaces = list(keyspaces)
        self._nodes = saved
        self._written = time.monotonic()

    @classmethod
    def nowhere(cls) -> Checkpoint:
        return cls(None, (), {})

    @classmethod
    def at(cls, path: Path, keyspaces: Sequence[str]) -> Checkpoint:
        """Go on from a file, or begin one; UsageError where it is of another audit."""
        if not path.exists():
            return cls(path, keyspaces, {})
        try:
            saved = msgspec.json.decode(path.read_bytes(), type=_Saved)
        except (msgspec.MsgspecError, ValueError) as error:
            raise UsageError(f"{path} is no checkpoint of an audit: {error}. Name another file.") from error
        if saved.keyspaces != list(keyspaces):
            known = ", ".join(saved.keyspaces)
            raise UsageError(f"{path} is the checkpoint of an audit of {known}. Name another file.")
        return cls(path, keyspaces, saved.nodes)

    def of(self, node: str) -> tuple[int | None, Tally]:
        """Where to go on with a node, None when it is done, and what was counted until there."""
        saved = self._nodes.get(node)
        return (0, Tally()) if saved is None else (saved.cursor, saved.tally)

    def due(self) -> bool:
        return self.path is not None and time.monotonic() - self._written > EVERY_SECONDS

    def save(self, node: str, cursor: int | None, tally: Tally) -> None:
        if self.path is None:
            return
        self._nodes[node] = _Node(cursor, tally)
        fresh = self.path.with_name(f"{self.path.name}.new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # it holds names of keys
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(_Saved(self._keyspaces, self._nodes)))
        fresh.replace(self.path)
        self._written = time.monotonic()

    def done(self) -> None:
        """Nothing is left to resume."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
