"""A template's page: its documentation, and its keys, found by their variables.

Without variables it lists the survey's sample; with some of them it scans for a short time and returns a
cursor; with all of them it redirects to the key.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from keywright.engine.nodes import name_page
from keywright.engine.scan import escaped
from keywright.errors import VariableError
from keywright.explorer.atlas import Sheet, key_url
from keywright.explorer.explorer import Explorer, explorer_of, page
from keywright.explorer.key_reader import MOST_BYTES, measures
from keywright.explorer.survey import LONGEST_NAME
from keywright.keyspace import Key, gather_list
from keywright.keyspace.codecs import unpacking_at_most
from keywright.tools.describe.inspection import Hidden, Inspection, inspect

__all__ = ["template"]

A_PAGE = 50
FEWEST, MOST = 64, 4096
"""The COUNT of one SCAN: low while all names match, since a page cannot be split; high while none does."""
SCAN_SECONDS = 0.04
SEALS_READ, ENTRIES_READ = 16, 50
"""So many keys of a sealed template, and entries of each, are read to show how they are stored."""
_DIGITS = re.compile(rb"(\d{1,40})")


class Line(NamedTuple):
    """One listed key."""

    name: bytes
    variables: dict[str, str]
    ttl_ms: int | None
    memory: int | None


class Listing(NamedTuple):
    """A page of keys, how they were found, and the URL of the next page."""

    names: list[bytes]
    how: str
    more: str | None = None
    trouble: str | None = None


async def template(request: Request) -> Response:
    explorer = explorer_of(request)
    sheet = explorer.atlas.named(request.path_params["space"], request.path_params["name"])
    if sheet is None:
        raise HTTPException(404, "The explored keyspaces have no such template.")
    asked = {
        name: text
        for name in sheet.kind.declaration.template.variables
        if (text := request.query_params.get(name, "").strip())
    }
    if len(asked) == len(sheet.kind.declaration.template.variables):
        found = _outright(explorer, sheet, asked)
        if isinstance(found, Key):
            return RedirectResponse(key_url(explorer.db.context.name(found)), 303)
        listing = found
    else:
        listing = await _listing(explorer, sheet, asked, request.query_params)
    return page(
        request,
        "template.html",
        sheet=sheet,
        about=sheet.about,
        links=sheet.space.links_of(sheet.about.name),
        references=explorer.neighbours.references(sheet.kind),
        counted=explorer.surveyor.latest.of(sheet.kind),
        change=explorer.surveyor.change_per_minute(sheet.kind),
        asked=asked,
        columns=sorted(
            sheet.kind.declaration.template.variables, key=asked.__contains__
        ),  # variables that differ come first
        listing=listing,
        lines=await _lines(explorer, listing.names),
        sealing=await _sealing(explorer, sheet, listing.names[:SEALS_READ]),
    )


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


def _outright(explorer: Explorer, sheet: Sheet, asked: Mapping[str, str]) -> Key | Listing:
    """Return the key with these variables, or a listing with the error if one is invalid."""
    if not asked:
        return Listing([explorer.db.context.name(sheet.kind())], "the only key of this template")
    try:
        return explorer.atlas.key_from(sheet, asked)
    except VariableError as error:
        return Listing([], "", trouble=str(error))


async def _listing(
    explorer: Explorer, sheet: Sheet, asked: Mapping[str, str], parameters: Mapping[str, str]
) -> Listing:
    if asked or "cursor" in parameters:
        return await _scanned(explorer, sheet, asked, parameters.get("cursor", "0-0"))
    sample = explorer.surveyor.latest.of(sheet.kind)
    names = sorted(sample.names, key=_natural)
    start = _number(parameters.get("from", ""))
    following = f"{sheet.url}?from={start + A_PAGE}" if start + A_PAGE < len(names) else None
    how = "all keys" if sample.keys <= len(names) else f"{len(names)} keys of the survey's sample"
    return Listing(names[start : start + A_PAGE], how, following)


async def _scanned(explorer: Explorer, sheet: Sheet, asked: Mapping[str, str], cursor: str) -> Listing:
    """Find keys by some of their variables: SCAN for a short time from the cursor of the last page."""
    node, place = (_number(part) for part in (cursor.partition("-")[0], cursor.partition("-")[2]))
    alphabets = sheet.kind.declaration.template.alphabets
    try:
        values = {name: alphabets[name].parse(text) for name, text in asked.items()}
    except ValueError as error:
        return Listing([], "", trouble=f"The variables are invalid: {error}.")
    lead = explorer.db.context.prefixes[sheet.kind.declaration.space]
    pattern = escaped(lead) + sheet.kind.declaration.template.glob(values)
    names: list[bytes] = []
    count = FEWEST
    nodes = await explorer.db.nodes()
    until = time.monotonic() + SCAN_SECONDS
    while node < len(nodes) and len(names) < A_PAGE:
        place, page = await explorer.db.run(name_page(place, count, pattern=pattern), at=nodes[node])
        wanted = [name for name in page if _is_wanted(explorer, sheet, values, name)]
        names += wanted
        count = FEWEST if wanted else min(MOST, count * 4)
        node += place == 0
        if time.monotonic() >= until:  # after a page at least, so that each visit gets further
            break
    ended = node >= len(nodes)
    more = None if ended else f"{sheet.url}?{urlencode({**asked, 'cursor': f'{node}-{place}'})}"
    return Listing(list(dict.fromkeys(names)), "found by scanning", more)


def _is_wanted(explorer: Explorer, sheet: Sheet, values: Mapping[str, object], name: bytes) -> bool:
    key = explorer.atlas.key_of(name) if len(name) <= LONGEST_NAME else None
    return type(key) is sheet.kind and all(getattr(key, each) == value for each, value in values.items())


async def _lines(explorer: Explorer, names: list[bytes]) -> list[Line]:
    """Return the listed keys with their time to live and memory, in one round trip; skip deleted keys."""
    measured = await measures(explorer.db, names) if names else []
    lines = []
    for name, (ttl_ms, memory) in zip(names, measured, strict=True):
        key = explorer.atlas.key_of(name)
        if key is not None and ttl_ms != -2:
            lines.append(Line(name, dict(explorer.atlas.variables(key)), ttl_ms, memory))
    return lines


def _natural(name: bytes) -> list[bytes | int]:
    """Return a sort key that compares digits as numbers, so that 9 comes before 10."""
    return [int(part) if place % 2 else part for place, part in enumerate(_DIGITS.split(name))]


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else 0
