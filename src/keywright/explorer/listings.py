"""The names of a template that a page lists: the survey's sample, a bounded scan, or a declared index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from keywright.errors import KeywrightError, UsageError, VariableError
from keywright.explorer.atlas import Sheet
from keywright.explorer.explorer import Explorer
from keywright.explorer.key_scan import Cursor, as_glob, scan
from keywright.explorer.row_reader import batched, wire
from keywright.explorer.survey import LONGEST_NAME
from keywright.explorer.tables import natural
from keywright.keyspace import Key, Set, SortedSet
from keywright.keyspace.codecs import CodecError
from keywright.keyspace.relations import Index
from keywright.keyspace.template import escaped

__all__ = ["Listing", "index_of", "listed"]

AN_INDEX_PAGE = 64


class Listing(NamedTuple):
    """Names of a template, how they were found, and the cursor of the next ones."""

    names: list[bytes]
    how: str
    order: str = ""
    """The order of the names, in words."""
    more: str | None = None
    trouble: str | None = None
    mode: str = "sample"
    """sample, all (few enough to be known), scan, or index."""
    total: int | None = None
    """How many rows there are to walk through."""
    passed: int = 0


def index_of(sheet: Sheet, explorer: Explorer) -> type[Key] | None:
    """Return the set that holds the id of every key of a template, if one is declared."""
    for space in explorer.atlas.spaces:
        for link in space.links:
            pairs: list[tuple[Any, Any]] = (
                [(link.of, link.by)]
                if isinstance(link, Index)
                else [
                    (getattr(link, "forward", None), getattr(link, "index", None)),
                    (getattr(link, "inverse", None), getattr(link, "inverse_index", None)),
                ]
            )
            for of, by in pairs:
                if of is sheet.kind and by is not None and issubclass(by, Set | SortedSet):
                    found: type[Key] = by
                    return found
    return None


async def listed(
    explorer: Explorer, sheet: Sheet, asked: Mapping[str, str], placed: Mapping[str, str], *, enough: int
) -> Listing:
    """Return names of a template: by some variables, a pattern or a cursor, else from the last survey."""
    variables = sheet.kind.declaration.template.variables
    if not variables:
        return Listing([explorer.db.context.name(sheet.kind())], "The only key of this template", mode="all")
    if len(asked) == len(variables):
        try:
            key = explorer.atlas.key_from(sheet, asked)
        except VariableError as error:
            return Listing([], "", trouble=str(error))
        return Listing([explorer.db.context.name(key)], "The key with these variables", mode="all")
    cursor = placed.get("cursor", "")
    index = index_of(sheet, explorer)
    if cursor.startswith("i") and index is not None:
        return await _indexed(explorer, sheet, index, cursor)
    if asked or cursor or placed.get("match"):
        return await scanned(explorer, sheet, asked, placed, enough=enough)
    sample = explorer.surveyor.latest.of(sheet.kind)
    names = sorted(sample.names, key=lambda name: natural(name.decode("utf-8", "surrogateescape")))
    if sample.keys <= len(names):
        how = f"All {len(names):,} keys" if len(names) != 1 else "The only key"
        if explorer.surveyor.complete is None:
            how = f"{len(names):,} keys that the running survey has found"
        return Listing(names, how, "in order of their names", mode="all", total=len(names))
    return Listing(
        names,
        f"A sample of {len(names):,} of {sample.keys:,} keys",
        "in order of their names",
        total=sample.keys,
    )


async def scanned(
    explorer: Explorer,
    sheet: Sheet,
    asked: Mapping[str, str],
    placed: Mapping[str, str],
    *,
    enough: int,
    seconds: float | None = None,
) -> Listing:
    """Find keys by some of their variables or a pattern: SCAN for a short time from a cursor."""
    alphabets = sheet.kind.declaration.template.alphabets
    try:
        values = {name: alphabets[name].parse(text) for name, text in asked.items()}
    except ValueError as error:
        return Listing([], "", trouble=f"The variables are invalid: {error}.", mode="scan")
    lead = explorer.db.context.prefixes[sheet.kind.declaration.space]
    pattern = escaped(lead) + sheet.kind.declaration.template.glob(values)
    if match := placed.get("match"):
        try:
            glob = as_glob(match).encode()
        except UsageError as error:
            return Listing([], "", trouble=str(error), mode="scan")
        pattern = glob if glob.startswith((lead, b"*")) or not lead else escaped(lead) + glob

    def wanted(name: bytes) -> bool:
        key = explorer.atlas.key_of(name) if len(name) <= LONGEST_NAME else None
        return type(key) is sheet.kind and all(getattr(key, each) == value for each, value in values.items())

    cursor = Cursor.of(placed.get("cursor", ""))
    found = await scan(explorer.db, pattern, wanted, cursor, enough=enough, seconds=seconds)
    total = explorer.surveyor.latest.total or None
    if found.more is None:
        how = "Scanned all keys of this database"
    else:
        of = f" of {total:,}" if total and found.passed < total else ""
        how = f"Scanned about {found.passed:,}{of} keys of this database so far"
    more = None if found.more is None else str(found.more)
    return Listing(
        found.names, how, "in the server's hash order", more, mode="scan", total=total, passed=found.passed
    )


async def _indexed(explorer: Explorer, sheet: Sheet, index: type[Key], cursor: str) -> Listing:
    """Return a page of the ids of an index, as keys of the template that it lists."""
    at, passed = (Cursor.of(cursor).place, Cursor.of(cursor).passed)
    key = index()
    name = explorer.db.context.name(key)
    in_order = issubclass(index, SortedSet)
    if in_order:
        page = wire(index, b"ZRANGE", name, at, at + AN_INDEX_PAGE - 1)
        size = wire(index, b"ZCARD", name)
    else:
        page = wire(index, b"SSCAN", name, at, b"COUNT", AN_INDEX_PAGE)
        size = wire(index, b"SCARD", name)
    reply, total = await batched(explorer.db, [page, size])
    if isinstance(reply, KeywrightError) or isinstance(total, KeywrightError):
        return Listing([], "", trouble=f"The index {index.__name__} cannot be read.", mode="index")
    ids = reply if in_order else reply[1]
    names = []
    for member in ids:
        try:
            made = sheet.kind.made(index.declaration.decode(member))
            names.append(explorer.db.context.name(made))
        except (CodecError, KeywrightError):
            continue  # not an id of this template; an audit reports it
    passed += len(ids)
    following = at + len(ids) if in_order else int(reply[0])
    ended = following >= total if in_order else following == 0
    return Listing(
        list(dict.fromkeys(names)),
        f"Read {min(passed, total):,} of {total:,} ids of the index {index.__name__}",
        "in the order of its scores" if in_order else "in the server's hash order",
        None if ended else f"i-{following}-{passed}",
        mode="index",
        total=total,
        passed=passed,
    )
