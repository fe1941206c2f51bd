"""Undo files: the data that a repair removed, and the commands that restore it.

A line is written before the repair it belongs to, and dropped if that changes nothing. So a process that
crashes in between leaves a line too many, never one too few. Undoing goes from the last line to the first
and never overwrites keys that exist again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from keywright.engine import AsyncDatabase
from keywright.errors import (
    EngineError,
    KeywrightError,
    ServerRefusedError,
    UsageError,
    WrongTypeError,
    excerpt,
)
from keywright.keyspace import Call, Keyspace
from keywright.keyspace.call import Plain
from keywright.keyspace.field_expiry import changed
from keywright.keyspace.layouts import Ask
from keywright.keyspace.script import BoundScript, Script
from keywright.keyspace.wires import Effect, Operation
from keywright.tools.audit.matcher import Matcher
from keywright.tools.private_files import open_private, read_private

__all__ = ["Back", "UndoFile", "Undone", "restoring", "undo"]

PUT_BACK = Script("keywright.tools.repair", "put_back", Effect.ONCE)
RESTORE_ENTRY = Script("keywright.tools.repair", "restore_entry", Effect.ONCE)
CHUNK = 1 << 16

# The commands that repairs and edits write, by how they are sent: as they are, of so many words; if a value
# is still as it was written; and for single entries.
WHOLE = {b"RESTORE": 4, b"PEXPIREAT": 3, b"PERSIST": 2, b"HPEXPIREAT": 6, b"HPERSIST": 5, b"XDEL": 3}
TAKEN_BACK = frozenset({b"SET", b"UNLINK", b"HSET", b"HDEL", b"ZADD", b"ZREM", b"LSET", b"LPOP", b"RPOP"})
ENTRIES = frozenset({b"SET", b"SADD", b"SREM", b"HSETNX", b"ZADD", b"LINSERT", b"XADD"})


class Back(msgspec.Struct, omit_defaults=True):
    """One command that undoes a repair: its arguments, the name it is sent to, and the step it belongs to.

    With `wrote` it is sent only if the string, the field or the score is still as the repair wrote it. With
    `ttl_ms` it is an entry, restored in its place; a key that went with its only entry gets this time to live
    (0 for none).
    """

    command: list[bytes]
    name: bytes
    code: str
    wrote: bytes | None = None
    ttl_ms: int | None = None

    @classmethod
    def by(cls, ask: Ask, name: bytes, code: str, ttl_ms: int) -> Back:
        """Return the command that restores an entry of a key that had a time to live."""
        words = [word if isinstance(word, bytes) else b"%d" % word for word in ask.on(name)]
        return cls(words, name, code, ttl_ms=max(0, ttl_ms))


class UndoFile:
    """The file for the data that a repair removes. Created on first use, and removed if it stays empty."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = 0
        self._file: IO[bytes] | None = None

    async def run(self, db: AsyncDatabase, call: Call[Any], *backs: Back) -> bool:
        """Run a call that returns whether it changed anything, after writing the commands that undo it."""
        place = self._keep(backs)
        try:
            changed = bool(await db.run(call))
        except EngineError:
            raise  # it may have been applied
        except KeywrightError:
            self._drop(place, len(backs))
            raise
        if not changed:
            self._drop(place, len(backs))
        return changed

    def open(self) -> None:
        """Open the file before the first step. Raise UsageError if it cannot be private."""
        if self._file is None:
            self._file = _opened(self.path)

    def close(self) -> None:
        if self._file is None:
            return
        if not self._file.tell():
            self.path.unlink()
        self._file.close()

    def _keep(self, backs: tuple[Back, ...]) -> int:
        self.open()
        assert self._file is not None
        place = self._file.tell()
        self._file.writelines(msgspec.json.encode(back) + b"\n" for back in backs)
        self._file.flush()
        os.fsync(self._file.fileno())
        self.lines += len(backs)
        return place

    def _drop(self, place: int, lines: int) -> None:
        assert self._file is not None
        self._file.seek(place)
        self._file.truncate()
        self.lines -= lines


