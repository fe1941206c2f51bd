"""A key's page: the decoded value, its raw bytes, its expiry and its neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from keywright.errors import StoredDataError
from keywright.explorer.atlas import key_url, query_of, text_of
from keywright.explorer.explorer import Explorer, Here, explorer_of, page
from keywright.explorer.graph import drawn
from keywright.explorer.json_pages import exact
from keywright.explorer.key_reader import RAW_BYTES, Facts, Raw, Reading, are_there, facts_of, raw_of, read
from keywright.explorer.near_names import near_keys, near_template
from keywright.explorer.neighbours import Neighbour
from keywright.explorer.pages.audit import finding_document
from keywright.explorer.pages.entries import entry_export, entry_table
from keywright.explorer.presentation import Part, Presenter
from keywright.explorer.snippets import snippets_of
from keywright.explorer.stored_form import stored_form
from keywright.explorer.undeclared import undeclared
from keywright.keyspace import Key, Map
from keywright.keyspace.references import Place
from keywright.keyspace.slots import slot_of
from keywright.tools.describe.plain import inspected

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
    name: str = ""
    """The name or title in its target, if that was read."""


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
    if entry is None and (export := await entry_export(request, explorer, found)) is not None:
        return export
    reading = await read(explorer.db, found, entry if found.declaration.storage.divisible else None)
    entries = await entry_table(request, explorer, found, reading.facts) if entry is None else None
    steps = explorer.neighbours.of(found, reading.whole)
    there = await are_there(explorer.db, [step.place for step in steps])
    present = [step for step, present in zip(steps, there, strict=True) if present is not False]
    drawing = await drawn(explorer.db, explorer.atlas, explorer.neighbours, found, present)
    trails = _trails(explorer, steps, there, drawing.names)
    sheet = explorer.atlas.sheets[type(found)]
    findings = explorer.auditing.findings_on(name)
    near = [] if reading.facts.exists else near_keys(explorer.surveyor.latest, name, sheet)
    trouble = _told(reading.trouble, hidden=explorer.atlas.hides(name))
    stored = await stored_form(explorer.db, found, reading.facts) if reading.trouble is not None else []
    snippets = snippets_of(found, explorer.db.context, reading.facts, entry)
    document = {
        **_facts_document(name, reading.facts),
        "keyspace": sheet.space.name,
        "template": sheet.about.name,
        "variables": dict(explorer.atlas.variables(found)),
        "entry": entry and exact(entry),
        "value": reading.inspection and inspected(reading.inspection),
        "entries": entries and entries.document(),
        "truncated": reading.too_large or bool(reading.inspection and reading.inspection.truncated),
        "problem": trouble,
        "stored": [part._asdict() for part in stored],
        "links": [
            {
                "along": trail.along,
                "sort": trail.sort,
                "url": way.url,
                "stored": way.present,
                "name": way.name or None,
            }
            for trail in trails
            for way in trail.ways
        ],
        "findings": [finding_document(each) for each in findings],
        "near": [key_url(each) for each in near],
        "python": snippets.python,
        "redis_cli": snippets.redis_cli,
    }
    return page(
        request,
        "key.html",
        document,
        status=200 if reading.facts.exists else 404,
        here=Here(sheet.space.name, sheet.about.name),
        name=name,
        entry=entry,
        sheet=sheet,
        variables=explorer.atlas.variables(found),
        facts=reading.facts,
        reading=reading,
        value=None if entries else _value(explorer, reading, trails, whole=entry is None),
        entries=entries,
        near=near,
        prefix=_prefix_of(name),
        trouble=trouble,
        stored=stored,
        linked=[trail for trail in trails if trail.sort != "sibling"],
        siblings=[trail for trail in trails if trail.sort == "sibling"],
        drawing=drawing if len(drawing.nodes) > 1 else None,
        findings=findings,
        snippets=snippets,
        slot=slot_of(name) if explorer.db.context.sharded else None,
        searchable=found.declaration.storage.divisible and reading.trouble is None,
    )


async def key_raw(request: Request) -> Response:
    """Return the stored bytes; none of a value that is secret or not declared."""
    explorer = explorer_of(request)
    name, entry = _asked(request)
    unknown = explorer.atlas.is_unknown(name) and not explorer.settings.show_unknown
    hidden = unknown or explorer.atlas.hides(name)
    raw = Raw([], 0, truncated=False) if hidden else await raw_of(explorer.db, name, entry)
    document = {
        "name": exact(name),
        "entry": None if entry is None else exact(entry),
        "withheld": "not declared" if unknown else "secret" if hidden else None,
        "size": raw.size,
        "truncated": raw.truncated,
        "entries": [
            {"entry": exact(label), "size": len(data), "bytes": exact(data)} for label, data in raw.entries
        ],
    }
    return page(
        request,
        "key_raw.html" if "hx-request" in request.headers else "key_raw_page.html",
        document,
        name=name,
        entry=entry,
        hidden=hidden,
        unknown=unknown,
        entries=[RawEntry(text_of(label), _dump(data), len(data)) for label, data in raw.entries],
        raw=raw,
    )


async def key_ttl(request: Request) -> Response:
    """Return the time to live of a key, as part of a page."""
    explorer = explorer_of(request)
    name, _ = _asked(request)
    return page(request, "key_ttl.html", name=name, facts=await facts_of(explorer.db, name))


async def _stranger(request: Request, explorer: Explorer, name: bytes) -> Response:
    """Return the page of a key that no template matches: its facts, and its entries decoded by guess."""
    facts = await facts_of(explorer.db, name)
    older = explorer.atlas.matcher.old_place(name)
    like = None if facts.exists else near_template(explorer.atlas, name)
    near = [] if facts.exists else near_keys(explorer.surveyor.latest, name, like)
    findings = explorer.auditing.findings_on(name)
    withheld = _withheld(explorer, name)
    found = None if withheld or not facts.exists else await undeclared(explorer.db, name, facts)
    document = {
        **_facts_document(name, facts),
        "template": None,
        "stored": found
        and [
            {"entry": each.entry, "looks_like": each.form or None, "value": each.value}
            for each in found.parts
        ],
        "problem": withheld or (found and found.problem),
        "truncated": bool(found and found.more),
        "findings": [finding_document(each) for each in findings],
        "near": [key_url(each) for each in near],
    }
    return page(
        request,
        "stranger.html",
        document,
        status=200 if facts.exists else 404,
        name=name,
        facts=facts,
        withheld=withheld,
        found=found,
        older=older,
        near=near,
        near_template=like,
        prefix=_prefix_of(name),
        findings=findings,
    )


def _withheld(explorer: Explorer, name: bytes) -> str | None:
    """Return why the value of a key that no template matches is not shown; None if it is."""
    if explorer.atlas.hides(name):
        return "The value is declared secret, so it is not shown."
    if explorer.atlas.is_unknown(name) and not explorer.settings.show_unknown:
        return (
            "The value is not shown, because it may be a secret of another program. "
            "Start the explorer with --show-unknown to see it."
        )
    return None


def _facts_document(name: bytes, facts: Facts) -> dict[str, Any]:
    return {
        "name": exact(name),
        "exists": facts.exists,
        "type": facts.stored_type,
        "encoding": facts.encoding,
        "size": facts.size,
        "memory": facts.memory,
        "ttl_ms": facts.ttl_ms,
        "expiring_fields": [{"field": exact(field), "ttl_ms": ttl} for field, ttl in facts.fields],
        "groups": [group._asdict() for group in facts.groups],
    }


def _asked(request: Request) -> tuple[bytes, bytes | None]:
    asked = query_of(request.scope["query_string"])
    name = asked.get("name", b"") or _from_hex(asked.get("name.hex", b""))
    if not name or len(name) > LONGEST_NAME:
        raise HTTPException(400, "The key name is missing or too long. Use /key?name=…")
    return name, asked.get("entry") or None


def _prefix_of(name: bytes) -> str:
    """Return the pattern of names that begin as a name does, up to its last colon."""
    text = name.decode("utf-8", "replace")
    return f"{text.rpartition(':')[0] or text[:8]}:*" if ":" in text else f"{text[:8]}*"


def _from_hex(text: bytes) -> bytes:
    try:
        return bytes.fromhex(text.decode("ascii", "replace"))
    except ValueError:
        return b""


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


def _trails(
    explorer: Explorer, steps: Sequence[Neighbour], there: Sequence[bool | None], names: Mapping[Key, str]
) -> list[Trail]:
    trails: dict[tuple[str, str], Trail] = {}
    for step, present in zip(steps, there, strict=True):
        target = step.place.key
        variables = " ".join(text for _, text in explorer.atlas.variables(target))
        if step.place.stored_field is not None:
            variables = f"{variables} {text_of(step.place.stored_field, 80)}".strip()
        name = names.get(target, "") if step.place.field is None else ""
        way = Way(step, explorer.atlas.url(step.place), type(target).__name__, variables, present, name)
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
