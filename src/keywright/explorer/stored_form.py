"""A key that is not as declared: everything that is stored, entry by entry, beside what is declared.

Each part is decoded on its own, so that one malformed member does not hide the others. Secrets stay hidden,
and of a class that hides fields only parts that decode are shown.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from keywright.engine import AsyncDatabase
from keywright.explorer.atlas import text_of
from keywright.explorer.key_reader import Facts, ask
from keywright.keyspace import Key
from keywright.keyspace.codecs import unpacking_at_most
from keywright.keyspace.kinds.opener import Opener
from keywright.keyspace.kinds.unset import UNSET
from keywright.keyspace.layouts import LAYOUTS, Ask, pairs
from keywright.keyspace.storage import Defect, EntryPart
from keywright.tools.describe.inspection import Hidden
from keywright.tools.describe.words import type_of

__all__ = ["StoredPart", "stored_form"]

MOST_ENTRIES = 200
MOST_BYTES = 1 << 20
LONGEST = 400


class StoredPart(NamedTuple):
    """One part of a stored key; `problem` says why it is not as declared."""

    entry: str
    stored: str
    declared: str
    problem: str | None = None

    @property
    def sound(self) -> bool:
        return self.problem is None


async def stored_form(db: AsyncDatabase, key: Key, facts: Facts) -> list[StoredPart]:
    """Return the parts of a key, at most 200; none if it is too large to read."""
    layout = LAYOUTS.get(facts.stored_type)
    if layout is None or (facts.memory or 0) > 4 * MOST_BYTES:
        return []
    name = db.context.name(key)
    head = layout.head(MOST_ENTRIES)
    asked = head or layout.first_page(MOST_ENTRIES)
    if facts.stored_type == "string":
        asked = Ask(b"GETRANGE", (0, MOST_BYTES - 1))
    reply = await db.run(ask(asked.verb, name, *asked.operands))
    stored = reply if head is not None else layout.page(reply, count=MOST_ENTRIES).stored
    if facts.stored_type != key.redis_type:
        declared = key.declaration
        hidden = declared.secret or declared.sealed or bool(key.hides)
        return _of_another_type(
            [(b"value", stored)] if facts.stored_type == "string" else layout.named_entries(stored),
            hidden=hidden,
        )
    with unpacking_at_most(MOST_BYTES):
        return _Reader(db, key).parts(stored)


def _of_another_type(entries: list[tuple[bytes, bytes]], *, hidden: bool) -> list[StoredPart]:
    return [
        StoredPart(
            text_of(entry, LONGEST) if entry else str(number),
            Hidden.SECRET.value if hidden else text_of(value, LONGEST),
            "",
        )
        for number, (entry, value) in enumerate(entries[:MOST_ENTRIES], 1)
    ]


class _Reader:
    """The parts of one key of the declared type."""

    def __init__(self, db: AsyncDatabase, key: Key) -> None:
        self.key = key
        self.name = db.context.name(key)
        self.storage = key.declaration.storage
        self.opener = Opener(type(key), db.context)

    def parts(self, stored: Any) -> list[StoredPart]:
        if not self.storage.is_read:
            return []
        found: list[StoredPart] = []
        known: set[bytes | None] = set()
        for number, entry in enumerate(self.storage.entries(stored, self.key), 1):
            known.update(part.entry for part in entry.parts)
            found += [self._part(part, number) for part in entry.parts]
            found += [self._defect(defect, number) for defect in entry.defects]
            if len(found) >= MOST_ENTRIES:
                break
        if self.storage.fields is not None and self.key.redis_type == "hash":
            others = [(field, value) for field, value in pairs(stored) if field not in known]
            found += [self._not_declared(field, value) for field, value in others]
        return found[:MOST_ENTRIES]

    def _part(self, part: EntryPart, number: int) -> StoredPart:
        value = self.opener.read(part, self.name)
        entry = "value" if self.key.redis_type == "string" else str(number)
        label = text_of(part.entry, LONGEST) if part.entry is not None else entry
        hidden = bool(self.key.hides) or part.codec.secret or part.codec.sealed
        shown = Hidden.SECRET.value if hidden else text_of(part.data, LONGEST)
        if value is UNSET:
            shown = Hidden.SEALED.value
        problem = _words(value, hidden=hidden) if isinstance(value, Defect) else None
        role = "" if self.storage.whole else part.role  # which names the member of a record once more
        return StoredPart(f"{label}{role}", shown, type_of(part.codec).words, problem)

    def _defect(self, defect: Defect, number: int) -> StoredPart:
        label = str(number) if defect.entry is None else text_of(defect.entry, LONGEST)
        members = (member for shape, _ in self.storage.shapes for member in shape.members)
        declared = next((type_of(each.codec).words for each in members if each.stored == defect.entry), "")
        return StoredPart(label, "", declared, _words(defect, hidden=bool(self.key.hides)))

    def _not_declared(self, field: bytes, value: bytes) -> StoredPart:
        hidden = self.key.declaration.secret or self.key.declaration.sealed or bool(self.key.hides)
        shown = Hidden.SECRET.value if hidden else text_of(value, LONGEST)
        return StoredPart(text_of(field, LONGEST), shown, "", "the declaration has no such member")


def _words(defect: Defect, *, hidden: bool) -> str:
    if hidden:
        return defect.fault.value
    return f"{defect.reason}, found {defect.found}" if defect.found else defect.reason
