"""The schema of an explorer: its entities and ties, their proof, and what the last audit found on each."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from keywright.explorer.atlas import Atlas
from keywright.explorer.audits import Auditing
from keywright.keyspace import Key
from keywright.keyspace.context import Binding
from keywright.tools.audit.tally import Tally
from keywright.tools.check import CheckReport, prove, prove_union
from keywright.tools.diagram.entities import schema_of

__all__ = ["Found", "Older", "SchemaBook"]

PATIENCE_SECONDS = 0.05
"""So long a page waits for the proof; afterwards it shows that the proof is running."""
OLDER = ("KW102", "KW103")


class Found(NamedTuple):
    """The findings of the last audit on one template."""

    number: int = 0
    level: str = "note"
    older: int = 0
    """Those about an older shape or place."""


class Older(NamedTuple):
    """One declared older version of a template, and how many keys the last audit found in any of them."""

    identity: str
    version: str
    place: str
    found: int | None
    share: float | None


class SchemaBook:
    """The parts of the schema pages that requests share."""

    def __init__(self, atlas: Atlas, auditing: Auditing) -> None:
        self.atlas = atlas
        self.auditing = auditing
        self.schema = schema_of(atlas.descriptions.values())
        self._proof: asyncio.Task[list[CheckReport]] | None = None

    async def proof(self) -> list[CheckReport] | None:
        """Return the proof of each keyspace and of their union; None while it runs, once, in a thread."""
        if self._proof is None:
            self._proof = asyncio.create_task(asyncio.to_thread(self._proved))
        await asyncio.wait({self._proof}, timeout=PATIENCE_SECONDS)
        return self._proof.result() if self._proof.done() else None

    def _proved(self) -> list[CheckReport]:
        reports = [prove(space) for space in self.atlas.spaces]
        if len(reports) > 1:
            bound = self.atlas.context.bindings
            reports.append(prove_union([bound.get(space) or Binding(space) for space in self.atlas.spaces]))
        return reports

    def found(self, kind: type[Key]) -> Found:
        """Return the findings of the last audit on a template, notes left out."""
        errors, warnings = self.auditing.counts_on(kind)
        counted = self.auditing.by_template.get(kind, Counter())
        older = sum(counted.get(code, 0) for code in OLDER)
        return Found(errors + warnings, "error" if errors else "warning" if warnings else "note", older)

    def older(self) -> Sequence[Older]:
        """Return every declared older version, with the keys that the last audit found in one."""
        tally = self.auditing.tally
        found = []
        for kind, sheet in self.atlas.sheets.items():
            count = None if tally is None else self.found(kind).older
            share = _share(count, _keys(tally, sheet.about.template)) if tally and count is not None else None
            identity = f"{sheet.about.name}@{sheet.space.name}"
            found += [
                Older(identity, each.version, each.moved_from or "", count, share)
                for each in sheet.about.upgrades
            ]
        return found


def _keys(tally: Tally, template: str) -> int:
    measured = tally.templates.get(template)
    return 0 if measured is None else measured.keys


def _share(part: int, keys: int) -> float | None:
    return min(1.0, part / keys) if keys else None if part else 0.0
