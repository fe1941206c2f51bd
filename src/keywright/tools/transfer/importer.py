"""Import: the keys of an export are checked, all of them, before the first one is written.

Each key is written whole by one script, or not at all. If the process dies in between, some keys are there
and others are not: run it again, since keys that are already as in the file are skipped.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

import msgspec

from keywright.engine import AsyncDatabase
from keywright.errors import EngineError, ScriptError, ServerRefusedError, UsageError
from keywright.keyspace import Key, Keyspace, gather_list
from keywright.keyspace.script import BoundScript, Script
from keywright.keyspace.wires import Effect
from keywright.tools.audit.matcher import Matcher
from keywright.tools.key_walks import OnProgress
from keywright.tools.pace import FULL_SPEED, Pace, Pacemaker, WalkProgress
from keywright.tools.transfer.lines import (
    FORMAT,
    LONGEST_LINE,
    FileEnd,
    FileHeader,
    KeyLine,
    LineError,
    as_bytes,
    parse_line,
    stored_of,
)
from keywright.tools.transfer.stored import StoredKey, commands_of, read_whole
from keywright.tools.transfer.validation import Validator

__all__ = ["ImportProgress", "Imported", "Plan", "import_keys", "plan_import"]

WRITE = Script("keywright.tools.transfer", "write_key", Effect.ONCE)
TOGETHER = 100
TOGETHER_BYTES = 8 << 20
MOST_LINES = 10_000_000
KEPT = 20
_END = re.compile(rb'\s*\{\s*"keys"\s*:')


class ImportProgress(WalkProgress, frozen=True):
    """The progress through the lines of a file."""

    verb: str = "checked"

    @property
    def words(self) -> str:
        return self.verb


class Entry(NamedTuple):
    """One valid line: the key that it writes."""

    number: int
    key: Key
    found: StoredKey
    size: int


class Plan(NamedTuple):
    """What an import would do, and lines that cannot be imported, each with its number and the reason."""

    model: str
    made_at: str
    lines: int
    new: dict[str, int]
    same: dict[str, int]
    different: dict[str, int]
    expired: dict[str, int]
    problems: list[tuple[int, str]]
    invalid: int

    def as_data(self) -> dict[str, Any]:
        return {
            **self._asdict(),
            "problems": [{"line": number, "reason": reason} for number, reason in self.problems],
        }


class Imported(NamedTuple):
    """The result of an import: what was written, what was there, what another writer made first."""

    written: int
    same: int
    expired: int
    overtaken: int
    failed: list[tuple[int, str]]


class ExportFile:
    """The lines of an export, each checked against the declaration as it is read."""

    def __init__(
        self, file: IO[bytes], db: AsyncDatabase, spaces: Sequence[Keyspace], *, with_dumps: bool = False
    ) -> None:
        self.file = file
        self.db = db
        self.with_dumps = with_dumps
        self.header = self._read_header()
        self._matcher = Matcher(spaces, db.context)
        self._kinds = {
            (space.name, kind.declaration.template.source): kind for space in spaces for kind in space
        }
        self._validators: dict[type[Key], Validator] = {}
        self._now_ms = db.context.now_ms()

    def entries(self) -> Iterator[Entry | tuple[int, str]]:
        """Yield each key, or the number and the reason of a line that cannot be imported."""
        seen: set[bytes] = set()
        ended: FileEnd | None = None
        keys = 0
        for number, data in self._lines():
            if ended is not None:
                raise UsageError(f"line {number} is after the end of the export. Export again.")
            if _END.match(data):
                ended = _end(data, number)
                continue
            keys += 1
            try:
                entry = self._entry(number, data)
                digest = hashlib.blake2b(self.db.context.name(entry.key), digest_size=12).digest()
                if digest in seen:
                    raise LineError("its key is in the file twice")
            except LineError as error:
                yield number, error.reason
                continue
            seen.add(digest)
            yield entry
        if ended is None or ended.keys != keys:
            raise UsageError(
                "the file is not complete: its last line does not say that it has "
                f"{keys:,} keys. Nothing was written by this run. Export again."
            )

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        self.file.seek(0)
        number = 0
        while data := self.file.readline(LONGEST_LINE + 1):
            number += 1
            if len(data) > LONGEST_LINE:
                raise UsageError(f"line {number} has more than {LONGEST_LINE >> 20} MiB. Split the key.")
            if number > MOST_LINES:
                raise UsageError(f"the file has more than {MOST_LINES:,} lines. Split it.")
            if number > 1:
                yield number, data

    def _read_header(self) -> FileHeader:
        self.file.seek(0)
        try:
            header = msgspec.json.decode(self.file.readline(1 << 16), type=FileHeader)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(
                "the file does not begin as an export does. Name one that `keywright export` wrote."
            ) from error
        if header.keywright != "export" or header.format != FORMAT:
            raise UsageError(
                f"the file has the format {header.format}, and this version reads {FORMAT}. Export again."
            )
        return header

    def _entry(self, number: int, data: bytes) -> Entry:
        line = parse_line(data)
        kind = self._kinds.get((line.keyspace, line.template))
        if kind is None:
            raise LineError(f"the model has no template {line.template[:200]!r} in {line.keyspace[:200]!r}")
        key = self._key(kind, line)
        if line.type != kind.redis_type:
            raise LineError(f"{line.template} is a {kind.redis_type}, not a {line.type[:50]!r}")
        found = stored_of(line)
        if found.dump is not None and not self.with_dumps:
            raise LineError("it is a dump, which the server does not check; --with-dumps imports it")
        if found.dump is not None and kind.declaration.storage.layout.reads:
            raise LineError(f"{line.template} is not written from a dump")
        if found.fields_expire_at_ms and self.db.context.field_expiry is False:
            raise LineError("its fields expire, which this server does not have")
        validator = self._validator(kind)
        space = kind.declaration.space
        lead = self.db.context.prefixes[space].decode("utf-8", "backslashreplace")
        if self.header.leads.get(space.name) != lead and validator.has_seals(key, found):
            raise LineError("its sealed values are bound to the prefix and version of the export")
        problem = validator.problem(key, found) or validator.expiry_problem(key, found, self._now_ms)
        if problem is not None:
            raise LineError(problem)
        validator.check_shown(key, found, line)
        return Entry(number, key, found, len(data))

    def _key(self, kind: type[Key], line: KeyLine) -> Key:
        name = as_bytes(line.name)
        key: Key | None = kind.parse(name)
        if key is None:
            raise LineError(f"its name is not one of {line.template}")
        known = self._matcher.match(self.db.context.name(key))
        if known is None or known.kind is not kind:
            raise LineError(f"its name is not one of {line.template}")
        return key

    def _validator(self, kind: type[Key]) -> Validator:
        found = self._validators.get(kind)
        if found is None:
            found = self._validators[kind] = Validator(kind, self.db.context)
        return found

    def batches(self) -> Iterator[list[Entry | tuple[int, str]]]:
        """Yield the entries in batches of bounded size."""
        batch: list[Entry | tuple[int, str]] = []
        size = 0
        for entry in self.entries():
            batch.append(entry)
            size += entry.size if isinstance(entry, Entry) else 0
            if len(batch) == TOGETHER or size > TOGETHER_BYTES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch


async def plan_import(
    db: AsyncDatabase,
    spaces: Sequence[Keyspace],
    file: IO[bytes],
    *,
    with_dumps: bool = False,
    on_progress: OnProgress | None = None,
) -> Plan:
    """Check every line of a file, and compare each key with what is stored. It only reads.

    Raise UsageError if the file is not a complete export.
    """
    source = ExportFile(file, db, spaces, with_dumps=with_dumps)
    counts: dict[str, Counter[str]] = {state: Counter() for state in ("new", "same", "different", "expired")}
    problems: list[tuple[int, str]] = []
    pacemaker, lines, invalid = Pacemaker(FULL_SPEED), 0, 0
    for batch in source.batches():
        good = [each for each in batch if isinstance(each, Entry)]
        bad = [each for each in batch if not isinstance(each, Entry)]
        invalid += len(bad)
        problems += bad[: KEPT - len(problems)]
        for entry, state in zip(good, await _states(db, good), strict=True):
            counts[state][entry.key.declaration.template.source] += 1
        lines += len(batch)
        if on_progress is not None and pacemaker.due():
            on_progress(ImportProgress(lines, lines, pacemaker.seconds))
    found = {state: dict(sorted(counter.items())) for state, counter in counts.items()}
    return Plan(
        source.header.model,
        source.header.made_at,
        lines,
        found["new"],
        found["same"],
        found["different"],
        found["expired"],
        problems,
        invalid,
    )


async def import_keys(
    db: AsyncDatabase,
    spaces: Sequence[Keyspace],
    file: IO[bytes],
    plan: Plan,
    *,
    replace: bool = False,
    with_dumps: bool = False,
    pace: Pace = FULL_SPEED,
    on_progress: OnProgress | None = None,
) -> Imported:
    """Write the keys of a file that `plan_import` found valid. Raise UsageError if a line is not any more.

    Without `replace` no key is overwritten: one that was made meanwhile is counted as overtaken.
    """
    if plan.invalid:
        raise UsageError("the file has lines that cannot be imported. Nothing was written.")
    source = ExportFile(file, db, spaces, with_dumps=with_dumps)
    counts: Counter[str] = Counter()
    failed: list[tuple[int, str]] = []
    pacemaker, lines = Pacemaker(pace), 0
    for batch in source.batches():
        entries = [_required(each) for each in batch]
        states = await _states(db, entries)
        counts.update(state for state in states if state in ("same", "expired"))
        due = [entry for entry, state in zip(entries, states, strict=True) if state in ("new", "different")]
        for entry, done in zip(due, await _written(db, due, replace=replace), strict=True):
            if done in (0, 1):
                counts["written" if done else "overtaken"] += 1
            elif len(failed) < KEPT:
                reason = "its dump has another type" if done == -1 else str(done)
                failed.append((entry.number, reason))
        lines += len(batch)
        if on_progress is not None and pacemaker.due():
            on_progress(ImportProgress(lines, plan.lines, pacemaker.seconds, "written"))
        await pacemaker.wait(len(batch))
    return Imported(counts["written"], counts["same"], counts["expired"], counts["overtaken"], failed)


def _required(entry: Entry | tuple[int, str]) -> Entry:
    if isinstance(entry, Entry):
        return entry
    number, reason = entry
    raise UsageError(f"line {number} changed while the file was read: {reason}. Run it again.")


async def _states(db: AsyncDatabase, entries: Sequence[Entry]) -> list[str]:
    """Return of each key whether it is new, the same as stored, different, or expired by now."""
    stored = await db.run(gather_list(read_whole(entry.key).attempt() for entry in entries))
    now = db.context.now_ms()
    states = []
    for entry, held in zip(entries, stored, strict=True):
        moment = entry.found.expires_at_ms
        if isinstance(held, EngineError):
            raise held
        if moment is not None and moment <= now:
            states.append("expired")
        elif held is None:
            states.append("new")
        elif isinstance(held, StoredKey) and entry.found.same(held, entry.key.redis_type):
            states.append("same")
        else:  # also a key of another type
            states.append("different")
    return states


async def _written(db: AsyncDatabase, entries: Sequence[Entry], *, replace: bool) -> list[Any]:
    counters = (await db.server()).can("expire time")

    def call(entry: Entry) -> Any:
        commands = commands_of(entry.found, entry.key.redis_type, counters=counters)
        name = db.context.name(entry.key)
        words = (b"1" if replace else b"0", _packed(commands), entry.key.redis_type)
        return BoundScript(WRITE, [name], words, type(entry.key)).attempt()

    done = await db.run(gather_list(map(call, entries)))
    for each in done:
        if isinstance(each, EngineError) and not isinstance(each, ServerRefusedError | ScriptError):
            raise each
    return done


def _packed(data: bytes | Sequence[Any]) -> bytes:
    """Return MessagePack of nested lists of bytes, as text: cmsgpack of the server knows no binary type."""
    if isinstance(data, bytes):
        return b"\xdb" + len(data).to_bytes(4) + data
    return b"\xdd" + len(data).to_bytes(4) + b"".join(map(_packed, data))


def _end(data: bytes, number: int) -> FileEnd:
    try:
        return msgspec.json.decode(data, type=FileEnd)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"line {number} is not the end of an export. Export again.") from error
