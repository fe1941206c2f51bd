"""Changes: from keyspace notifications, and between the last two surveys."""

from __future__ import annotations

from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from keywright.explorer.atlas import Sheet
from keywright.explorer.explorer import explorer_of, page

__all__ = ["changes", "changes_live"]

SHOWN = 60


class Difference(NamedTuple):
    """The key counts of a template in the last two surveys."""

    sheet: Sheet
    before: int
    after: int
    per_minute: float | None


async def changes(request: Request) -> Response:
    return page(request, "changes.html", **_values(request))


async def changes_live(request: Request) -> Response:
    """Return the part of the page that is polled."""
    return page(request, "changes_live.html", **_values(request))


def _values(request: Request) -> dict[str, Any]:
    explorer = explorer_of(request)
    surveyor, watcher = explorer.surveyor, explorer.watcher
    before, after = surveyor.previous, surveyor.complete
    differences = []
    if before is not None and after is not None:
        for kind, sheet in explorer.atlas.sheets.items():
            was, now = before.of(kind).keys, after.of(kind).keys
            if was != now:
                differences.append(Difference(sheet, was, now, surveyor.change_per_minute(kind)))
    return {
        "why_not": watcher.why_not,
        "heard": list(watcher.changes)[:SHOWN],
        "seen": watcher.seen,
        "differences": sorted(differences, key=lambda each: -abs(each.after - each.before)),
        "compared": before is not None and after is not None,
    }
