"""Findings with their meaning and, with --write, their repair: the plan first, then the repair."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from keywright.explorer.audits import Proposal, finding_id
from keywright.explorer.explanations import explained
from keywright.explorer.explorer import explorer_of, own_form, page
from keywright.explorer.json_pages import exact
from keywright.explorer.trends import HEIGHT, WIDTH, sparkline
from keywright.tools.audit.findings import Finding
from keywright.tools.repair.repairer import StepOutcome
from keywright.tools.repair.step import Step

__all__ = ["audit", "audit_cancel", "audit_live", "audit_start", "finding", "finding_document", "repair"]


SHOWN_AUDITS = 20
BY_HAND = frozenset({"KW206", "KW208", "KW303", "KW305", "KW501", "KW502", "KW602", "KW603"})
"""Findings that no repair is known for."""


async def audit(request: Request) -> Response:
    auditing = explorer_of(request).auditing
    document = {
        "running": auditing.running,
        "problem": auditing.trouble,
        "keys": auditing.tally and auditing.tally.inside,
        "age_seconds": round(auditing.age, 1) if auditing.tally is not None else None,
        "findings": [
            {
                "code": group.code.code,
                "title": group.code.title,
                "severity": group.code.level,
                "count": group.total,
                "kept": [finding_document(each) for each in group.kept],
            }
            for group in auditing.groups()
        ],
        "history": [
            {"finished": past.finished, "keys": past.keys, "findings": past.findings}
            for past in auditing.history
        ],
    }
    return page(request, "audit.html", document, **_values(request))


async def audit_live(request: Request) -> Response:
    """Return progress and findings, for polling."""
    return page(request, "audit_live.html", **_values(request))


async def audit_start(request: Request) -> Response:
    await own_form(request)
    explorer_of(request).auditing.start()
    return RedirectResponse("/audit", 303)


async def audit_cancel(request: Request) -> Response:
    await own_form(request)
    await explorer_of(request).auditing.cancel()
    return RedirectResponse("/audit", 303)


async def finding(request: Request) -> Response:
    """Show one finding: its meaning, its remedy and its repair plan."""
    explorer = explorer_of(request)
    found = _found(request)
    proposal = await explorer.auditing.propose(found) if explorer.settings.write else None
    return _finding_page(request, found, proposal)


async def repair(request: Request) -> Response:
    """Apply the plan that the finding's page showed. If it has changed, show the new plan (409)."""
    form = await own_form(request)
    explorer = explorer_of(request)
    if not explorer.settings.write:
        raise HTTPException(403, "This explorer is read-only. Start it with --write to repair.")
    found = _found(request)
    proposal = await explorer.auditing.propose(found)
    if form.get("plan") != proposal.mark:
        return _finding_page(request, found, proposal, status=409)
    return _finding_page(request, found, proposal, await explorer.auditing.repair(proposal))


def _finding_page(
    request: Request,
    found: Finding,
    proposal: Proposal | None,
    outcomes: Sequence[StepOutcome] | None = None,
    status: int = 200,
) -> Response:
    document = {
        **finding_document(found),
        "meaning": explained(found.code).meaning,
        "remedy": explained(found.code).remedy,
        "plan": proposal
        and {
            "mark": proposal.mark,
            "removes_data": proposal.removes,
            "steps": [_step_document(step) for step in proposal.steps],
        },
        "outcomes": None
        if outcomes is None
        else [{**_step_document(each.step), "state": each.state, "why": each.why} for each in outcomes],
    }
    return page(
        request,
        "finding.html",
        document,
        status=status,
        finding=found,
        explained=explained(found.code),
        proposal=proposal,
        outcomes=outcomes,
        changed=status == 409,
    )


def finding_document(found: Finding) -> dict[str, Any]:
    """Return a finding as JSON data."""
    return {
        "id": finding_id(found),
        "code": found.code,
        "title": found.kind.title,
        "severity": found.kind.level,
        "template": found.template,
        "name": exact(found.name),
        "entry": found.member and exact(found.member),
        "other": found.other and exact(found.other),
        "reason": found.shown_reason(show_ids=True),
    }


def _step_document(step: Step) -> dict[str, Any]:
    return {
        "action": step.action,
        "name": exact(step.name),
        "entry": step.member and exact(step.member),
        "reason": step.reason,
    }


def _values(request: Request) -> dict[str, Any]:
    explorer = explorer_of(request)
    auditing = explorer.auditing
    past = list(auditing.history)
    totals = [each.total("error") + each.total("warning") for each in past]
    changes = (
        [_change(now - before) for before, now in itertools.pairwise([totals[0], *totals])] if totals else []
    )
    return {
        "auditing": auditing,
        "groups": [(group, explained(group.code.code)) for group in auditing.groups()],
        "history": list(zip(past, changes, strict=True))[::-1][:SHOWN_AUDITS],
        "trend": sparkline(totals),
        "size": (WIDTH, HEIGHT),
        "jobs": explorer.repairs.jobs,
        "by_hand": BY_HAND,
    }


def _change(difference: int) -> str:
    if not difference:
        return "as before"
    return f"{abs(difference):,} {'more' if difference > 0 else 'fewer'}"


def _found(request: Request) -> Finding:
    found = explorer_of(request).auditing.finding(request.path_params["finding"])
    if found is None:
        raise HTTPException(404, "The finding does not exist. It was repaired, or a newer audit ran.")
    return found
