"""The way back: a file of what a repair took away, and the commands that put it there again.

A line is written before the repair it belongs to, so a process that dies in between leaves a line too
many, never one too few. Undoing goes from the last line to the first and never writes over a key that
is there again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from keywright.engine import AsyncDatabase
from keywright.errors import KeywrightError, ServerRefusedError, UsageError, WrongTypeError
from keywright.keyspace.call import Effect, Operation, Plain
from keywright.tools.repair.planning import owners_file

__all__ = ["UndoFile", "Undone", "restoring", "undo"]

READ = Operation("repair", b"", Effect.READ)


class _Line(msgspec.Struct):
    """One command that takes a repair back: its words, the name it is sent to, and what it belongs to."""

    command: list[bytes]
    name: bytes
    code: str


class UndoFile:
    """Where a repair writes what it takes away; begun when there is something, for its owner's eyes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = 0
        self._file: IO[bytes] | None = path.open("ab") if path.exists() else None

    def keep(self, name: bytes, code: str, command: Sequence[bytes | int]) -> None:
        if self._file is None:
            self._file = owners_file(self.path)
        words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
        self._file.write(msgspec.json.encode(_Line(words, name, code)) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.lines += 1

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class Undone(NamedTuple):
    """How many lines were put back, and how many could not be: something is there again, or a stream,
    which takes no entry older than its last."""

    restored: int
    left: int


def restoring(name: bytes, dump: bytes, ttl_ms: int, *, replace: bool = False) -> list[bytes | int]:
    """The command that puts a whole key back as it was, with the time it had left."""
    return [b"RESTORE", name, max(0, ttl_ms), dump, *([b"REPLACE"] if replace else [])]


async def undo(db: AsyncDatabase, path: Path) -> Undone:
    """Put back what a repair took away, the last first."""
    restored = left = 0
    for line in reversed(_read(path)):
        verb, *rest = line.command
        try:
            await db.run(Plain(Operation("undo", verb, Effect.ONCE), tuple(rest), line.name))
        except ServerRefusedError as error:
            if not error.reply.startswith(("BUSYKEY", "ERR")):
                raise
            left += 1
        except WrongTypeError:
            left += 1
        else:
            restored += 1
    return Undone(restored, left)


def _read(path: Path) -> list[_Line]:
    try:
        return [msgspec.json.decode(line, type=_Line) for line in path.read_bytes().splitlines()]
    except (OSError, msgspec.MsgspecError, KeywrightError) as error:
        raise UsageError(f"{path} is no undo file: {error}. Name the one that the repair wrote.") from error
