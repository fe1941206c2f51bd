"""The entries of a collection on the page of its key: a table with pages, filters and exports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from keywright.errors import UsageError
from keywright.explorer.atlas import text_of
from keywright.explorer.cells import Line, lines_of
from keywright.explorer.entry_reader import PLACES, EntryPage, entry_page, has_pages
from keywright.explorer.explorer import Explorer
from keywright.explorer.exports import DEFAULT_LIMIT, Chunk, exported, row_document, wants_export
from keywright.explorer.key_reader import Facts, facts_of
from keywright.explorer.tables import TESTS, Column, Facet, Row, facets, filtered, ordered, telling
from keywright.explorer.views import View
from keywright.keyspace import Key

__all__ = ["EntryTable", "entry_export", "entry_table"]

EXPORTED = 1000
MOST_SHOWN = 10


class EntryTable(NamedTuple):
    """One page of entries as it is shown."""

    view: View
    page: EntryPage
    lines: list[Line]
    columns: list[Column]
    facets: list[Facet]
    matching: int
    trouble: str | None
    limit: int = DEFAULT_LIMIT
    tests: dict[str, str] = TESTS

    @property
    def shown_ids(self) -> set[str]:
        return {column.id for column in self.columns}

    @property
    def more(self) -> str | None:
        return None if self.page.more is None else self.view.at(**self.page.more)

    @property
    def back(self) -> str | None:
        return None if self.page.back is None else self.view.at(**self.page.back)

    def document(self) -> dict[str, Any]:
        return {
            "found": self.page.how,
            "order": self.page.order,
            "problem": self.trouble,
            "read": len(self.page.rows),
            "matching": self.matching,
            **self.view.document(),
            "columns": [msgspec.to_builtins(column) for column in self.page.columns],
            "next": self.more,
            "rows": [row_document(line.row) for line in self.lines],
        }


def _view(request: Request) -> View:
    return View.of("/key", request.scope["query_string"], fixed=("name", "name.hex"), places=PLACES)


async def entry_table(request: Request, explorer: Explorer, key: Key, facts: Facts) -> EntryTable | None:
    """Return the table of a collection; None for a key that is none, or is not stored as declared."""
    if not has_pages(key, facts):
        return None
    view = _view(request)
    found = await entry_page(explorer.db, key, facts, view.placed)
    trouble = found.trouble
    try:
        matching = _matching(found, view)
    except UsageError as error:
        matching, trouble = [], str(error)
    columns = [column for column in found.columns if column.id in view.shown] or _few(found)
    lines = await lines_of(explorer.db, explorer.atlas, explorer.neighbours, matching, columns)
    return EntryTable(
        view, found, lines, columns, facets(found.rows, found.columns[1:]), len(matching), trouble
    )


def _few(found: EntryPage) -> list[Column]:
    first, *others = found.columns
    return [first, *telling(found.rows, others, [first.id])[:MOST_SHOWN]]


def _matching(found: EntryPage, view: View) -> list[Row]:
    columns = {column.id: column for column in found.columns}
    matching = filtered(found.rows, columns, view.filters)
    return ordered(matching, columns.get(view.sort), descending=view.descending)


async def entry_export(request: Request, explorer: Explorer, key: Key) -> Response | None:
    """Return the entries from the place of the view on as CSV or JSON, if the request asks for them."""
    view = _view(request)
    form = wants_export(view.format, request.headers.get("accept", ""))
    if not form:
        return None
    name = explorer.db.context.name(key)
    facts = await facts_of(explorer.db, name)
    if not has_pages(key, facts):
        return None
    return exported(form, text_of(name, 80), _chunks(explorer, key, facts, view), view.limit, named=False)


async def _chunks(explorer: Explorer, key: Key, facts: Facts, view: View) -> AsyncIterator[Chunk]:
    placed: dict[str, str] | None = view.placed
    columns: list[Column] = []
    while placed is not None:
        found = await entry_page(explorer.db, key, facts, placed, most=EXPORTED)
        if found.trouble:
            raise UsageError(found.trouble)
        columns = columns or [each for each in found.columns if each.id in view.shown] or found.columns
        placed = found.more
        yield Chunk(columns, _matching(found, view), None if placed is None else view.at(**placed))
