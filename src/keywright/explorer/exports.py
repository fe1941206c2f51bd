"""Rows as CSV and JSON, streamed: limited in rows and in time, with as much rest as work for the server."""

from __future__ import annotations

import asyncio
import csv
import io
import re
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import msgspec
from starlette.responses import Response, StreamingResponse

from keywright.errors import KeywrightError
from keywright.explorer.json_pages import exact
from keywright.explorer.tables import Column, Row, cell_text
from keywright.tools.describe.plain import plain

__all__ = ["DEFAULT_LIMIT", "MOST_ROWS", "Chunk", "exported", "row_document", "wants_export"]

DEFAULT_LIMIT, MOST_ROWS = 10_000, 1_000_000
MOST_SECONDS = 120.0
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Chunk(NamedTuple):
    """Some rows with their columns, and the URL from which an export goes on after them."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    more: str | None = None


def wants_export(form: str, accept: str) -> str:
    """Return csv or json if a request asks for an export of rows, else an empty text."""
    if form in ("csv", "json"):
        return form
    return "csv" if accept.partition(",")[0].strip().lower().startswith("text/csv") else ""


def exported(
    form: str, title: str, chunks: AsyncIterator[Chunk], limit: int, *, named: bool = True
) -> Response:
    """Return the response that streams rows, `limit` at most. `named`: CSV has a column for their names."""
    rows = min(limit or DEFAULT_LIMIT, MOST_ROWS)
    stream = _csv(chunks, rows, named=named) if form == "csv" else _json(chunks, rows, title)
    file = re.sub(r"[^A-Za-z0-9._-]+", "-", title)[:80].strip("-.") or "export"
    return StreamingResponse(
        stream,
        media_type="text/csv; charset=utf-8" if form == "csv" else "application/json",
        headers={"Content-Disposition": f'attachment; filename="{file}.{form}"', "Vary": "Accept"},
    )


async def _limited(chunks: AsyncIterator[Chunk], limit: int) -> AsyncIterator[tuple[Chunk, str]]:
    """Yield chunks until a limit is reached, each with the reason if it is the last one too early."""
    began = last = time.monotonic()
    left = limit
    try:
        async for chunk in chunks:
            if len(chunk.rows) >= left and (chunk.more or len(chunk.rows) > left):
                yield Chunk(chunk.columns, chunk.rows[:left], chunk.more), f"the limit of {limit:,} rows"
                return
            left -= len(chunk.rows)
            if chunk.more and time.monotonic() - began > MOST_SECONDS:
                yield chunk, f"the limit of {MOST_SECONDS:.0f} seconds"
                return
            yield chunk, ""
            now = time.monotonic()
            await asyncio.sleep(min(1.0, now - last))
            last = time.monotonic()
    except KeywrightError as error:
        yield Chunk((), ()), str(error)


async def _csv(chunks: AsyncIterator[Chunk], limit: int, *, named: bool) -> AsyncIterator[str]:
    columns: Sequence[Column] | None = None
    async for chunk, reason in _limited(chunks, limit):
        text = io.StringIO()
        writer = csv.writer(text)
        if columns is None:
            columns = chunk.columns
            writer.writerow(
                [harmless(each) for each in [*(["key"] if named else []), *map(_heading, columns), "note"]]
            )
        for row in chunk.rows:
            writer.writerow(_fields(row, columns)[0 if named else 1 :])
        if reason:
            writer.writerow([f"… incomplete: {reason}{_from(chunk)}"])
        yield text.getvalue()


def _heading(column: Column) -> str:
    return (
        {"span": "ttl_ms", "size": "bytes"}.get(column.sort, column.title)
        if column.role == "fact"
        else column.title
    )


def _from(chunk: Chunk) -> str:
    return f". It goes on at {chunk.more}" if chunk.more else ""


def _fields(row: Row, columns: Sequence[Column]) -> list[str]:
    texts = [harmless(row.name.decode("utf-8", "backslashreplace"))]
    for column in columns:
        value = row.values.get(column.id)
        if column.id in row.problems:
            texts.append(f"(malformed: {row.problems[column.id]})")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            texts.append(cell_text(value))
        else:
            texts.append(harmless(cell_text(value)))
    return [*texts, harmless(row.note)]


def harmless(text: str) -> str:
    """Return a text that a spreadsheet does not take for a formula: an apostrophe is put in front."""
    return f"'{text}" if text.startswith(_FORMULA) else text


async def _json(chunks: AsyncIterator[Chunk], limit: int, title: str) -> AsyncIterator[bytes]:
    yield b'{"table": %s, "rows": [' % msgspec.json.encode(title)
    first, ended, more = True, "", None
    columns: Sequence[Column] = ()
    async for chunk, reason in _limited(chunks, limit):
        columns = columns or chunk.columns
        ended, more = reason, chunk.more
        lines = [msgspec.json.encode(row_document(row)) for row in chunk.rows]
        if lines:
            yield (b"\n" if first else b",\n") + b",\n".join(lines)
            first = False
    described = [msgspec.to_builtins(column) for column in columns]
    tail = {
        "columns": described,
        "complete": not ended,
        "reason": ended or None,
        "next": more if ended else None,
    }
    yield b"],\n" + msgspec.json.encode(tail)[1:]


def row_document(row: Row) -> dict[str, Any]:
    """Return a row as JSON data: typed values, and the reason of each that could not be decoded."""
    return {
        "name": exact(row.name),
        "url": row.url,
        "values": {name: plain(value) for name, value in row.values.items()},
        "problems": row.problems,
        "note": row.note or None,
    }
