"""The guided tour in four steps: break a sample, audit it, repair it, undo the repair."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from keywright.errors import UsageError
from keywright.explorer.explorer import Explorer, explorer_of, own_form, page
from keywright.explorer.guided_tour import GuidedTour
from keywright.explorer.json_pages import exact
from keywright.explorer.repairs import RepairJob
from keywright.tools.audit.findings import CODES, FindingCode
from keywright.tools.repair.plan import REMOVABLE

__all__ = ["tour", "tour_audit", "tour_break", "tour_live", "tour_refill"]

_DAMAGE = {
    "KW101": "A key was written that no template matches.",
    "KW102": "A copy of a key was stored under an older version.",
    "KW103": "A value was stored in an older shape.",
    "KW201": "A key was replaced by one of another Redis type.",
    "KW202": "A value was overwritten with bytes that do not decode.",
    "KW203": "A required member of a record was deleted.",
    "KW204": "An encrypted value was overwritten with plain text.",
    "KW205": "A bit of an encrypted value was flipped.",
    "KW207": "A consumer group of a stream was deleted.",
    "KW208": "A consumer group was added to a stream.",
    "KW301": "The expiry of a key was removed.",
    "KW302": "The expiry of a key was set to a later time.",
    "KW304": "The expiry of a field was removed.",
    "KW305": "A field was given an expiry.",
    "KW401": "A key that another one refers to was deleted.",
    "KW402": "One side of a relation was deleted.",
    "KW403": "One side of a relation got an entry that the other side does not have.",
    "KW404": "An index got an id without a record.",
    "KW405": "A record was taken out of its index.",
}


class Row(NamedTuple):
    """One code: how many faults were planted, how many findings the last audit has, and its last repair."""

    code: FindingCode
    damage: str
    planted: int
    found: int | None
    """None if no audit ran since the damage."""
    job: RepairJob | None
    removable: bool


class Progress(NamedTuple):
    """The state of the tour."""

    rows: list[Row]
    jobs: list[RepairJob]
    audited: bool
    """Whether an audit ended after the sample was changed last."""
    missed: int
    """How many of the faults the audit did not find."""

    @property
    def planted(self) -> int:
        return sum(row.planted for row in self.rows)

    @property
    def found(self) -> int:
        return sum(row.found or 0 for row in self.rows)

    @property
    def repaired(self) -> int:
        return sum(job.states["done"] for job in self.jobs if job.undone is None)


async def tour(request: Request) -> Response:
    explorer, guide = _guided(request)
    values = _values(request)
    progress: Progress = values["progress"]
    document = {
        "keyspace": guide.space.name,
        "prefix": guide.prefix.decode(),
        "keys": _keys(explorer, guide),
        "running": guide.action,
        "problem": guide.trouble,
        "faults": [{"code": each.code, "name": exact(each.name)} for each in guide.faults],
        "audited": progress.audited,
        "missed": progress.missed if progress.audited else None,
        "codes": [
            {
                "code": row.code.code,
                "title": row.code.title,
                "damage": row.damage,
                "planted": row.planted,
                "found": row.found,
                "repair": row.job and f"/repair/{row.job.number}",
            }
            for row in progress.rows
        ],
        "repairs": [
            {"url": f"/repair/{job.number}", "code": job.code.code, "state": job.state}
            for job in progress.jobs
        ],
    }
    return page(request, "tour.html", document, **values)


async def tour_live(request: Request) -> Response:
    """Return the steps, for polling."""
    return page(request, "tour_live.html", **_values(request))


async def tour_break(request: Request) -> Response:
    _, guide = await _changing(request)
    guide.break_it()
    return RedirectResponse("/tour", 303)


async def tour_audit(request: Request) -> Response:
    explorer, _ = await _changing(request)
    explorer.auditing.start()
    return RedirectResponse("/tour#audit", 303)


async def tour_refill(request: Request) -> Response:
    _, guide = await _changing(request)
    guide.begin_again()
    return RedirectResponse("/tour", 303)


async def _changing(request: Request) -> tuple[Explorer, GuidedTour]:
    await own_form(request)
    explorer, guide = _guided(request)
    if explorer.repairs.running:
        raise UsageError("a repair is running. Wait for it, or cancel it.")
    return explorer, guide


def _guided(request: Request) -> tuple[Explorer, GuidedTour]:
    explorer = explorer_of(request)
    if explorer.tour is None or not explorer.settings.write:
        raise HTTPException(404, "This explorer has no tour: only samples of `keywright up` may be damaged.")
    return explorer, explorer.tour


def _values(request: Request) -> dict[str, Any]:
    explorer, guide = _guided(request)
    progress = _progress(explorer, guide)
    return {
        "guide": guide,
        "progress": progress,
        "auditing": explorer.auditing,
        "damage": _DAMAGE,
        "since": time.time() - guide.changed,
        "planted_sorts": len({fault.code for fault in guide.faults}),
        "keys": _keys(explorer, guide),
        "polls": guide.busy or explorer.auditing.running or any(job.busy for job in progress.jobs),
    }


def _progress(explorer: Explorer, guide: GuidedTour) -> Progress:
    auditing = explorer.auditing
    audited = auditing.tally is not None and auditing.begun > guide.changed
    kept = [each for group in auditing.groups() for each in group.kept if guide.has(each.name)]
    found = Counter(finding.code for finding in kept)
    planted = Counter(fault.code for fault in guide.faults)
    jobs = [job for job in explorer.repairs.jobs if job.space is guide.space and job.begun > guide.changed]
    codes = sorted(planted.keys() | (found.keys() if audited else set()))
    rows = [
        Row(
            CODES[code],
            _DAMAGE.get(code, "") if planted[code] else "",
            planted[code],
            found[code] if audited else None,
            next((job for job in jobs if job.code.code == code), None),
            code in REMOVABLE,
        )
        for code in codes
    ]
    known = {(finding.code, finding.name) for finding in kept}
    missed = sum((fault.code, fault.name) not in known for fault in guide.faults)
    return Progress(rows, jobs, audited, missed)


def _keys(explorer: Explorer, guide: GuidedTour) -> int:
    snapshot = explorer.surveyor.latest
    return sum(snapshot.of(kind).keys for kind in guide.space)
