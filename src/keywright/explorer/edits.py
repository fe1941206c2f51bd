"""Edits of one explorer: the commands of each are shown first, then written in one commit, and can be undone.

Commands are bound when they are shown, so that what is written is what was shown. How to undo them is written
to an undo file of its own first: a process that dies in between leaves a line too many, never one too few.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from keywright.engine import AsyncDatabase
from keywright.errors import ConflictError, EngineError, KeywrightError, ServerRefusedError, UsageError
from keywright.explorer.edit_forms import Change
from keywright.explorer.key_reader import ask
from keywright.keyspace import Call, Key, Keyspace, Record, gather_list
from keywright.keyspace.call import Command, Plain, as_is
from keywright.keyspace.checks import Check, absent, equals, field_equals, has_member
from keywright.keyspace.commits.journal import commit
from keywright.keyspace.commits.work import Work, bind
from keywright.keyspace.layouts import pairs
from keywright.keyspace.wires import Effect, Operation
from keywright.tools.repair.commands import quoted
from keywright.tools.repair.fixes import removes
from keywright.tools.repair.reversal import reversed_writes
from keywright.tools.repair.undo import Back, UndoFile, undo

__all__ = ["Edit", "Edits"]

MOST_EDITS = 20
ATTEMPTS = 8
CODE = "edit"
RENEWING = frozenset({b"PEXPIRE", b"PEXPIREAT", b"PERSIST"})
TTL = Operation("edit", b"PTTL", Effect.READ)
INFO = Operation("edit", b"XINFO", Effect.READ)
# The undo commands that one commit can send.
TOGETHER = frozenset({b"SET", b"UNLINK", b"HSET", b"HDEL", b"SADD", b"SREM", b"HSETNX"})


class Edit:
    """One edit. `state` is planned, applied, overtaken, failed, undone, or kept (the undo was overtaken)."""

    def __init__(
        self, number: int, title: str, key: Key, name: bytes, checks: list[Check], work: Work, undo_file: Path
    ) -> None:
        self.number = number
        self.title = title
        self.key = key
        self.name = name
        self.checks = checks
        self.work = work
        self.undo_file = undo_file
        self.commands = [_command(work, index, words) for index, words in work.writes]
        self.state = "planned"
        self.begun = time.time()
        self.problem: str | None = None
        self.backs: list[Back] = []
        self.texts: dict[bytes, bytes] = {}
        """The strings that it deletes, so that one commit can restore them."""

    @property
    def removes(self) -> bool:
        return removes(self.work)

    @property
    def mark(self) -> str:
        """Return the digest of the commands, by which a form names the edit that was shown."""
        return hashlib.blake2b(repr(self.work.writes).encode(), digest_size=12).hexdigest()

    @property
    def can_undo(self) -> bool:
        return self.state in ("applied", "failed", "kept") and self.undo_file.exists()


class Edits:
    """The edits of one explorer, the newest first."""

    def __init__(
        self,
        db: AsyncDatabase,
        spaces: Sequence[Keyspace],
        key_of: Callable[[bytes], Key],
        *,
        writable: bool,
        undo_file: Path,
    ) -> None:
        self.db = db
        self.spaces = tuple(spaces)
        self.key_of = key_of
        self.writable = writable
        self.undo_file = undo_file
        self.edits: deque[Edit] = deque(maxlen=MOST_EDITS)
        self._number = 0
        self._one = asyncio.Lock()

    def edit(self, number: int) -> Edit | None:
        return next((each for each in self.edits if each.number == number), None)

    def plan(self, title: str, key: Key, change: Change) -> Edit:
        """Bind a change to its commands. Nothing is written."""
        self._require_writable()
        self._number += 1
        moment = f"{datetime.now():%Y%m%d-%H%M%S}-edit-{self._number}"
        path = self.undo_file.with_name(f"{self.undo_file.stem}-{moment}{self.undo_file.suffix}")
        work = bind(self.db.context, change.checks, change.writes)
        edit = Edit(self._number, title, key, self.db.context.name(key), change.checks, work, path)
        self.edits.appendleft(edit)
        return edit

    async def apply(self, edit: Edit, mark: str) -> None:
        """Write a planned edit. Raise UsageError if it is not the one that `mark` names."""
        self._require_writable()
        async with self._one:
            if edit.state != "planned" or mark != edit.mark:
                raise UsageError(
                    "the edit was applied, or is not the one that was shown. Open its page again."
                )
            try:
                done = await self._applied(edit)
            except ConflictError:
                done = False
            except ServerRefusedError as error:
                edit.state, edit.problem = "failed", str(error)
                return
            except EngineError as error:
                edit.state = "failed"
                edit.problem = f"{error} It may have been written: look at the key, and undo it if it was."
                raise
            except (KeywrightError, ValueError) as error:
                edit.state, edit.problem = "failed", str(error)
                return
            edit.state = "applied" if done else "overtaken"

    async def undo(self, edit: Edit) -> None:
        """Take an edit back, all of it, unless something of it was changed since."""
        self._require_writable()
        async with self._one:
            if not edit.can_undo:
                raise UsageError("there is nothing to undo: the edit was not applied, or was undone.")
            edit.state = "undone" if await self._undone(edit) else "kept"

    async def _applied(self, edit: Edit) -> bool:
        for _ in range(ATTEMPTS):  # an id of a stream may be taken meanwhile
            work = await self._placed(edit.work)
            data = work._replace(writes=[each for each in work.writes if each[1][0] not in RENEWING])
            backs, unchanged = await reversed_writes(self.db, data, self.key_of, CODE, ordered=True)
            edit.backs = [*await self._expiries(work), *backs]
            edit.texts = await self._deleted_texts(work)
            writes = [_write(self.key_of(work.names[index]), words) for index, words in work.writes]
            call = commit("edit", [*edit.checks, *unchanged], writes)
            try:
                return await self._kept(edit, call)
            except ServerRefusedError as error:
                edit.undo_file.unlink(missing_ok=True)  # a refused script wrote nothing
                if "equal or smaller" not in error.reply:
                    raise
        return False

    async def _kept(self, edit: Edit, call: Call[Any]) -> bool:
        """Run a commit after its undo commands are written."""
        file = UndoFile(edit.undo_file)
        file.open()
        try:
            return await file.run(self.db, call, *edit.backs)
        finally:
            file.close()

    async def _placed(self, work: Work) -> Work:
        """Return the work with an id for a new entry of a stream: an undo must know it before."""
        writes = []
        for index, words in work.writes:
            is_new = words[:2] == [b"XADD", b"*"]
            placed = [b"XADD", await self._next_id(work.names[index]), *words[2:]] if is_new else words
            writes.append((index, placed))
        return work._replace(writes=writes)

    async def _next_id(self, name: bytes) -> bytes:
        now = self.db.context.now_ms()
        try:
            found = await self.db.run(Plain(INFO, (b"STREAM", name), name))
        except ServerRefusedError:
            return b"%d-0" % now  # there is no stream yet
        last = dict(pairs(found))[b"last-generated-id"]
        moment, _, number = last.partition(b"-")
        return b"%d-0" % now if now > int(moment) else b"%s-%d" % (moment, int(number) + 1)

    async def _expiries(self, work: Work) -> list[Back]:
        """Return the commands that restore the expiry of keys whose expiry is changed."""
        names = list(
            dict.fromkeys(work.names[index] for index, (verb, *_) in work.writes if verb in RENEWING)
        )
        found = await self.db.run(gather_list(Plain(TTL, (name,), name) for name in names))
        backs = []
        for name, ttl in zip(names, found, strict=True):
            until = b"%d" % (self.db.context.now_ms() + ttl)
            if ttl != -2:
                words = [b"PERSIST", name] if ttl < 0 else [b"PEXPIREAT", name, until]
                backs.append(Back(words, name, CODE))
        return backs

    async def _deleted_texts(self, work: Work) -> dict[bytes, bytes]:
        names = [work.names[index] for index, (verb, *_) in work.writes if verb == b"UNLINK"]
        names = [name for name in names if self.key_of(name).redis_type == "string"]
        found = await self.db.run(gather_list(ask(b"GET", name).attempt() for name in names))
        return {name: text for name, text in zip(names, found, strict=True) if isinstance(text, bytes)}

    async def _undone(self, edit: Edit) -> bool:
        """Undo in one commit where one can do it, else line by line; each line checks that it still may."""
        together: list[tuple[Check | None, Call[Any]]] = []
        for back in reversed(edit.backs):
            found = self._taken_back(edit, back)
            if found is None:
                result = await undo(self.db, edit.undo_file, self.spaces)
                return result.left == 0
            together.append(found)
        checks = [check for check, _ in together if check is not None]
        return bool(await self.db.run(commit("undo edit", checks, [write for _, write in together])))

    def _taken_back(self, edit: Edit, back: Back) -> tuple[Check | None, Call[Any]] | None:
        """Return the check that a part is as the edit left it, and the write that takes it back."""
        key, (verb, _, *words) = self.key_of(back.name), back.command
        if verb == b"RESTORE" and back.name in edit.texts:
            lasting = [b"PX", words[0]] if words[0] != b"0" else []
            return absent(key), _write(key, [b"SET", edit.texts[back.name], *lasting])
        if verb in (b"PERSIST", b"PEXPIREAT"):
            return None, _write(key, back.command[:1] + words)
        if verb not in TOGETHER:
            return None
        write = _write(key, [b"HSET" if verb == b"HSETNX" else verb, *words])
        if verb in (b"SADD", b"SREM"):
            # One member each: an edit writes no more at once.
            return has_member(key, words[0], present=verb == b"SREM"), write
        if verb in (b"HSET", b"HDEL", b"HSETNX"):
            return field_equals(key, words[0], back.wrote), write
        return equals(key, back.wrote), write

    def _require_writable(self) -> None:
        if not self.writable:
            raise UsageError("this explorer is read-only. Start it with --write to edit.")


def _write(key: Key, words: Sequence[bytes]) -> Command[Any]:
    return Command(Operation("edit", words[0], Effect.ONCE), key, tuple(words[1:]), as_is)


def _command(work: Work, index: int, words: Sequence[bytes]) -> str:
    """Return a command in the syntax of redis-cli, without secrets."""
    kind, (verb, *arguments) = work.kinds[index], words
    shown = [quoted(each) for each in arguments]
    declared = kind.declaration
    if declared.secret or declared.sealed or kind.hides:
        shown = _masked(kind, verb, arguments, shown)
    return " ".join([verb.decode(), quoted(work.names[index]), *shown])


def _masked(kind: type[Key], verb: bytes, arguments: Sequence[bytes], shown: list[str]) -> list[str]:
    field = kind.declaration.storage.field
    if field is not None and field.secret:
        return ["(secret)" for _ in shown]
    if verb in (b"PEXPIRE", b"PEXPIREAT", b"PERSIST", b"HDEL", b"XDEL"):
        return shown
    if verb == b"HSET" and issubclass(kind, Record) and not kind.hides:
        secret = {
            member.stored
            for shape in kind.shapes()
            for member in shape.members
            if member.codec.secret or member.codec.sealed
        }
        return [
            "(secret)" if place % 2 and arguments[place - 1] in secret else each
            for place, each in enumerate(shown)
        ]
    if verb == b"HSET":
        return ["(secret)" if place % 2 else each for place, each in enumerate(shown)]
    if verb == b"SET":
        return ["(secret)", *shown[1:]]
    return ["(secret)" for _ in shown]
