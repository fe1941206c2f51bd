"""A whole audit: the walk, its budgets, and the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from keywright.tools.audit.budgets import Budget, check_budgets, over_budget
from keywright.tools.audit.checkpoint import Checkpoint
from keywright.tools.audit.findings import CODES, Finding
from keywright.tools.audit.report import AuditReport
from keywright.tools.audit.walk import AuditOptions, Walk, WalkProgress
from keywright.tools.jobs import JobPlan
from keywright.tools.model import Model
from keywright.tools.readable import ReadableDatabase

__all__ = ["FAILING", "audit"]

FAILING = frozenset(code.code for code in CODES.values() if code.level != "note")


async def audit(
    db: ReadableDatabase,
    model: Model,
    options: AuditOptions | None = None,
    *,
    budgets: Sequence[Budget] = (),
    failing: frozenset[str] = FAILING,
    show_ids: bool = False,
    on_finding: Callable[[Finding], None] | None = None,
    on_progress: Callable[[WalkProgress], None] | None = None,
    checkpoint: Checkpoint | None = None,
    database: int | None = None,
    plan: JobPlan | None = None,
) -> AuditReport:
    """Compare every key of a database with a model. Read only, in bounded memory.

    `on_finding` gets every finding as it is made; the report keeps the first of each code. A key that exists
    during the whole audit is seen at least once, one that is created or deleted meanwhile may be missed.
    `database` is a number for the report, where a model is in several databases. With a `plan` of several
    jobs worker processes share the pages; the report is that of one.
    """
    options = options or AuditOptions()
    started = time.monotonic()
    walk = Walk(
        db,
        model.spaces,
        options,
        on_finding=on_finding,
        on_progress=on_progress,
        checkpoint=checkpoint,
        plan=plan,
    )
    expiries = {known.label: _expiry(db, known.kind) for known in walk.judge.matcher.known}
    sources = {known.label: known.template.source for known in walk.judge.matcher.known}
    if budgets:
        check_budgets(budgets, sources.values())
    tally = await walk.run()
    if budgets:
        for finding in over_budget(budgets, tally, sources):
            tally.add(finding, options.keep)
    if checkpoint is not None:
        checkpoint.done()
    return AuditReport(
        model.name,
        db.address.shown,
        time.monotonic() - started,
        options.sample,
        walk.replicas,
        tally,
        expiries,
        failing,
        show_ids,
        walk.judge.lead,
        database,
    )


def _expiry(db: ReadableDatabase, kind: type) -> str:
    expiry = db.context.expiry_of(kind)
    return "" if expiry is None else expiry.describe()
