"""Statistics by template: key counts from SCAN, and bytes and expiries from a sample of values."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import msgspec

from keywright.tools.audit.tally import GroupCount
from keywright.tools.audit.walk import AuditOptions, Walk
from keywright.tools.jobs import JobPlan
from keywright.tools.model import Model
from keywright.tools.pace import GENTLE, Pace, WalkProgress
from keywright.tools.readable import ReadableDatabase

__all__ = ["Count", "Snapshot", "snapshots", "take_snapshot"]

SAMPLE = 0.02


class Count(NamedTuple):
    """The statistics of one template; None is unknown.

    Bytes and the share of expiring keys come from the sample. Their errors are margins at 95 % confidence, 0
    if every key was measured.
    """

    template: str
    keys: int
    bytes: int | None
    expiring: float | None
    rate: float | None
    bytes_error: float = 0.0
    expiring_error: float = 0.0
    groups: dict[str, GroupCount] = {}  # noqa: RUF012  # not changed
    """The consumer groups of the streams that were read, where groups are declared."""


class Snapshot(NamedTuple):
    """The statistics of all templates of a model at one moment; `rate` is None in the first of several."""

    model: str
    seconds: float
    names: int
    outside: int
    unknown: int
    counts: list[Count]
    database: int | None = None
    """The number of the database, if the model declares one."""

    def as_data(self) -> dict[str, Any]:
        return {
            "model": self.model,
            **({} if self.database is None else {"database": self.database}),
            "seconds": round(self.seconds, 3),
            "names": self.names,
            "outside": self.outside,
            "unknown": self.unknown,
            "templates": [
                {**count._asdict(), "groups": msgspec.to_builtins(count.groups)} for count in self.counts
            ],
        }


async def take_snapshot(
    db: ReadableDatabase,
    model: Model,
    *,
    sample: float = SAMPLE,
    pace: Pace = GENTLE,
    before: tuple[float, Snapshot] | None = None,
    database: int | None = None,
    on_progress: Callable[[WalkProgress], None] | None = None,
    plan: JobPlan | None = None,
) -> Snapshot:
    """Scan all names once. `before` is the time and the result of an earlier pass, for the rates.

    `database` is a number for the snapshot, where a model is in several databases. With a `plan` of several
    jobs worker processes share the pages.
    """
    started = time.monotonic()
    options = AuditOptions(sample, pace, keep=0)
    walk = Walk(db, model.spaces, options, on_progress=on_progress, plan=plan)
    tally = await walk.run()
    seconds = time.monotonic() - started
    past = {count.template: count.keys for count in before[1].counts} if before else {}
    elapsed = started - before[0] if before else 0.0
    counts = []
    for known in walk.judge.matcher.known:
        template = known.label
        measure = tally.measure(template)
        rate = (measure.keys - past.get(template, 0)) / elapsed if elapsed else None
        counts.append(
            Count(
                template,
                measure.keys,
                measure.total_bytes,
                measure.coverage,
                rate,
                measure.bytes_error,
                measure.coverage_error,
                measure.groups,
            )
        )
    return Snapshot(
        model.name, seconds, tally.inside, tally.outside, sum(tally.patterns.values()), counts, database
    )


async def snapshots(
    db: ReadableDatabase,
    model: Model,
    *,
    sample: float = SAMPLE,
    pace: Pace = GENTLE,
    database: int | None = None,
    plan: JobPlan | None = None,
) -> AsyncIterator[Snapshot]:
    """Yield snapshots without end, each with the rates since the one before. Pause between them as needed."""
    before: tuple[float, Snapshot] | None = None
    while True:
        started = time.monotonic()
        snapshot = await take_snapshot(
            db, model, sample=sample, pace=pace, before=before, database=database, plan=plan
        )
        before = started, snapshot
        yield snapshot
