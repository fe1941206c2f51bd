"""Repairs of all findings of one code: the plan with its commands, progress, cancel and undo."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from keywright.explorer.explanations import explained
from keywright.explorer.explorer import explorer_of, own_form, page
from keywright.explorer.json_pages import exact
from keywright.explorer.repairs import RepairJob
from keywright.tools.audit.findings import CODES
from keywright.tools.repair.plan import REMOVABLE

__all__ = ["repair_apply", "repair_begin", "repair_cancel", "repair_job", "repair_live", "repair_undo"]


async def repair_begin(request: Request) -> Response:
    """Start to plan the repair of a code."""
    form = await _writing(request)
    code = form.get("code", "")
    if code not in CODES:
        raise HTTPException(400, "The form names a finding code that does not exist.")
    explorer = explorer_of(request)
    space = next((each for each in explorer.atlas.spaces if each.name == form.get("space")), None)
    if space is None and "space" in form:
        raise HTTPException(400, "The form names a keyspace that does not exist.")
    job = explorer.repairs.begin(code, remove="remove" in form, space=space)
    return RedirectResponse(f"/repair/{job.number}", 303)


async def repair_job(request: Request) -> Response:
    """Show one job: its plan, its progress or its result."""
    return page(request, "repair.html", _document(_job(request)), **_values(request))


async def repair_live(request: Request) -> Response:
    """Return the part of a job's page that is polled while it runs."""
    return page(request, "repair_live.html", **_values(request))


async def repair_apply(request: Request) -> Response:
    """Apply the plan that the page showed."""
    form = await _writing(request)
    job = _job(request)
    if not explorer_of(request).repairs.apply(job, form.get("plan", "")):
        raise HTTPException(409, "The plan has been applied or has changed. Open its page again.")
    return RedirectResponse(f"/repair/{job.number}", 303)


async def repair_cancel(request: Request) -> Response:
    await _writing(request)
    job = _job(request)
    explorer_of(request).repairs.cancel(job)
    return RedirectResponse(f"/repair/{job.number}", 303)


async def repair_undo(request: Request) -> Response:
    """Restore what a job removed."""
    await _writing(request)
    job = _job(request)
    if not explorer_of(request).repairs.undo(job):
        raise HTTPException(409, "There is nothing to undo: the job removed nothing, or was undone.")
    return RedirectResponse(f"/repair/{job.number}", 303)


async def _writing(request: Request) -> dict[str, str]:
    form = await own_form(request)
    if not explorer_of(request).settings.write:
        raise HTTPException(403, "This explorer is read-only. Start it with --write to repair.")
    return form


def _job(request: Request) -> RepairJob:
    number = request.path_params["number"]
    job = explorer_of(request).repairs.job(number)
    if job is None:
        raise HTTPException(404, "There is no such repair. The explorer keeps the last 20, until it ends.")
    return job


def _values(request: Request) -> dict[str, Any]:
    job = _job(request)
    return {
        "job": job,
        "explained": explained(job.code.code),
        "removable": job.code.code in REMOVABLE,
    }


def _document(job: RepairJob) -> dict[str, Any]:
    return {
        "number": job.number,
        "code": job.code.code,
        "keyspace": job.space and job.space.name,
        "state": job.state,
        "steps": job.total,
        "removes_data": job.removes,
        "plan": None if job.plan is None else job.mark,
        "first_steps": [
            {"action": step.action, "name": exact(step.name), "reason": step.reason, "commands": commands}
            for step, commands in job.steps
        ],
        "left_to_people": {} if job.plan is None else job.plan.left,
        "applied": job.done,
        "outcomes": dict(job.states),
        "problem": job.problem,
        "undo_file": str(job.undo_file) if job.can_undo else None,
        "undone": job.undone and {"restored": job.undone.restored, "left": job.undone.left},
    }
