"""Cells of a table as a page shows them: short texts, links to the keys that they name, and names of those.

Names of targets are read for the rows of one page only: their sizes in one round trip, the small ones in a
second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import msgspec

from keywright.engine import AsyncDatabase
from keywright.explorer.atlas import Atlas, spelled, text_of
from keywright.explorer.columns import EXPIRES, members_of
from keywright.explorer.neighbours import Neighbour, Neighbours
from keywright.explorer.presentation import TITLES, Part, Presenter, left, sized
from keywright.explorer.row_reader import batched, wire
from keywright.explorer.tables import Column, Row, cell_text, moment_of
from keywright.keyspace import Key, Map, Record, Value
from keywright.keyspace.codecs import CodecError, unpacking_at_most
from keywright.keyspace.codecs.models import has_fields
from keywright.keyspace.kinds.geo import Point
from keywright.keyspace.references import Place
from keywright.tools.describe.inspection import Hidden

__all__ = ["Cell", "Line", "lines_of", "simplest_links"]

SHORT = 90
LISTED = 3
MOST_TITLES = 150
A_TITLE, ALL_TITLES = 16 << 10, 1 << 20
LONGEST_TITLE = 60


class Cell(msgspec.Struct):
    """One cell: parts with their links, or the reason why it has none."""

    column: Column
    parts: list[Part] = []
    more: str = ""
    """What follows the parts, as in "and 4 more"."""
    problem: str = ""
    titles: list[str] = []
    """The names of the keys that the parts lead to, in their order; empty where it is not known."""
    ttl_ms: int | None = None

    @property
    def pairs(self) -> list[tuple[Part, str]]:
        return [
            (part, self.titles[at] if at < len(self.titles) else "") for at, part in enumerate(self.parts)
        ]


class Line(msgspec.Struct):
    """One row as it is shown."""

    row: Row
    cells: list[Cell]


async def lines_of(
    db: AsyncDatabase,
    atlas: Atlas,
    neighbours: Neighbours,
    rows: Sequence[Row],
    columns: Sequence[Column],
) -> list[Line]:
    """Return the rows of one page, with links along relations and references and names of targets."""
    presenter = Presenter()
    places: dict[Place, list[tuple[Cell, int]]] = {}
    lines = []
    for row in rows:
        linked = row_links(atlas, neighbours, row)
        cells = [_cell(row, column, presenter) for column in columns]
        for cell in cells:
            if cell.column.role == "fact":
                continue
            cell.titles = [""] * len(cell.parts)
            for at, part in enumerate(cell.parts):
                found = linked.get(part.text)
                if found is not None and found[0] != row.url:
                    part.url = found[0]
                    places.setdefault(found[1], []).append((cell, at))
        lines.append(Line(row, cells))
    titles = await _titles(db, list(islice(places, MOST_TITLES)))
    for place, title in titles.items():
        for cell, at in places[place]:
            cell.titles[at] = title
    return lines


def _cell(row: Row, column: Column, presenter: Presenter) -> Cell:
    if column.id in row.problems:
        return Cell(column, problem=_short(row.problems[column.id], 160))
    value = row.values.get(column.id)
    if value is None:
        unknown = column is EXPIRES and EXPIRES.id not in row.values
        return Cell(column, [Part("word", "—")] if unknown else [])
    if column.sort == "span":
        return Cell(column, [Part("number", left(value))], ttl_ms=value)
    if column.sort == "size":
        return Cell(column, [Part("number", sized(value))])
    if column.role == "variable":
        text = text_of(value, SHORT) if isinstance(value, bytes) else _short(cell_text(value))
        return Cell(column, [Part("concealed" if isinstance(value, Hidden) else "text", text)])
    if isinstance(value, list | tuple | set | frozenset) and not hasattr(value, "_fields"):
        items = list(islice(value, LISTED))
        if all(isinstance(item, str | int | float | Hidden) for item in items):
            more = len(value) - len(items)
            parts = [_shortened(presenter.part(item)) for item in items]
            return Cell(column, parts, f"and {more:,} more" if more else "" if items else "[]")
    if isinstance(value, Mapping | list | tuple | set | frozenset) and not isinstance(value, Point):
        return Cell(column, [Part("data", _short(cell_text(value)))])
    if has_fields(type(value)):
        return Cell(column, [Part("data", _short(cell_text(value)))])
    part = presenter.part(value)
    return Cell(column, [_timed(part, value) if part.sort == "time" else _shortened(part)])


def _timed(part: Part, value: Any) -> Part:
    """Return a time in seconds; its distance from now and its exact form are the note."""
    moment = value if isinstance(value, datetime) else moment_of(value)
    if moment is None:
        return _shortened(part)
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    text = aware.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    return Part("time", text, f"{part.note}, {part.text}")


def _shortened(part: Part) -> Part:
    part.text = _short(part.text)
    return part


def _short(text: str, limit: int = SHORT) -> str:
    cut = text if len(text) <= limit else f"{text[:limit]}…"
    return "".join(char if char.isprintable() else " " if char in "\n\t" else spelled(char) for char in cut)


def row_links(atlas: Atlas, neighbours: Neighbours, row: Row) -> dict[str, tuple[str, Place]]:
    """Return the texts of a row that name another key, with its URL."""
    key = row.key
    if key is None:
        return {}
    declared = key.declaration
    value = None
    if row.stored is not None and not (declared.secret or declared.sealed):
        try:
            with unpacking_at_most(A_TITLE * 8):
                value = declared.storage.value(row.stored, key)
        except (CodecError, ValueError):
            value = None
    return simplest_links(atlas, neighbours.linked(key, value))


def simplest_links(atlas: Atlas, steps: Iterable[Neighbour]) -> dict[str, tuple[str, Place]]:
    """Return the texts that name one target, or one that is simpler than the others."""
    found: dict[str, dict[str, tuple[int, Place]]] = {}
    for step in steps:
        place = step.place
        field = place.stored_field
        values = place.key.declaration.values(place.key)
        text = text_of(field) if field is not None else str(values[-1]) if values else None
        if text is not None:
            simplicity = len(values) + (field is not None)
            found.setdefault(text, {})[atlas.url(place)] = (simplicity, place)
    links = {}
    for text, targets in found.items():
        (url, (simplest, place)), *others = sorted(targets.items(), key=lambda each: (each[1][0], each[0]))
        if not others or others[0][1][0] > simplest:
            links[text] = (url, place)
    return links


async def _titles(db: AsyncDatabase, places: Sequence[Place]) -> dict[Place, str]:
    """Return the names of targets that have one: a member called name, title and the like."""
    asked = [place for place in places if _may_have_title(place)]
    sizes = await batched(db, [_size(db, place) for place in asked])
    room = ALL_TITLES
    small = []
    for place, size in zip(asked, sizes, strict=True):
        if isinstance(size, int) and 0 < size <= min(A_TITLE, room):
            room -= size
            small.append(place)
    replies = await batched(db, [_title_read(db, place) for place in small])
    return await asyncio.to_thread(_decoded_titles, list(zip(small, replies, strict=True)))


def _may_have_title(place: Place) -> bool:
    kind = type(place.key)
    if kind.declaration.secret or kind.declaration.sealed or kind.declaration.upgrades_in_place:
        return False
    if place.field is not None:
        return isinstance(place.key, Map)
    return isinstance(place.key, Value) or (isinstance(place.key, Record) and _title_member(kind) is not None)


def _title_member(kind: type[Key]) -> Any:
    """Return the member of a record that names it."""
    members = {
        member.stored.decode(): member
        for shape, _ in kind.declaration.storage.shapes
        for member in shape.members
    }
    return next((members[name] for name in TITLES if name in members and name not in kind.hides), None)


def _size(db: AsyncDatabase, place: Place) -> Any:
    name, kind = db.context.name(place.key), type(place.key)
    if place.field is not None:
        return wire(kind, b"HSTRLEN", name, place.stored_field)
    if isinstance(place.key, Record):
        return wire(kind, b"HSTRLEN", name, _title_member(kind).stored)
    return wire(kind, b"STRLEN", name)


def _title_read(db: AsyncDatabase, place: Place) -> Any:
    name, kind = db.context.name(place.key), type(place.key)
    if place.field is not None:
        return wire(kind, b"HGET", name, place.stored_field)
    if isinstance(place.key, Record):
        return wire(kind, b"HGET", name, _title_member(kind).stored)
    return wire(kind, b"GET", name)


def _decoded_titles(replies: Sequence[tuple[Place, Any]]) -> dict[Place, str]:
    titles = {}
    with unpacking_at_most(ALL_TITLES):
        for place, reply in replies:
            if isinstance(reply, bytes) and (title := _title(place, reply)):
                titles[place] = _short(title, LONGEST_TITLE)
    return titles


def _title(place: Place, data: bytes) -> str:
    kind = type(place.key)
    storage = kind.declaration.storage
    codec = _title_member(kind).codec if isinstance(place.key, Record) else storage.item
    try:
        value = codec.decode(data)
    except CodecError:
        return ""
    if isinstance(place.key, Record):
        return value if isinstance(value, str) else ""
    members = members_of(value) or {}
    named = (members[name] for name in TITLES if name in members and name not in kind.hides)
    return next((each for each in named if isinstance(each, str) and each), "")
