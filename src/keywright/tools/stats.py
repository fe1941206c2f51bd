"""Statistics by template: key counts from SCAN, and bytes and expiries from a sample of values."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from keywright.engine import AsyncDatabase
from keywright.tools.audit.walk import AuditOptions, Walk
from keywright.tools.model import Model

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


class Snapshot(NamedTuple):
    """The statistics of all templates of a model at one moment; `rate` is None in the first of several."""

    model: str
    seconds: float
    names: int
    outside: int
    unknown: int
    counts: list[Count]

    def as_data(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "seconds": round(self.seconds, 3),
            "names": self.names,
            "outside": self.outside,
            "unknown": self.unknown,
            "templates": [count._asdict() for count in self.counts],
        }


async def take_snapshot(
    db: AsyncDatabase,
    model: Model,
    *,
    sample: float = SAMPLE,
    max_rate: int | None = None,
    before: tuple[float, Snapshot] | None = None,
) -> Snapshot:
    """Scan all names once. `before` is the time and the result of an earlier pass, for the rates."""
    started = time.monotonic()
    walk = Walk(db, model.spaces, AuditOptions(sample, max_rate, keep=0))
    tally = await walk.run()
    seconds = time.monotonic() - started
    past = {count.template: count.keys for count in before[1].counts} if before else {}
    elapsed = started - before[0] if before else 0.0
    counts = []
    for known in walk.judge.matcher.known:
        template = known.template.source
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
            )
        )
    inside = tally.names - tally.outside
    return Snapshot(model.name, seconds, inside, tally.outside, sum(tally.patterns.values()), counts)


async def snapshots(
    db: AsyncDatabase, model: Model, *, sample: float = SAMPLE, max_rate: int | None = None
) -> AsyncIterator[Snapshot]:
    """Yield snapshots without end, each with the rates since the one before. Pause between them as needed."""
    before: tuple[float, Snapshot] | None = None
    while True:
        started = time.monotonic()
        snapshot = await take_snapshot(db, model, sample=sample, max_rate=max_rate, before=before)
        before = started, snapshot
        yield snapshot
