"""Read many keys of one template as rows: sizes in one round trip, values in a second, within limits.

A value that is large, of another type or malformed leaves its row with the reason; the others are read.
"""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from keywright.engine import AsyncDatabase
from keywright.engine.nodes import Batch
from keywright.errors import ConnectionLostError, DeadlineError, KeywrightError, StoredDataError
from keywright.explorer.atlas import Atlas, Sheet, key_url
from keywright.explorer.columns import (
    EXPIRES,
    MEMORY,
    VALUE,
    codec_columns,
    found_columns,
    members_of,
    shape_columns,
    variable_columns,
)
from keywright.explorer.presentation import sized
from keywright.explorer.tables import Column, Row
from keywright.keyspace import Key
from keywright.keyspace.codecs import is_sealed, unpacking_at_most
from keywright.keyspace.kinds.opener import Opener
from keywright.keyspace.kinds.unset import UNSET
from keywright.keyspace.layouts import Ask
from keywright.keyspace.storage import Defect, EntryPart, Storage, StoredEntry
from keywright.keyspace.wires import Effect, Operation, Reply, Wire
from keywright.tools.describe.inspection import Hidden, hide
from keywright.tools.describe.plain import plain

__all__ = ["Decoder", "Rows", "Sheets", "batched", "key_columns", "wire"]

A_VALUE = 64 << 10
"""A larger value is not read for a row; its size is shown."""
A_PAGE = 4 << 20
"""So many bytes of values are read for one page."""
MOST_MEMBERS = 1000
PREVIEWED = 4
ENTRIES = Column("entries", "Entries", "number", "number of entries", role="count")
FIRST = Column("first", "First entries", "data", "some entries, in the order of the server", role="value")
_READ = {
    verb: Operation("explore", verb, Effect.READ)
    for verb in (b"PTTL", b"MEMORY", b"TYPE", b"GET", b"HGETALL")
}


def wire(
    kind: type[Key] | None, verb: bytes, name: bytes, *operands: Any, before: Sequence[bytes] = ()
) -> Wire:
    """Return a reading command on a name."""
    operation = _READ.get(verb) or _READ.setdefault(verb, Operation("explore", verb, Effect.READ))
    return Wire((verb, *before, name, *operands), name, operation, kind)


async def batched(db: AsyncDatabase, wires: Sequence[Wire]) -> list[Reply]:
    """Return the replies of one round trip. Errors are values, except those of the whole server."""
    replies = await db.run(Batch(wires)) if wires else []
    for reply in replies:
        if isinstance(reply, ConnectionLostError | DeadlineError):
            raise reply
    return replies


class Rows(NamedTuple):
    """Rows with their columns, and how many values were left out because the page was full."""

    columns: list[Column]
    rows: list[Row]
    unread: int = 0


def key_columns(kind: type[Key]) -> list[Column]:
    """Return the declared columns of a template, without those that only its data shows."""
    variables = variable_columns(kind)
    taken = [column.id for column in variables]
    storage = kind.declaration.storage
    if not storage.whole:
        held = [ENTRIES, *([] if kind.declaration.secret or kind.declaration.sealed else [FIRST])]
        return [*variables, *held, EXPIRES, MEMORY]
    held = (
        shape_columns(kind, taken) if storage.fields is not None else codec_columns(kind, storage.item, taken)
    )
    return [*variables, *held, EXPIRES, MEMORY]


