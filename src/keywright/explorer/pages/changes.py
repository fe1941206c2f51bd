"""Changes: from keyspace notifications, and between the last two surveys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from keywright.explorer.atlas import Sheet
from keywright.explorer.explorer import Explorer, explorer_of, page
from keywright.explorer.json_pages import exact
from keywright.explorer.key_reader import answers, ask
from keywright.explorer.notifications import Change
from keywright.keyspace import gather_list
from keywright.keyspace.codecs import unpacking_at_most
from keywright.tools.describe.inspection import Inspection, inspect
from keywright.tools.describe.plain import inspected

__all__ = ["changes", "changes_live"]

SHOWN = 60
VALUED = 20
MOST_BYTES = 1 << 14
ENTRIES = 5
LONGEST_TEXT = 160
UNDECLARED = "not declared"


class Difference(NamedTuple):
    """The key counts of a template in the last two surveys."""

    sheet: Sheet
    before: int
    after: int
    per_minute: float | None


class Filter(NamedTuple):
    """What a page of changes shows: one template, one event, and whether the values are read."""

    template: str
    event: str
    values: bool
    paused: bool

    def accepts(self, change: Change) -> bool:
        name = change.kind.__name__ if change.kind is not None else UNDECLARED
        return self.template in ("", name) and self.event in ("", change.event)

    def query(self, **changed: Any) -> str:
        asked = self._replace(**changed)
        return urlencode(
            {
                name: value if isinstance(value, str) else "1"
                for name, value in asked._asdict().items()
                if value
            }
        )


async def changes(request: Request) -> Response:
    values = await _values(request)
    document = {
        "unavailable": values["why_not"],
        "seen": values["seen"],
        "changes": [
            {
                "time": datetime.fromtimestamp(each.moment, UTC).isoformat(),
                "event": each.event,
                "name": exact(each.name),
                "template": each.kind and each.kind.__name__,
                "value": values["decoded"].get(each.name),
            }
            for each in values["heard"]
        ],
        "between_surveys": [
            {"template": each.sheet.about.name, "before": each.before, "after": each.after}
            for each in values["differences"]
        ],
    }
    return page(request, "changes.html", document, **values)


async def changes_live(request: Request) -> Response:
    """Return the part of the page that is polled."""
    return page(request, "changes_live.html", **await _values(request))


async def _values(request: Request) -> dict[str, Any]:
    explorer = explorer_of(request)
    surveyor, watcher = explorer.surveyor, explorer.watcher
    before, after = surveyor.previous, surveyor.complete
    differences = []
    if before is not None and after is not None:
        for kind, sheet in explorer.atlas.sheets.items():
            was, now = before.of(kind).keys, after.of(kind).keys
            if was != now:
                differences.append(Difference(sheet, was, now, surveyor.change_per_minute(kind)))
    asked = request.query_params
    wanted = Filter(asked.get("template", ""), asked.get("event", ""), "values" in asked, "paused" in asked)
    kept = list(watcher.changes)
    heard = list(islice(filter(wanted.accepts, kept), VALUED if wanted.values else SHOWN))
    return {
        "why_not": watcher.why_not,
        "wanted": wanted,
        "templates": sorted({each.kind.__name__ if each.kind is not None else UNDECLARED for each in kept}),
        "events": sorted({each.event for each in kept}),
        "heard": heard,
        "decoded": await _decoded(explorer, heard) if wanted.values else {},
        "seen": watcher.seen,
        "differences": sorted(differences, key=lambda each: -abs(each.after - each.before)),
        "compared": before is not None and after is not None,
    }


async def _decoded(explorer: Explorer, heard: Sequence[Change]) -> dict[bytes, str]:
    """Return the present values of the changed keys as short texts, in two round trips."""
    keys = {each.name: key for each in heard if (key := explorer.atlas.key_of(each.name)) is not None}
    small = await _small(explorer, list(keys))
    read = {name: keys[name] for name in keys if name in small}
    with unpacking_at_most(MOST_BYTES * max(1, len(read))):
        found = await explorer.db.run(gather_list([inspect(key, ENTRIES).attempt() for key in read.values()]))
    texts = dict.fromkeys(keys, "")
    for name, inspection in zip(read, found, strict=True):
        if isinstance(inspection, Inspection) and inspection.value is not None:
            text = msgspec.json.encode(inspected(inspection)).decode()
            texts[name] = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
    return texts


async def _small(explorer: Explorer, names: Sequence[bytes]) -> set[bytes]:
    sizes = await answers(explorer.db, [ask(b"MEMORY", name, before=[b"USAGE"]) for name in names])
    return {name for name, size in zip(names, sizes, strict=True) if size is not None and size <= MOST_BYTES}