class Undone(NamedTuple):
    """The number of lines that were restored, and of those that were not: the key or entry exists again."""

    restored: int
    left: int


def restoring(name: bytes, code: str, dump: bytes, ttl_ms: int) -> Back:
    """Return the command that restores a whole key with its TTL, if it does not exist."""
    return Back([b"RESTORE", name, str(max(0, ttl_ms)).encode(), dump], name, code)


async def undo(db: AsyncDatabase, path: Path, spaces: Iterable[Keyspace]) -> Undone:
    """Restore the data that a repair of these keyspaces removed, the last change first.

    Raise UsageError, and change nothing, if the file has a line that no repair of them writes.
    """
    restored = left = 0
    matcher = Matcher(spaces, db.context)
    for back in _backwards(path, matcher):
        try:
            done = bool(await db.run(_call(back)))
        except ServerRefusedError as error:
            if not error.reply.startswith(("BUSYKEY", "ERR")):
                raise
            done = False
        except WrongTypeError:
            done = False
        restored, left = restored + done, left + (not done)
    return Undone(restored, left)


def _call(back: Back) -> Call[Any]:
    verb, *rest = back.command
    if back.wrote is not None:
        return BoundScript(PUT_BACK, [back.name], (back.wrote, verb, *rest[1:]))
    if back.ttl_ms is not None:
        return BoundScript(RESTORE_ENTRY, [back.name], (back.ttl_ms, verb, *rest[1:]))
    call = Plain(Operation("undo", verb, Effect.ONCE), tuple(rest), back.name)
    return call.map(changed) if verb in (b"HPEXPIREAT", b"HPERSIST") else call


def _backwards(path: Path, matcher: Matcher) -> Iterator[Back]:
    """Yield the lines in reverse order. Raise UsageError before yielding anything if one is refused."""
    try:
        file = read_private(path)
    except OSError as error:
        raise _no_undo_file(path, error) from error
    with file:
        end = _whole_lines(file)
        starts = []
        file.seek(0)
        while (place := file.tell()) < end:
            _check(_parsed(file.readline(), path), path, matcher)
            starts.append(place)
        for start in reversed(starts):
            file.seek(start)
            yield _parsed(file.readline(), path)


def _check(back: Back, path: Path, matcher: Matcher) -> None:
    """Raise UsageError for a line that no repair writes: such a file may hold any command."""
    verb, length = (back.command or [b""])[0], len(back.command)
    if back.wrote is not None:
        known = verb in TAKEN_BACK
    elif back.ttl_ms is not None:
        known = verb in ENTRIES
    else:
        known = WHOLE.get(verb) == length
    if not known or back.command[1:2] != [back.name]:
        raise UsageError(
            f"{path} has the command {excerpt(verb)}, which no repair writes so. Nothing was restored. Name "
            f"the file that the repair wrote."
        )
    match = matcher.match(back.name)
    ours = match.ours if match is not None else matcher.old_place(back.name) is not None
    # A key of no template was removed whole, if at all.
    if not ours and not (match is None and verb == b"RESTORE" and matcher.belongs(back.name)):
        raise UsageError(
            f"{path} has the name of a key of another model or prefix. Nothing was restored. Name the file "
            f"that a repair of this model wrote."
        )


def _parsed(line: bytes, path: Path) -> Back:
    try:
        return msgspec.json.decode(line, type=Back)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _no_undo_file(path, error) from error


def _no_undo_file(path: Path, error: Exception) -> UsageError:
    return UsageError(f"{path} is not an undo file: {error}. Name the file that the repair wrote.")


def _opened(path: Path) -> IO[bytes]:
    """Open a file after its last complete line."""
    file = open_private(path)
    try:
        file.truncate(file.seek(_whole_lines(file)))
    except OSError:
        file.close()
        raise
    return file


def _whole_lines(file: IO[bytes]) -> int:
    """Return the end of the last complete line. A crash may leave half a line, whose repair did not run."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - CHUNK)
        file.seek(start)
        newline = file.read(end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
