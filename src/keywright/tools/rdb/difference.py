"""The difference of two dumps by template: keys that were added or removed, and how others changed.

Keys are joined by name with a table on disk, so memory does not grow with the dumps. Equal bytes are equal
values; of others the decoded values are compared, since servers store equal values in several forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from keywright.keyspace import Binding
from keywright.keyspace.layouts import LAYOUTS, Layout
from keywright.tools.audit.findings import masked_name
from keywright.tools.audit.matcher import Matcher
from keywright.tools.model import Model
from keywright.tools.rdb.database import DumpDatabase
from keywright.tools.rdb.frames import Stored
from keywright.tools.rdb.keys import StoredKeys
from keywright.tools.rdb.types import REDIS_TYPES
from keywright.tools.segments import likely_pattern

__all__ = ["ChangedKey", "DumpDifference", "TemplateChanges", "compare_dumps"]

NO_TEMPLATE = "(no template)"
MOST_NAMED = 5
PIECE = 1 << 20


class TemplateChanges(msgspec.Struct):
    """How many keys of one template are in the second dump only, in the first only, or differ.

    `expiry` counts keys of which only the moment of the expiry differs.
    """

    added: int = 0
    removed: int = 0
    changed: int = 0
    expiry: int = 0
    same: int = 0

    @property
    def differ(self) -> int:
        return self.added + self.removed + self.changed + self.expiry


class ChangedKey(msgspec.Struct, frozen=True):
    """One key that differs; `what` says how, and `entries` names some of the entries that do."""

    sort: str
    template: str
    name: bytes
    what: str = ""
    entries: tuple[bytes, ...] = ()

    def shown_name(self, *, show_ids: bool) -> str:
        if show_ids:
            return self.name.decode("utf-8", "backslashreplace")
        return masked_name(self.template, self.name)


class DumpDifference(msgspec.Struct):
    """The difference of two dumps of one model."""

    model: str
    old: str
    new: str
    templates: dict[str, TemplateChanges] = {}
    outside: int = 0
    """Keys outside of the prefix of the model, in either dump."""

    @property
    def is_empty(self) -> bool:
        return not any(each.differ for each in self.templates.values())

    def as_data(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "old": self.old,
            "new": self.new,
            "outside": self.outside,
            "templates": {name: msgspec.structs.asdict(each) for name, each in self.templates.items()},
        }


def compare_dumps(
    old: Path,
    new: Path,
    model: Model,
    *bindings: Binding,
    number: int = 0,
    checked: bool = False,
    on_key: Callable[[ChangedKey], None] | None = None,
) -> DumpDifference:
    """Compare one database of two dumps. `on_key` gets every key that differs, with how it does."""
    before = DumpDatabase(old, *bindings, number=number, checked=checked)
    try:
        after = DumpDatabase(new, *bindings, number=number, checked=checked)
        try:
            return _Comparison(before, after, model, on_key).run()
        finally:
            after.close()
    finally:
        before.close()


class _Comparison:
    def __init__(
        self,
        before: DumpDatabase,
        after: DumpDatabase,
        model: Model,
        on_key: Callable[[ChangedKey], None] | None,
    ) -> None:
        self._before = before.keys
        self._after = after.keys
        self._matcher = Matcher(model.spaces, before.context)
        self._on_key = on_key
        kinds = [(known.label, known.kind.declaration) for known in self._matcher.known]
        self._secret = {template for template, declared in kinds if declared.secret or declared.sealed}
        self._result = DumpDifference(model.name, before.address.shown, after.address.shown)

    def run(self) -> DumpDifference:
        """Walk the old dump and look each key up in the new one, then walk the new one for the others."""
        for page in _pages(self._before):
            for template, name in self._ours(page):
                self._compare(template, name, page[name])
        for page in _pages(self._after):
            for template, name in self._ours(page):
                if self._before.find(name) is None:
                    self._counts(template).added += 1
                    self._report("added", template, name)
        return self._result

    def _ours(self, page: dict[bytes, Stored]) -> Iterator[tuple[str, bytes]]:
        groups, unknown = self._matcher.grouped(list(page))
        for known, names in groups.items():
            for name in names:
                yield known.label, name
        for name in unknown:
            if self._matcher.belongs(name):
                yield NO_TEMPLATE, name
            else:
                self._result.outside += 1

    def _compare(self, template: str, name: bytes, stored: Stored) -> None:
        other = self._after.find(name)
        counts = self._counts(template)
        if other is None:
            counts.removed += 1
            self._report("removed", template, name)
            return
        change = None if self._is_same(stored, other) else self._change(stored, other)
        if change is None:
            self._compare_expiries(counts, template, name, stored, other)
        else:
            counts.changed += 1
            self._report("changed", template, name, *change)

    def _is_same(self, stored: Stored, other: Stored) -> bool:
        """Return whether two values have the same type and bytes."""
        size = stored[3] - stored[2]
        if stored[0] != other[0] or size != other[3] - other[2]:
            return False
        pieces = range(0, size, PIECE)
        return all(_piece(self._before, stored, at) == _piece(self._after, other, at) for at in pieces)

    def _compare_expiries(
        self, counts: TemplateChanges, template: str, name: bytes, stored: Stored, other: Stored
    ) -> None:
        if stored[6] == other[6]:
            counts.same += 1
            return
        counts.expiry += 1
        self._report("expiry", template, name, _moved(stored[6], other[6]))

    def _change(self, stored: Stored, other: Stored) -> tuple[str, tuple[bytes, ...]] | None:
        """Return how two values differ, with the names of some entries; None if they are equal."""
        old_type, new_type = self._before.type_of(stored), self._after.type_of(other)
        if old_type != new_type:
            return f"was a {old_type}, is a {new_type}", ()
        if old_type == "string":
            old, new = self._before.string(stored), self._after.string(other)
            return None if old == new else (f"{len(old):,} bytes, now {len(new):,}", ())
        layout = LAYOUTS.get(old_type)
        if layout is None:
            return "its module stores it in another form", ()
        if layout.width == 2 or old_type == "set":
            return self._by_name(layout, stored, other)
        return self._in_order(stored, other)

    def _by_name(self, layout: Layout, stored: Stored, other: Stored) -> tuple[str, tuple[bytes, ...]] | None:
        """Compare hashes, sets and sorted sets, whose entries have names."""
        scored = layout.redis_type == "zset"
        old, new = self._before.collection(stored), self._after.collection(other)
        counts: dict[str, int] = {"added": 0, "removed": 0, "changed": 0}
        named: list[bytes] = []

        def note(sort: str, entry: bytes) -> None:
            counts[sort] += 1
            if len(named) < MOST_NAMED:
                named.append(entry)

        found = 0
        for entry in old.entries():
            there = new.find(entry[0])
            if there is None:
                note("removed", entry[0])
                continue
            found += 1
            if not _equal(entry[-1], there[0], scored=scored) or old.moment(entry[0]) != there[1]:
                note("changed", entry[0])
        if new.count != found:
            for entry in new.entries():
                if old.find(entry[0]) is None:
                    note("added", entry[0])
        words = ", ".join(f"{count:,} {sort}" for sort, count in counts.items() if count)
        return (f"entries: {words}", tuple(named)) if words else None

    def _in_order(self, stored: Stored, other: Stored) -> tuple[str, tuple[bytes, ...]] | None:
        """Compare lists and streams, entry by entry from the beginning."""
        old, new = self._before.collection(stored), self._after.collection(other)
        old_count = new_count = 0
        first = None
        for left, right in zip_longest(old.entries(), new.entries()):
            old_count += left is not None
            new_count += right is not None
            if first is None and left != right:
                first = max(old_count, new_count)
        if first is not None:
            return f"{old_count:,} entries, now {new_count:,}, different from entry {first:,} on", ()
        if REDIS_TYPES[stored[0]] != "stream":
            return None
        was, is_now = self._before.stream_facts(stored), self._after.stream_facts(other)
        return None if was.groups == is_now.groups else ("its consumer groups", ())

    def _counts(self, template: str) -> TemplateChanges:
        return self._result.templates.setdefault(template, TemplateChanges())

    def _report(
        self, sort: str, template: str, name: bytes, what: str = "", entries: tuple[bytes, ...] = ()
    ) -> None:
        if self._on_key is not None:
            named = () if template in self._secret else entries
            shown = likely_pattern(name) if template == NO_TEMPLATE else template
            self._on_key(ChangedKey(sort, shown, name, what, named))


def _pages(keys: StoredKeys) -> Iterator[dict[bytes, Stored]]:
    """Yield the pages of a dump, and let it remember their names."""
    cursor = 0
    while True:
        cursor, names = keys.page(cursor, 500)
        yield {name: stored for name in names if (stored := keys.find(name)) is not None}
        if not cursor:
            return


def _piece(keys: StoredKeys, stored: Stored, at: int) -> bytes:
    """Return some bytes of a value."""
    _, data, start, end, _, _, _ = stored
    if data:
        return data[start + at : min(start + at + PIECE, end)]
    return keys.file.read(start + at, min(PIECE, end - start - at))


def _equal(one: Any, other: Any, *, scored: bool) -> bool:
    return bool(one == other or (scored and float(one) == float(other)))


def _moved(old_ms: int, new_ms: int) -> str:
    """Return in words how the moment of an expiry changed; 0 is none."""
    if not old_ms or not new_ms:
        return "has an expiry now" if new_ms else "has no expiry any more"
    return f"expires {abs(new_ms - old_ms) / 1000:g} s {'later' if new_ms > old_ms else 'sooner'}"
