"""A key's page: the decoded value, its raw bytes, its expiry and its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from keywright.errors import StoredDataError
from keywright.explorer.atlas import query_of, text_of
from keywright.explorer.explorer import Explorer, explorer_of, page
from keywright.explorer.graph import drawn
from keywright.explorer.key_reader import RAW_BYTES, Reading, are_there, facts_of, raw_of, read
from keywright.explorer.neighbours import Neighbour
from keywright.explorer.presentation import Part, Presenter
from keywright.keyspace import Map
from keywright.keyspace.references import Place
from keywright.keyspace.slots import slot_of

__all__ = ["key", "key_raw", "key_ttl"]

LONGEST_NAME = 64 * 1024
A_LINE = 16


class Way(NamedTuple):
    """One step from a key, and whether its target exists."""

    step: Neighbour
    url: str
    title: str
    variables: str
    present: bool | None


class Trail(NamedTuple):
    """All steps along one relation or reference."""

    along: str
    sort: str
    ways: list[Way]

    @property
    def absent(self) -> int:
        return sum(way.present is False for way in self.ways)


class RawEntry(NamedTuple):
    """Stored bytes: their label, a hex dump, and their size."""

    label: str
    lines: list[tuple[str, str, str]]
    size: int


async def key(request: Request) -> Response:
    explorer = explorer_of(request)
    name, entry = _asked(request)
    found = explorer.atlas.key_of(name)
    if found is None:
        return await _stranger(request, explorer, name)
    reading = await read(explorer.db, found, entry if found.declaration.storage.divisible else None)
    steps = explorer.neighbours.of(found, reading.whole)
    there = await are_there(explorer.db, [step.place for step in steps])
    trails = _trails(explorer, steps, there)
    stored = [step for step, present in zip(steps, there, strict=True) if present is not False]
    drawing = await drawn(explorer.db, explorer.atlas, explorer.neighbours, found, stored)
    return page(
        request,
        "key.html",
        status=200 if reading.facts.exists else 404,
        name=name,
        entry=entry,
        sheet=explorer.atlas.sheets[type(found)],
        variables=explorer.atlas.variables(found),
        facts=reading.facts,
        reading=reading,
        value=_value(explorer, reading, trails, whole=entry is None),
        trouble=_told(reading.trouble, hidden=explorer.atlas.hides(name)),
        linked=[trail for trail in trails if trail.sort != "sibling"],
        siblings=[trail for trail in trails if trail.sort == "sibling"],
        drawing=drawing if len(drawing.nodes) > 1 else None,
        findings=explorer.auditing.findings_on(name),
        slot=slot_of(name) if explorer.db.context.sharded else None,
        searchable=found.declaration.storage.divisible and reading.trouble is None,
    )


async def key_raw(request: Request) -> Response:
    """Return the stored bytes, as part of a page; none of a value that is secret or not declared."""
    explorer = explorer_of(request)
    name, entry = _asked(request)
    unknown = explorer.atlas.is_unknown(name) and not explorer.settings.show_unknown
    if unknown or explorer.atlas.hides(name):
        return page(request, "key_raw.html", hidden=True, unknown=unknown, entries=[], raw=None)
    raw = await raw_of(explorer.db, name, entry)
    entries = [RawEntry(text_of(label), _dump(data), len(data)) for label, data in raw.entries]
    return page(request, "key_raw.html", hidden=False, unknown=False, entries=entries, raw=raw)


async def key_ttl(request: Request) -> Response:
    """Return the time to live of a key, as part of a page."""
    explorer = explorer_of(request)
    name, _ = _asked(request)
    return page(request, "key_ttl.html", name=name, facts=await facts_of(explorer.db, name))


async def _stranger(request: Request, explorer: Explorer, name: bytes) -> Response:
    """Return the page of a key that no template matches: its facts, without a decoded value."""
    facts = await facts_of(explorer.db, name)
    older = explorer.atlas.matcher.old_place(name)
    return page(
        request,
        "stranger.html",
        status=200 if facts.exists else 404,
        name=name,
        facts=facts,
        older=older,
        findings=explorer.auditing.findings_on(name),
    )


def _asked(request: Request) -> tuple[bytes, bytes | None]:
    asked = query_of(request.scope["query_string"])
    name = asked.get("name", b"")
    if not name or len(name) > LONGEST_NAME:
        raise HTTPException(400, "The key name is missing or too long. Use /key?name=…")
    return name, asked.get("entry") or None


def _value(explorer: Explorer, reading: Reading, trails: Sequence[Trail], *, whole: bool) -> Part | None:
    if reading.inspection is None:
        return None
    key = reading.key

    def entry_url(field: Any) -> str:
        return explorer.atlas.url(Place(key, field))

    presenter = Presenter(_inline_links(trails), entry_url if whole and isinstance(key, Map) else None)
    return presenter.inspected(reading.inspection)


def _inline_links(trails: Sequence[Trail]) -> dict[str, str]:
    """Return the texts that become links inside the value: those with one target, or one simplest target."""
    places: dict[str, set[tuple[int, str]]] = {}
    for trail in trails:
        if trail.sort == "sibling":
            continue
        for way in trail.ways:
            if way.present is not False and (text := _only_text(way.step)) is not None:
                simplicity = len(way.step.place.key.declaration.values(way.step.place.key)) + (
                    way.step.place.field is not None
                )
                places.setdefault(text, set()).add((simplicity, way.url))
    links = {}
    for text, found in places.items():
        simplest, *others = sorted(found)
        if not others or others[0][0] > simplest[0]:
            links[text] = simplest[1]
    return links


def _only_text(step: Neighbour) -> str | None:
    """Return the text by which a value names a place: the entry, or the last variable of its key."""
    if step.place.stored_field is not None:
        return text_of(step.place.stored_field)
    values: tuple[Any, ...] = step.place.key.declaration.values(step.place.key)
    return str(values[-1]) if values else None


def _trails(explorer: Explorer, steps: Sequence[Neighbour], there: Sequence[bool | None]) -> list[Trail]:
    trails: dict[tuple[str, str], Trail] = {}
    for step, present in zip(steps, there, strict=True):
        target = step.place.key
        variables = " ".join(text for _, text in explorer.atlas.variables(target))
        if step.place.stored_field is not None:
            variables = f"{variables} {text_of(step.place.stored_field, 80)}".strip()
        way = Way(step, explorer.atlas.url(step.place), type(target).__name__, variables, present)
        trails.setdefault((step.along, step.sort), Trail(step.along, step.sort, [])).ways.append(way)
    return list(trails.values())


def _told(trouble: StoredDataError | None, *, hidden: bool) -> str | None:
    """Return why a value does not decode, without the value itself if that is secret."""
    if trouble is None:
        return None
    if hidden:
        return "The value is not stored as declared. It is secret, so it is not shown."
    return f"Expected {trouble.expected}, found {trouble.found}. {trouble.remedy}"


def _dump(data: bytes) -> list[tuple[str, str, str]]:
    """Return a hex dump in lines: offset, hexadecimal, ASCII."""
    shown = data[:RAW_BYTES]
    return [
        (
            f"{start:06x}",
            shown[start : start + A_LINE].hex(" "),
            "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in shown[start : start + A_LINE]),
        )
        for start in range(0, len(shown), A_LINE)
    ]
