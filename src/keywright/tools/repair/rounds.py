"""A whole repair: audit, plan and apply, repeated, since a repair may uncover further findings."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from keywright.engine import AsyncDatabase
from keywright.keyspace import recover
from keywright.tools.audit import AuditOptions, Finding, audit
from keywright.tools.audit.matcher import Matcher
from keywright.tools.model import Model
from keywright.tools.pace import FULL_SPEED, Pacemaker, WalkProgress
from keywright.tools.repair.plan import RepairPlan, make_plan
from keywright.tools.repair.repairer import Repairer
from keywright.tools.repair.undo import UndoFile

__all__ = ["Repair", "apply_saved", "plan_repair", "repair"]

ROUNDS = 12
SHOWN = 20


class StepProgress(WalkProgress, frozen=True):
    """The progress of a plan that is applied."""

    @property
    def words(self) -> str:
        return "steps"


OnProgress = Callable[[WalkProgress], None]


class Repair(NamedTuple):
    """The result of a repair: steps by action, overtaken steps, and findings that were left, and why.

    `waiting` counts steps that remove data and were not applied, since others of the same plan completed
    data: another audit must confirm that they are still right.
    """

    rounds: int
    done: dict[str, int]
    overtaken: int
    failed: list[tuple[str, str]]
    left: dict[str, int]
    undo: Path | None
    waiting: int = 0

    @property
    def steps(self) -> int:
        return sum(self.done.values())


async def plan_repair(
    db: AsyncDatabase,
    model: Model,
    options: AuditOptions,
    path: Path,
    remove: frozenset[str],
    on_progress: OnProgress | None = None,
) -> RepairPlan:
    """Audit a database and write the plan of its repair to a file. Changes nothing."""
    with tempfile.TemporaryDirectory() as folder:
        spool = Path(folder) / "findings"  # so that a plan of any length needs no memory
        with spool.open("wb") as file:
            # At the primaries: a replica may be behind what an earlier round repaired.
            primaries = options._replace(prefer_replica=False)
            await audit(
                db,
                model,
                primaries,
                on_finding=lambda finding: _write(file, finding),
                on_progress=on_progress,
            )
        matcher = Matcher(model.spaces, db.context)
        return await make_plan(db, matcher, model.name, _read(spool), path, remove)


async def repair(
    db: AsyncDatabase,
    model: Model,
    options: AuditOptions,
    undo: Path,
    remove: frozenset[str] = frozenset(),
    on_progress: OnProgress | None = None,
) -> Repair:
    """Repair until an audit finds nothing repairable, or nothing more changes.

    Commits that a crashed process left incomplete on a cluster are finished or undone first.
    """
    await db.run(recover(*model.spaces))
    total: Counter[str] = Counter()
    overtaken, failed = 0, list[tuple[str, str]]()
    left: dict[str, int] = {}
    kept: Path | None = None
    rounds, waiting = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for rounds in range(1, ROUNDS + 1):  # noqa: B007  # the result has the number of rounds
            plan = await plan_repair(db, model, options, Path(folder) / "plan", remove, on_progress)
            result = await apply_saved(db, model, plan, undo, on_progress)
            total.update(result.done)
            overtaken += result.overtaken
            failed, left, kept = result.failed, plan.left, result.undo or kept
            waiting = result.waiting
            if not result.steps:
                break
    return Repair(rounds, dict(total), overtaken, failed, left, kept, waiting)


async def apply_saved(
    db: AsyncDatabase,
    model: Model,
    plan: RepairPlan,
    undo: Path,
    on_progress: OnProgress | None = None,
) -> Repair:
    """Apply one plan, once."""
    pacemaker = Pacemaker(FULL_SPEED)
    repairer = Repairer(db, Matcher(model.spaces, db.context), UndoFile(undo))
    done: Counter[str] = Counter()
    overtaken, failed = 0, list[tuple[str, str]]()
    completed = waiting = 0
    if plan.steps:
        repairer.undo.open()
    try:
        for number, step in enumerate(plan.steps_in_order()):
            if on_progress is not None and pacemaker.due():
                on_progress(StepProgress(number, plan.steps, pacemaker.seconds))
            if step.removes and completed:
                waiting += 1
                continue
            outcome = await repairer.apply(step)
            if outcome.state == "done":
                done[step.action] += 1
                completed += step.action == "fix" and not step.removes
            elif outcome.state == "overtaken":
                overtaken += 1
            elif len(failed) < SHOWN:
                failed.append((step.template, outcome.why))
    finally:
        repairer.undo.close()
    kept = undo if repairer.undo.lines else None
    return Repair(1, dict(done), overtaken, failed, plan.left, kept, waiting)


def _write(file: IO[bytes], finding: Finding) -> None:
    file.write(msgspec.json.encode(finding) + b"\n")


def _read(path: Path) -> Iterator[Finding]:
    with path.open("rb") as file:
        for line in file:
            yield msgspec.json.decode(line, type=Finding)
