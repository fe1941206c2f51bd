"""The log of a load: one line for each attempt, as `soak.judge.logs` reads them."""

from __future__ import annotations

import os
from pathlib import Path

from keywright.errors import (
    ConflictError,
    ConnectionLostError,
    KeywrightError,
    ServerRefusedError,
    UsageError,
)
from soak.judge.logs import DOUBT, NO, OK, TRY

__all__ = ["AcknowledgementLog"]

# These promise that nothing was applied; after any other error the write may be there.
_NOTHING_APPLIED = (ConflictError, ConnectionLostError, ServerRefusedError, UsageError)


class AcknowledgementLog:
    """An append-only file. A line is written in one call, so that a killed process leaves whole lines."""

    def __init__(self, path: Path) -> None:
        self.life = path.read_bytes().count(b"\n") if path.exists() else 0
        """A number that no earlier process with this log had."""
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def begin(self, kind: str, item: object) -> None:
        self._write(TRY, kind, item, "")

    def ok(self, kind: str, item: object) -> None:
        self._write(OK, kind, item, "")

    def failed(self, kind: str, item: object, error: KeywrightError) -> None:
        self._write(NO if isinstance(error, _NOTHING_APPLIED) else DOUBT, kind, item, type(error).__name__)

    def refused(self, kind: str, item: object) -> None:
        self._write(NO, kind, item, "")

    def doubt(self, kind: str, item: object, error: str) -> None:
        self._write(DOUBT, kind, item, error)

    def _write(self, *words: object) -> None:
        os.write(self._file, ("\t".join(map(str, words)) + "\n").encode())
