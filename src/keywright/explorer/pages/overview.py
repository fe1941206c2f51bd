"""The map: every template with its counts, as a treemap and a table; the nodes and slots of a cluster."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from keywright.explorer.atlas import Sheet
from keywright.explorer.explorer import Explorer, explorer_of, own_form, page
from keywright.explorer.survey import Counted
from keywright.explorer.treemap import Box, squarified
from keywright.keyspace import Keyspace

__all__ = ["counted_document", "overview", "overview_live", "survey_now"]

WHOLE = Box(0, 0, 1000, 360)
SHADES = 6
HUES = 6
FULLEST = 12
LETTER = 8.0
"""The width of a letter in the drawing, to decide which labels fit."""


class Row(NamedTuple):
    """One template on the map."""

    sheet: Sheet
    counted: Counted
    change: float | None


class Tile(NamedTuple):
    """One template in the treemap."""

    row: Row
    box: Box
    colour: str
    label: str
    detail: str


async def overview(request: Request) -> Response:
    explorer = explorer_of(request)
    return page(request, "overview.html", _document(explorer), **_values(request))


async def overview_live(request: Request) -> Response:
    """Return the live part of the map, for polling; 204 if the page already shows the last survey."""
    surveyor = explorer_of(request).surveyor
    if surveyor.complete is not None and request.query_params.get("seen") == stamp(explorer_of(request)):
        return Response(status_code=204)
    return page(request, "overview_live.html", **_values(request))


async def survey_now(request: Request) -> Response:
    """Start the next survey now."""
    await own_form(request)
    explorer_of(request).surveyor.hurry()
    return RedirectResponse("/map", 303)


def stamp(explorer: Explorer) -> str:
    """Return the version of the shown survey, by which polling detects a newer one."""
    return f"{explorer.surveyor.latest.finished}{explorer.surveyor.trouble or ''}"


def _values(request: Request) -> dict[str, Any]:
    explorer = explorer_of(request)
    rows = _rows(explorer)
    snapshot = explorer.surveyor.latest
    by = "keys" if request.query_params.get("by") == "keys" else "memory"
    if not any(row.counted.memory for row in rows):
        by = "keys"  # the ACL denies MEMORY USAGE
    by_space = {
        space: [row for row in rows if row.sheet.space is space]
        for space in explorer.atlas.descriptions.values()
    }
    models = {space: number for number, model in enumerate(explorer.models) for space in model.spaces}
    return {
        "stamp": stamp(explorer),
        "by": by,
        "by_model": len(explorer.models) > 1,
        "spaces": by_space,
        "tiles": _tiles(rows, by, models),
        "whole": WHOLE,
        "total": sum(row.counted.keys for row in rows),
        "estimated": any(row.counted.estimated for row in rows),
        "total_bytes": sum(row.counted.memory or 0 for row in rows) or None,
        "fullest": heapq.nlargest(FULLEST, snapshot.slots.items(), key=lambda slot: slot[1]),
        "patterns": sorted(snapshot.patterns.items(), key=lambda each: -each[1]),
    }


def _document(explorer: Explorer) -> dict[str, Any]:
    snapshot, surveyor = explorer.surveyor.latest, explorer.surveyor
    return {
        "server": explorer.db.address.shown,
        "writable": explorer.settings.write,
        "survey": {
            "complete": surveyor.complete is not None,
            "age_seconds": round(snapshot.age, 1),
            "took_seconds": round(snapshot.seconds, 3),
            "problem": surveyor.trouble,
        },
        "templates": [
            counted_document(explorer, row.sheet, row.counted, row.change) for row in _rows(explorer)
        ],
        "undeclared": {"keys": snapshot.unknown_keys, "patterns": snapshot.patterns},
        "nodes": [
            {"node": each.label, "keys": each.keys, "memory": each.used_bytes} for each in snapshot.nodes
        ],
    }


def counted_document(
    explorer: Explorer, sheet: Sheet, counted: Counted, change: float | None
) -> dict[str, Any]:
    """Return a template with its counts and the findings of the last audit, as JSON data."""
    errors, warnings = explorer.auditing.counts_on(sheet.kind)
    findings = None if explorer.auditing.tally is None else {"errors": errors, "warnings": warnings}
    return {
        "keyspace": sheet.space.name,
        "name": sheet.about.name,
        "template": sheet.source,
        "kind": sheet.about.kind,
        "url": sheet.url,
        "keys": counted.keys,
        "memory": counted.memory,
        "expiring": counted.coverage,
        "estimated": counted.estimated,
        "change_per_minute": change,
        "findings": findings,
    }


def _rows(explorer: Explorer) -> list[Row]:
    surveyor = explorer.surveyor
    snapshot = surveyor.latest
    return [
        Row(sheet, snapshot.of(kind), surveyor.change_per_minute(kind))
        for kind, sheet in explorer.atlas.sheets.items()
    ]


def _tiles(rows: list[Row], by: str, models: Mapping[Keyspace, int]) -> list[Tile]:
    """Return the tiles: a colour for each of several models, else darker for heavier templates."""

    def weight(row: Row) -> float:
        return (row.counted.memory or 0) if by == "memory" else row.counted.keys

    stored = sorted((row for row in rows if weight(row) > 0), key=weight, reverse=True)
    boxes = squarified([weight(row) for row in stored], WHOLE)
    several = len(set(models.values())) > 1
    return [
        _tile(
            row,
            box,
            f"hue{models[row.sheet.kind.declaration.space] % HUES}"
            if several
            else f"shade{min(SHADES - 1, number)}",
        )
        for number, (row, box) in enumerate(zip(stored, boxes, strict=True))
    ]


def _tile(row: Row, box: Box, colour: str) -> Tile:
    name, keys = row.sheet.about.name, f"{row.counted.keys:,} key{'' if row.counted.keys == 1 else 's'}"
    fits = box.width > len(name) * LETTER + 14 and box.height > 24
    more = fits and box.width > len(keys) * LETTER + 14 and box.height > 42
    return Tile(row, box, colour, name if fits else "", keys if more else "")