class Sheets:
    """The reader of rows of one template in one database."""

    def __init__(self, db: AsyncDatabase, atlas: Atlas, sheet: Sheet) -> None:
        self.db = db
        self.atlas = atlas
        self.kind = sheet.kind
        self.storage: Storage = sheet.kind.declaration.storage
        self.columns = key_columns(sheet.kind)
        self.decoder = Decoder(sheet.kind, db)
        self._ids = {column.title: column.id for column in self.columns if column.role == "value"}
        self._taken = {column.id for column in self.columns}
        self._variables = [column.id for column in self.columns if column.role == "variable"]

    async def read(self, names: Sequence[bytes], *, most: int = A_PAGE) -> Rows:
        """Read keys by their names; those that are gone by now are left out."""
        layout = self.storage.layout
        sample = (b"SAMPLES", 64) if layout.redis_type == "hash" else ()
        wires = []
        for name in names:
            wires.append(wire(self.kind, b"PTTL", name))
            wires.append(wire(self.kind, b"MEMORY", name, *sample, before=(b"USAGE",)))
            wires.append(wire(self.kind, layout.size, name))
        found = await batched(self.db, wires)
        rows: list[Row] = []
        asked: list[tuple[Row, Ask]] = []
        unread = 0
        for place, name in enumerate(names):
            ttl, memory, size = found[3 * place : 3 * place + 3]
            key = self.atlas.key_of(name)
            if key is None or ttl == -2:
                continue
            row = self._row(name, key, ttl, memory)
            rows.append(row)
            if isinstance(size, StoredDataError):
                asked.append((row, Ask(b"TYPE")))
                continue
            ask, weight = self._ask(row, memory, size)
            if ask is None:
                continue
            if weight > most:
                unread += 1
                row.note, row.harmless = "not read: the page was full", True
                continue
            most -= weight
            asked.append((row, ask))
        replies = await batched(
            self.db, [wire(self.kind, ask.verb, row.name, *ask.operands) for row, ask in asked]
        )
        stored = [(row, ask, reply) for (row, ask), reply in zip(asked, replies, strict=True)]
        await asyncio.to_thread(self._decode, stored)
        return Rows(self._columns(rows), rows, unread)

    def _row(self, name: bytes, key: Key, ttl: Reply, memory: Reply) -> Row:
        values: dict[str, Any] = {column: _storable(getattr(key, column)) for column in self._variables}
        if isinstance(ttl, int):  # else the server refused to say
            values[EXPIRES.id] = ttl if ttl >= 0 else None
        if isinstance(memory, int):
            values[MEMORY.id] = memory
        return Row(name, key_url(name), values, {}, key=key)

    def _ask(self, row: Row, memory: Reply, size: Reply) -> tuple[Ask | None, int]:
        """Return the command that reads a value, if it is small enough, and its weight in bytes."""
        layout = self.storage.layout
        count = size if isinstance(size, int) else 0
        held = memory if isinstance(memory, int) else None
        if not self.storage.whole:
            row.values[ENTRIES.id] = count
            each = (held or 0) // max(1, count)
            if not count or FIRST.id not in self._taken or each > 1024:
                return None, 0
            return layout.head(PREVIEWED) or layout.first_page(PREVIEWED), PREVIEWED * each
        if not layout.reads:
            return None, 0
        weight = count if layout.redis_type == "string" else held if held is not None else 64 * count
        if weight > A_VALUE or (layout.redis_type != "string" and count > MOST_MEMBERS):
            row.note, row.harmless = f"{sized(weight)}, too large for a row", True
            return None, 0
        return layout.everything, weight

    def _decode(self, stored: Sequence[tuple[Row, Ask, Reply]]) -> None:
        with unpacking_at_most(A_PAGE):
            for row, ask, reply in stored:
                if ask.verb == b"TYPE":
                    kind = reply.decode() if isinstance(reply, bytes) else "another type"
                    row.note = f"stored as a {kind}, declared as a {self.kind.redis_type}"
                elif isinstance(reply, KeywrightError):
                    row.note, row.harmless = "not read: the server refused", True
                elif not self.storage.whole:
                    row.values[FIRST.id] = self._preview(ask, reply)
                elif reply is not None:
                    row.stored = reply
                    self.decoder.fill(row, reply, self._ids, self._taken)

    def _preview(self, ask: Ask, reply: Reply) -> Any:
        layout = self.storage.layout
        page = layout.page(reply, count=PREVIEWED).stored if layout.head(1) is None else reply
        found = []
        for entry in self.storage.entries(page[: PREVIEWED * layout.width]):
            values, problems = self.decoder.entry(entry)
            found.append("(malformed)" if problems else _entry_shown(entry, values))
        return found

    def _columns(self, rows: Sequence[Row]) -> list[Column]:
        *first, expires, memory = self.columns
        if not self.storage.whole:
            return self.columns
        titles = {column: title for title, column in self._ids.items()}
        found = found_columns(rows, titles, self.kind, self.columns)
        if found and all(VALUE not in row.values for row in rows):
            first = [column for column in first if column.role == "variable" or column.title != VALUE]
        return [*first, *found, expires, memory]


def _entry_shown(entry: StoredEntry, values: Sequence[Any]) -> Any:
    shown = entry.shown(values)
    if isinstance(shown, tuple) and len(shown) == 2:
        return f"{_brief(shown[0])}: {_brief(shown[1])}"
    return _brief(shown)


def _brief(value: Any) -> Any:
    members = members_of(getattr(value, "value", value) if hasattr(value, "id") else value)
    if members is None:
        return value
    return " · ".join(f"{name} {plain(item)}" for name, item in islice(members.items(), 3))


