"""Findings with their meaning and, with --write, their repair: the plan first, then the repair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from keywright.explorer.audits import Proposal
from keywright.explorer.explanations import explained
from keywright.explorer.explorer import explorer_of, own_form, page
from keywright.tools.audit.findings import Finding
from keywright.tools.repair.repairer import StepOutcome

__all__ = ["audit", "audit_live", "audit_start", "finding", "repair"]


async def audit(request: Request) -> Response:
    return page(request, "audit.html", **_values(request))


async def audit_live(request: Request) -> Response:
    """Return progress and findings, for polling."""
    return page(request, "audit_live.html", **_values(request))


async def audit_start(request: Request) -> Response:
    await own_form(request)
    explorer_of(request).auditing.start()
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
    return page(
        request,
        "finding.html",
        status=status,
        finding=found,
        explained=explained(found.code),
        proposal=proposal,
        outcomes=outcomes,
        changed=status == 409,
    )


def _values(request: Request) -> dict[str, Any]:
    auditing = explorer_of(request).auditing
    return {
        "auditing": auditing,
        "groups": [(group, explained(group.code.code)) for group in auditing.groups()],
    }


def _found(request: Request) -> Finding:
    found = explorer_of(request).auditing.finding(request.path_params["finding"])
    if found is None:
        raise HTTPException(404, "The finding does not exist. It was repaired, or a newer audit ran.")
    return found
