"""The end of a migration: an audit for old data, and the declarations that may be dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from keywright.engine import AsyncDatabase
from keywright.keyspace import Key
from keywright.keyspace.kinds.opener import Opener
from keywright.tools.audit import AuditOptions, audit
from keywright.tools.audit.findings import Finding
from keywright.tools.audit.walk import WalkProgress as Walked
from keywright.tools.jobs import JobPlan
from keywright.tools.model import Model
from keywright.tools.pace import GENTLE, Pace

__all__ = ["Contract", "contract"]

OLD = frozenset({"KW102", "KW103"})


class Contract(NamedTuple):
    """The old keys by template, and the declarations that no stored data needs any more.

    `unknown` maps templates that could not be checked completely to the reason.
    """

    old: dict[str, int]
    unknown: dict[str, str]
    droppable: list[str]

    @property
    def ready(self) -> bool:
        return not self.old and not self.unknown


async def contract(
    db: AsyncDatabase,
    model: Model,
    *,
    pace: Pace = GENTLE,
    on_progress: Callable[[Walked], None] | None = None,
    plan: JobPlan | None = None,
) -> Contract:
    """Audit a whole model for old data. Read only: dropping declarations is an edit of the schema.

    Reads from the primaries, since the last writes of a sweep may not have reached a replica.
    """
    kinds = [kind for space in model.spaces for kind in space]
    old: dict[str, int] = {}
    unknown = {
        kind.declaration.template.source: "it is sealed, and no key that opens it is bound"
        for kind in kinds
        if kind.declaration.upgrades_in_place
        and kind.declaration.sealed
        and not Opener(kind, db.context).can_open
    }
    upgradable = {kind.declaration.template.source for kind in kinds if kind.declaration.upgrades_in_place}

    def count(finding: Finding) -> None:
        if finding.code in OLD:
            old[finding.template] = old.get(finding.template, 0) + 1
        elif finding.code == "KW502" and finding.template in upgradable:
            unknown[finding.template] = "some values could not be read by an audit"

    options = AuditOptions(pace=pace, keep=0, prefer_replica=False)
    await audit(db, model, options, on_finding=count, on_progress=on_progress, plan=plan)
    droppable = [] if old or unknown else [words for kind in kinds for words in _transitional(kind)]
    return Contract(old, unknown, droppable)


def _transitional(kind: type[Key]) -> Iterator[str]:
    """Yield the declarations of a class that only older data needs."""
    for former in kind.declaration.former:
        yield f"{kind.__name__}: moved_from {former.declaration.template.source!r}"
    for upgrade in kind.declaration.upgrades:
        what = "formerly" if upgrade.recodings else "the upgrade from"
        yield f"{kind.__name__}: {what} {upgrade.version!r}"
