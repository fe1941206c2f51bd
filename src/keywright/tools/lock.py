"""Lock files: a declaration at one moment, to commit and to compare later ones with (`keywright diff`)."""

from __future__ import annotations

from pathlib import Path

import msgspec

from keywright.errors import UsageError
from keywright.tools.model import ModelDescription

__all__ = ["FORMAT", "Lock", "lock_text", "parsed_lock", "read_lock", "write_lock"]

FORMAT = 1


class Lock(msgspec.Struct, frozen=True):
    """The content of a lock file: the number of its format, and the model."""

    format: int
    model: ModelDescription


def lock_text(model: ModelDescription) -> str:
    """Return the text of a lock file. It is the same for the same declaration."""
    return msgspec.json.format(msgspec.json.encode(Lock(FORMAT, model)), indent=1).decode() + "\n"


def write_lock(path: Path, model: ModelDescription) -> None:
    path.write_text(lock_text(model), "utf-8")


def read_lock(path: Path) -> ModelDescription:
    """Return the model of a lock file. Raise UsageError if it is malformed or of a newer Keywright."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the lock file {path} cannot be read: {error.strerror}. Make it with --write."
        ) from error
    return parsed_lock(data, str(path))


def parsed_lock(data: bytes, source: str) -> ModelDescription:
    try:
        found = msgspec.json.decode(data, type=Lock)
    except msgspec.MsgspecError as error:
        raise UsageError(
            f"{source} is not a lock file: {error}. Make one with --lock FILE --write."
        ) from error
    if found.format != FORMAT:
        raise UsageError(f"{source} has the format {found.format}, not {FORMAT}. Upgrade keywright.")
    return found.model
