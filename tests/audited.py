"""Healthy databases of every model for the tests of audit and repair, and short ways to run both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from keywright import Binding, Call, Database, Key, aconnect, connect
from keywright.tools.audit import AuditOptions, AuditReport, Finding, audit
from keywright.tools.model import Model
from keywright.tools.repair import Repair, RepairPlan, read_plan, repair, undo
from keywright.tools.repair.rounds import apply_saved, plan_repair
from keywright.tools.repair.undo import Undone

REMOVABLE = frozenset({"KW101", "KW102", "KW201", "KW202", "KW203", "KW205", "KW401"})

PRIMARIES = AuditOptions(prefer_replica=False)  # a replica may not have yet what a test has just written


class Sample(NamedTuple):
    """A model, how a database is opened with it, what fills one, and how to write its older shapes."""

    model: Model
    bindings: tuple[Binding, ...]
    fill: Callable[[Database], None]
    older: dict[type[Key], Callable[[Any], Call[Any]]]
    each: int = 5

    def open(self, url: str) -> Database:
        return connect(url, *self.bindings)


def audited(
    url: str, sample: Sample, *, options: AuditOptions | None = None, **settings: Any
) -> tuple[AuditReport, list[Finding]]:
    """Run one audit. Return its report and every finding."""
    found: list[Finding] = []

    async def run() -> AuditReport:
        async with aconnect(url, *sample.bindings) as db:
            return await audit(db, sample.model, options or PRIMARIES, on_finding=found.append, **settings)

    return asyncio.run(run()), found


def repaired(url: str, sample: Sample, undo: Path, remove: frozenset[str] = REMOVABLE) -> Repair:
    async def run() -> Repair:
        async with aconnect(url, *sample.bindings) as db:
            return await repair(db, sample.model, AuditOptions(), undo, remove)

    return asyncio.run(run())


def planned(url: str, sample: Sample, path: Path) -> RepairPlan:
    async def run() -> RepairPlan:
        async with aconnect(url, *sample.bindings) as db:
            return await plan_repair(db, sample.model, AuditOptions(), path, REMOVABLE)

    return asyncio.run(run())


def applied(url: str, sample: Sample, folder: Path) -> Repair:
    """Apply the plan in a folder, with its undo file beside it."""

    async def run() -> Repair:
        async with aconnect(url, *sample.bindings) as db:
            return await apply_saved(db, sample.model, read_plan(folder / "plan"), folder / "undo")

    return asyncio.run(run())


def undone(url: str, sample: Sample, path: Path) -> Undone:
    async def run() -> Undone:
        async with aconnect(url, *sample.bindings) as db:
            return await undo(db, path, sample.model.spaces)

    return asyncio.run(run())