class Decoder:
    """Decodes the stored entries of one template and hides secrets; reasons instead of errors."""

    def __init__(self, kind: type[Key], db: AsyncDatabase) -> None:
        self.kind = kind
        self.context = db.context
        self.storage = kind.declaration.storage
        self.opener = Opener(kind, db.context)
        self.discreet = kind.declaration.secret or kind.declaration.sealed or bool(kind.hides)

    def fill(self, row: Row, stored: Any, ids: Mapping[str, str], taken: set[str]) -> None:
        """Decode a whole value into the cells of its row; `ids` are the columns of members by title."""
        older = self.opener.older(stored, row.key)
        if older is not None:
            row.note, row.harmless = f"stored in the older shape {older.version}", True
            return
        (entry,) = self.storage.entries(stored, row.key)
        values, problems = self.entry(entry)
        record = self.storage.fields is not None
        for name, reason in problems.items():
            title = (name or b"").decode("utf-8", "backslashreplace")
            if record and title in ids:
                row.problems[ids[title]] = reason
            else:
                row.note = reason
        if record and not entry.parts:
            members: Any = self._raw(stored)
        elif problems and not record:
            return
        else:
            members = entry.shown(values)
        self.spread(row, members, ids, taken)

    def spread(self, row: Row, value: Any, ids: Mapping[str, str], taken: set[str]) -> None:
        """Put the members of a value into the cells of a row, or the value into one cell."""
        members = None if isinstance(value, Hidden) else members_of(value)
        if members is None:
            row.values[ids.get(VALUE, VALUE)] = value
            return
        for title, item in members.items():
            column = ids.get(title) or (f".{title}" if title in taken else title)
            if column not in row.problems:
                row.values[column] = self._shown(title, item)

    def _shown(self, title: str, item: Any) -> Any:
        """Return a member without what the key hides."""
        if title in self.kind.hides:
            return Hidden.SECRET
        if not self.kind.hides or isinstance(item, str | int | float | None):
            return item
        shown = plain(item)
        hide(shown, self.kind.hides)
        return shown

    def entry(self, entry: StoredEntry) -> tuple[list[Any], dict[bytes, str]]:
        """Return the values of the parts of an entry, None where there is a problem, and the problems."""
        problems = {defect.entry or b"": self._reason(defect) for defect in entry.defects}
        values = []
        for part in entry.parts:
            value = self.part(part)
            if isinstance(value, Defect):
                problems[part.entry or b""] = self._reason(value)
                value = None
            values.append(value)
        return values, problems

    def members(self, entry: StoredEntry) -> tuple[list[Any], dict[str, str]]:
        """Return the values of an entry made of members, and the problems by member, "" for the entry."""
        problems = {"": self._reason(entry.defects[0])} if entry.defects else {}
        values = []
        for part in entry.parts:
            value = self.part(part)
            if isinstance(value, Defect):
                problems[_member_of(part)] = self._reason(value)
                value = None
            values.append(value)
        return values, problems

    def part(self, part: EntryPart) -> Any:
        codec = part.codec
        if codec.sealed:
            return Hidden.SEALED if is_sealed(part.data) else Hidden.IN_CLEAR
        if codec.secret:
            return Hidden.SECRET
        value = self.opener.read(part, b"")
        if self.kind.hides and isinstance(value, dict | list | tuple):
            hide(value, self.kind.hides)
        return Hidden.SEALED if value is UNSET else value

    def _reason(self, defect: Defect) -> str:
        if self.discreet or not defect.found:
            return defect.reason
        return f"{defect.reason}, found {defect.found}"

    def _raw(self, stored: Any) -> dict[str, Any]:
        """Return the members of a record of no known shape as texts, unless one may be secret."""
        if self.discreet:
            return {}
        members = self.storage.form(stored)
        return {name.decode("utf-8", "backslashreplace"): _texts(data) for name, data in members.items()}


def _member_of(part: EntryPart) -> str:
    """Return the member that a part belongs to, which its role quotes."""
    try:
        return str(ast.literal_eval(part.role.removeprefix(" as member ")))
    except (SyntaxError, ValueError):
        return ""


def _storable(value: Any) -> Any:
    """Return a variable, as bytes if it is not UTF-8."""
    if isinstance(value, str) and not value.isascii():
        data = value.encode(errors="surrogateescape")
        return _texts(data)
    return value


def _texts(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
