"""The end of a migration: an audit says whether anything old is left, and so what may be dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from keywright.engine import AsyncDatabase
from keywright.keyspace import Key
from keywright.tools.audit import Options, Report, audit
from keywright.tools.audit.findings import Finding
from keywright.tools.audit.walking import Progress as Walked
from keywright.tools.model import Model

__all__ = ["Contract", "contract"]

OLD = frozenset({"KW102", "KW103"})


class Contract(NamedTuple):
    """What an audit found old, by template; and the declarations that nothing stored needs any more."""

    old: dict[str, int]
    kept: list[Finding]
    droppable: list[str]
    report: Report

    @property
    def ready(self) -> bool:
        return not self.old


async def contract(
    db: AsyncDatabase,
    model: Model,
    *,
    max_rate: int | None = None,
    on_progress: Callable[[Walked], None] | None = None,
) -> Contract:
    """Audit a whole model for what is old. Only reads: dropping declarations is an edit of the schema.

    At the primaries, since what a sweep wrote a moment ago may not have reached a replica.
    """
    old: dict[str, int] = {}
    kept: list[Finding] = []

    def count(finding: Finding) -> None:
        if finding.code in OLD:
            old[finding.template] = old.get(finding.template, 0) + 1
            if len(kept) < 20:
                kept.append(finding)

    options = Options(max_rate=max_rate, prefer_replica=False)
    report = await audit(db, model, options, failing=OLD, on_finding=count, on_progress=on_progress)
    kinds = [kind for space in model.spaces for kind in space]
    droppable = [] if old else [words for kind in kinds for words in _transitional(kind)]
    return Contract(old, kept, droppable, report)


def _transitional(kind: type[Key]) -> Iterator[str]:
    """What a class declares for the sake of older data."""
    for former in kind._former:
        yield f"{kind.__name__}: moved_from {former._template.source!r}"
    for upgrade in getattr(kind, "_upgrades", ()):
        what = "formerly" if upgrade.recodings else "the upgrade from"
        yield f"{kind.__name__}: {what} {upgrade.version!r}"
