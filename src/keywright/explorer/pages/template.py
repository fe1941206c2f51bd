"""A template's page: its keys as a table, and its declaration.

Without variables it lists the survey's sample; with some of them, a pattern or a cursor it scans for a short
time and returns a cursor; with all of them it redirects to the key. Order, filters and frequent values apply
to the rows that were read, and the page says which these are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from keywright.errors import UsageError, VariableError
from keywright.explorer.atlas import Sheet, key_url
from keywright.explorer.cells import Line, lines_of
from keywright.explorer.explorer import Explorer, Here, explorer_of, page
from keywright.explorer.exports import DEFAULT_LIMIT, Chunk, exported, row_document, wants_export
from keywright.explorer.key_reader import MOST_BYTES
from keywright.explorer.listings import Listing, index_of, listed, scanned
from keywright.explorer.pages.overview import counted_document
from keywright.explorer.row_reader import Rows, Sheets
from keywright.explorer.tables import TESTS, Column, Facet, Row, facets, filtered, ordered, telling
from keywright.explorer.views import View, number_of
from keywright.keyspace import Key, gather_list
from keywright.keyspace.codecs import unpacking_at_most
from keywright.tools.describe.inspection import Hidden, Inspection, inspect

__all__ = ["template"]

A_PAGE = 50
FILTERED = 250
"""So many keys of a scan are read for one page where members are filtered."""
EXPORTED = 200
EXPORT_SCAN_SECONDS = 0.02
SEALS_READ, ENTRIES_READ = 16, 50
"""So many keys of a sealed template, and entries of each, are read to show how they are stored."""
MOST_SHOWN = 8
"""So many columns of values are shown unless others are chosen."""
PLACES = ("cursor", "from", "match")


class Shown(NamedTuple):
    """The rows of a page, before and after filters, and what was said about them."""

    listing: Listing
    read: Rows
    matching: list[Row]
    columns: dict[str, Column]
    trouble: str | None


async def template(request: Request) -> Response:
    explorer = explorer_of(request)
    sheet = explorer.atlas.named(request.path_params["space"], request.path_params["name"])
    if sheet is None:
        raise HTTPException(404, "The explored keyspaces have no such template.")
    variables = sheet.kind.declaration.template.variables
    view = View.of(sheet.url, request.scope["query_string"], places=PLACES, variables=variables)
    asked = {name: text.strip() for name, text in view.fixed if text.strip()}
    if variables and len(asked) == len(variables) and not view.format:
        found = _outright(explorer, sheet, asked)
        if found is not None:
            return RedirectResponse(key_url(explorer.db.context.name(found)), 303)
    if form := wants_export(view.format, request.headers.get("accept", "")):
        return exported(form, sheet.about.name, _chunks(explorer, sheet, view, asked), view.limit)
    table = await _table(explorer, sheet, view, asked)
    start = number_of(view.placed.get("from", ""))
    paged = table.listing.mode in ("sample", "all")
    shown = table.matching[start : start + A_PAGE] if paged else table.matching
    columns = _shown_columns(table.read, view, asked)
    lines = await lines_of(explorer.db, explorer.atlas, explorer.neighbours, shown, columns)
    more = _more(view, table, start if paged else None)
    counts = facets(table.read.rows, table.read.columns)
    counted = explorer.surveyor.latest.of(sheet.kind)
    change = explorer.surveyor.change_per_minute(sheet.kind)
    index = index_of(sheet, explorer)
    document = {
        **counted_document(explorer, sheet, counted, change),
        "declaration": msgspec.to_builtins(sheet.about),
        "listing": {
            "found": _how(table.listing),
            "order": table.listing.order or None,
            "problem": table.trouble,
            "read": len(table.read.rows),
            "matching": len(table.matching),
            "total": table.listing.total,
            **view.document(),
            "columns": [msgspec.to_builtins(column) for column in table.read.columns],
            "facets": [_facet_document(facet) for facet in counts],
            "next": more,
            "keys": [_line_document(explorer, line) for line in lines],
        },
    }
    return page(
        request,
        "template.html",
        document,
        here=Here(sheet.space.name, sheet.about.name),
        sheet=sheet,
        about=sheet.about,
        links=sheet.space.links_of(sheet.about.name),
        references=explorer.neighbours.references(sheet.kind),
        counted=counted,
        change=change,
        asked=asked,
        view=view,
        tests=TESTS,
        table=table,
        all_columns=table.read.columns,
        columns=columns,
        shown_ids={column.id for column in columns},
        facets=counts,
        listing=table.listing,
        how=_how(table.listing),
        lines=lines,
        first=start + 1,
        more=more,
        before=view.at(**{"from": max(0, start - A_PAGE)}) if paged and start else None,
        walk=None if table.listing.mode != "sample" else view.at(cursor="0-0"),
        index=index,
        by_index=view.at(cursor="i-0-0") if index is not None and table.listing.mode != "all" else None,
        limit=DEFAULT_LIMIT,
        sealing=await _sealing(explorer, sheet, table.listing.names[:SEALS_READ]),
    )


async def _table(explorer: Explorer, sheet: Sheet, view: View, asked: Mapping[str, str]) -> Shown:
    narrowed = {**_fixed(sheet, view), **asked}
    placed = view.placed
    walking = bool(placed.get("cursor") or placed.get("match") or asked)
    members = [each for each in view.filters if each.column not in narrowed]
    listing = await listed(
        explorer, sheet, narrowed if walking else asked, placed, enough=FILTERED if members else A_PAGE
    )
    sheets = Sheets(explorer.db, explorer.atlas, sheet)
    read = await sheets.read(listing.names)
    columns = {column.id: column for column in read.columns}
    trouble = listing.trouble
    try:
        matching = filtered(read.rows, columns, view.filters)
        matching = ordered(matching, columns.get(view.sort), descending=view.descending)
    except UsageError as error:
        matching, trouble = [], str(error)
    return Shown(listing, read, matching, columns, trouble)


def _fixed(sheet: Sheet, view: View) -> dict[str, str]:
    """Return the variables that filters fix, so that a scan need not read other keys."""
    variables = sheet.kind.declaration.template.variables
    return {each.column: each.to for each in view.filters if each.test == "eq" and each.column in variables}


def _shown_columns(read: Rows, view: View, asked: Mapping[str, str]) -> list[Column]:
    """Return the chosen columns, else the variables that differ, the first members, expiry and memory."""
    columns = read.columns
    if view.shown:
        chosen = [column for column in columns if column.id in view.shown]
        if chosen:
            return chosen
    first = sorted((each for each in columns if each.role == "variable"), key=lambda each: each.id in asked)
    values = [each for each in columns if each.role in ("value", "count")]
    values = telling(read.rows, values, [each.id for each in first])
    return [*first, *values[:MOST_SHOWN], *(each for each in columns if each.role == "fact")]


def _more(view: View, table: Shown, start: int | None) -> str | None:
    if start is not None:
        place = {name: text for name, text in view.place if name != "from"}
        return view.at(**place, **{"from": start + A_PAGE}) if start + A_PAGE < len(table.matching) else None
    if table.listing.more is None:
        return None
    return view.at(**{**view.placed, "cursor": table.listing.more})


def _how(listing: Listing) -> str:
    return f"{listing.how}, {listing.order}" if listing.order else listing.how


async def _chunks(
    explorer: Explorer, sheet: Sheet, view: View, asked: Mapping[str, str]
) -> AsyncIterator[Chunk]:
    """Yield the rows of a view for an export: of a sample at once, of a scan piece by piece."""
    table = await _table(explorer, sheet, view, asked)
    if table.trouble:
        raise UsageError(table.trouble)
    columns = _exported_columns(table.read.columns, view)
    more = _more(view, table, None) if table.listing.more else None
    yield Chunk(columns, table.matching, more)
    sheets = Sheets(explorer.db, explorer.atlas, sheet)
    placed = view.placed
    narrowed = {**_fixed(sheet, view), **asked}
    cursor = table.listing.more
    while cursor is not None:
        placed = {**placed, "cursor": cursor}
        if cursor.startswith("i"):
            listing = await listed(explorer, sheet, narrowed, placed, enough=EXPORTED)
        else:
            listing = await scanned(
                explorer, sheet, narrowed, placed, enough=EXPORTED, seconds=EXPORT_SCAN_SECONDS
            )
        read = await sheets.read(listing.names)
        known = {**table.columns, **{column.id: column for column in read.columns}}
        matching = filtered(read.rows, known, view.filters)
        cursor = listing.more
        yield Chunk(columns, matching, None if cursor is None else view.at(**{**placed, "cursor": cursor}))


def _exported_columns(columns: Sequence[Column], view: View) -> list[Column]:
    chosen = [column for column in columns if column.id in view.shown]
    return chosen or list(columns)


def _facet_document(facet: Facet) -> dict[str, Any]:
    return {
        "column": facet.column.id,
        "values": [{"value": text, "count": count} for text, count in facet.values],
        "others": facet.others,
    }


def _line_document(explorer: Explorer, line: Line) -> dict[str, Any]:
    row = line.row
    links = [
        {"column": cell.column.id, "text": part.text, "url": part.url, "title": title or None}
        for cell in line.cells
        for part, title in cell.pairs
        if part.url and part.url.startswith("/")
    ]
    return {
        **row_document(row),
        "variables": dict(explorer.atlas.variables(row.key)),
        "ttl_ms": -1 if row.values.get("expires", 0) is None else row.values.get("expires"),
        "memory": row.values.get("memory"),
        "links": links,
    }


async def _sealing(explorer: Explorer, sheet: Sheet, names: Sequence[bytes]) -> str | None:
    """Return how values that are declared sealed are stored, as some of them show; None if none is."""
    if not sheet.kind.declaration.sealed:
        return None
    keys = [key for name in names if (key := explorer.atlas.key_of(name)) is not None]
    with unpacking_at_most(MOST_BYTES):
        found = await explorer.db.run(gather_list(inspect(key, ENTRIES_READ).attempt() for key in keys))
    marks = {mark for each in found if isinstance(each, Inspection) for mark in _marks(each.value)}
    states = {Hidden.SEALED: "sealed", Hidden.IN_CLEAR: "in clear"}
    known = [words for mark, words in states.items() if mark in marks]
    if not known:
        return "declared sealed"
    state = known[0] if len(known) == 1 else "mixed: some sealed, some in clear"
    return f"declared sealed, stored {state} ({len(keys)} read)"


def _marks(value: object) -> Iterator[Hidden]:
    if isinstance(value, Hidden):
        yield value
    elif isinstance(value, Mapping):
        yield from (mark for each in value.values() for mark in _marks(each))
    elif isinstance(value, list | tuple):
        yield from (mark for each in value for mark in _marks(each))


def _outright(explorer: Explorer, sheet: Sheet, asked: Mapping[str, str]) -> Key | None:
    """Return the key with these variables; None if one of them is invalid."""
    try:
        return explorer.atlas.key_from(sheet, asked)
    except VariableError:
        return None
