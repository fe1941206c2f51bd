"""The explored database and others with the same declaration, side by side: counts, and one key."""

from __future__ import annotations

from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from keywright.errors import KeywrightError
from keywright.explorer.atlas import Sheet, key_url, query_of
from keywright.explorer.explorer import Explorer, Here, explorer_of, page
from keywright.explorer.json_pages import exact
from keywright.explorer.key_reader import Reading, read
from keywright.explorer.presentation import Part, Presenter
from keywright.explorer.sides import Side
from keywright.explorer.survey import Counted
from keywright.keyspace import Key
from keywright.tools.describe.plain import inspected

__all__ = ["comparison", "key_comparison"]


class Row(NamedTuple):
    """One template, with its counts in each database."""

    sheet: Sheet
    counted: list[Counted]

    @property
    def differs(self) -> bool:
        return len({each.keys for each in self.counted}) > 1


class Version(NamedTuple):
    """One key in one database."""

    label: str
    name: bytes
    reading: Reading | None
    value: Part | None
    problem: str | None
    same: bool
    """Whether its value equals the one of the explored database."""


async def comparison(request: Request) -> Response:
    explorer = explorer_of(request)
    sides = _sides(explorer)
    rows = [
        Row(sheet, [side.surveyor.latest.of(kind) for side in sides])
        for kind, sheet in explorer.atlas.sheets.items()
    ]
    document = {
        "databases": [side.label for side in sides],
        "templates": [
            {
                "keyspace": row.sheet.space.name,
                "name": row.sheet.about.name,
                "keys": [each.keys for each in row.counted],
                "memory": [each.memory for each in row.counted],
            }
            for row in rows
        ],
    }
    shown = [row for row in rows if any(each.keys for each in row.counted)]
    return page(request, "comparison.html", document, sides=sides, rows=shown)


async def key_comparison(request: Request) -> Response:
    """Show one key in every database."""
    explorer = explorer_of(request)
    name = query_of(request.scope["query_string"]).get("name", b"")
    key = explorer.atlas.key_of(name)
    if key is None:
        raise HTTPException(404, "No template matches this name, so it cannot be found in other databases.")
    versions: list[Version] = []
    for side in _sides(explorer):
        versions.append(await _version(side, key, versions[0] if versions else None))
    sheet = explorer.atlas.sheets[type(key)]
    document = {
        "name": exact(name),
        "databases": [
            {
                "label": each.label,
                "name": exact(each.name),
                "exists": each.reading is not None and each.reading.facts.exists,
                "value": _document(each.reading),
                "problem": each.problem,
                "same": each.same,
            }
            for each in versions
        ],
    }
    return page(
        request,
        "key_comparison.html",
        document,
        here=Here(sheet.space.name, sheet.about.name),
        name=name,
        sheet=sheet,
        versions=versions,
        back=key_url(name),
    )


def _sides(explorer: Explorer) -> list[Side]:
    if not explorer.beside:
        raise HTTPException(
            404, "This explorer shows one database. Start it with --beside to compare several."
        )
    return [explorer.own_side, *explorer.beside]


async def _version(side: Side, key: Key, first: Version | None) -> Version:
    name = side.db.context.name(key)
    try:
        reading = await read(side.db, key)
    except KeywrightError as error:
        if first is None:
            raise
        return Version(side.label, name, None, None, str(error), same=False)
    value = None if reading.inspection is None else Presenter().inspected(reading.inspection)
    same = first is None or (
        first.reading is not None
        and first.reading.facts.exists == reading.facts.exists
        and _document(first.reading) == _document(reading)
    )
    return Version(side.label, name, reading, value, _problem(reading), same)


def _document(reading: Reading | None) -> Any:
    return None if reading is None or reading.inspection is None else inspected(reading.inspection)


def _problem(reading: Reading) -> str | None:
    if not reading.facts.exists:
        return "There is no such key."
    if reading.trouble is not None:
        return "It is not stored as declared."
    return "It is too large to be shown." if reading.too_large else None
