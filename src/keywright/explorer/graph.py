"""The relation graph around a key: two steps, drawn as the diagram of a schema is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from keywright.engine import AsyncDatabase
from keywright.explorer.atlas import Atlas, text_of
from keywright.explorer.key_reader import answers, ask
from keywright.explorer.neighbours import Neighbour, Neighbours
from keywright.explorer.presentation import Presenter
from keywright.keyspace import Key, gather_list
from keywright.keyspace.codecs import unpacking_at_most
from keywright.keyspace.references import Place
from keywright.tools.describe.inspection import Inspection, inspect
from keywright.tools.diagram.svg import LONGEST_CODE, LONGEST_TITLE, Card, Line, Mark, Wire, shortened
from keywright.tools.diagram.svg import drawn as svg

__all__ = ["Drawing", "drawn"]

MOST_FIRST = 12
MOST_OF_ONE = 4
MOST_SECOND, MOST_BEHIND = 2, 12
ENTRIES = 20
MOST_BYTES = 1 << 16


class Drawing(NamedTuple):
    """The boxes of the graph, and all of it as SVG."""

    nodes: list[Card]
    svg: Markup
    names: Mapping[Key, str] = {}
    """The names and titles in the neighbours that were read."""


class _Step(NamedTuple):
    """A drawn neighbour with those behind it; `more` counts the neighbours left out."""

    along: str
    sort: str
    place: Place | None
    more: int = 0
    behind: tuple[_Step, ...] = ()


async def drawn(
    db: AsyncDatabase, atlas: Atlas, neighbours: Neighbours, key: Key, steps: Sequence[Neighbour]
) -> Drawing:
    """Lay out the graph around a key: these neighbours, and one step further."""
    first = _chosen(steps)
    behind, names = await _behind(db, neighbours, key, first)
    drawing = _pictured(
        atlas, key, [step._replace(behind=more) for step, more in zip(first, behind, strict=True)]
    )
    return drawing._replace(names=names)


def _chosen(steps: Sequence[Neighbour]) -> list[_Step]:
    """Return a few steps of each sort, and the number left out."""
    by_name: dict[str, list[Neighbour]] = {}
    seen: set[Place] = set()
    for step in steps:
        if step.place not in seen:
            by_name.setdefault(step.along, []).append(step)
        seen.add(step.place)
    chosen: list[_Step] = []
    for name, group in by_name.items():
        most = MOST_FIRST if group[0].sort == "sibling" else MOST_OF_ONE
        shown = group[:most]
        chosen += [_Step(name, step.sort, step.place) for step in shown]
        if len(group) > len(shown):
            chosen.append(_Step(name, group[0].sort, None, len(group) - len(shown)))
    return chosen[:MOST_FIRST]


async def _behind(
    db: AsyncDatabase, neighbours: Neighbours, key: Key, first: Sequence[_Step]
) -> tuple[list[tuple[_Step, ...]], dict[Key, str]]:
    """Return the neighbours of each neighbour along relations and references, without the way back.

    Also return the names in the neighbours themselves.
    """
    read = await _readable(db, first)
    with unpacking_at_most(MOST_BYTES * len(read)):
        found = await db.run(gather_list([inspect(key, ENTRIES).attempt() for _, key in read]))
    seen = {key, *(step.place.key for step in first if step.place is not None)}
    behind: list[tuple[_Step, ...]] = [()] * len(first)
    names: dict[Key, str] = {}
    for (number, _), inspection in zip(read, found, strict=True):
        if isinstance(inspection, Inspection) and inspection.older is None:
            behind[number] = _further(neighbours, inspection, seen)
            if name := Presenter().inspected(inspection).name:
                names[inspection.key] = name
        if sum(map(len, behind)) >= MOST_BEHIND:
            break
    return behind, names


async def _readable(db: AsyncDatabase, steps: Sequence[_Step]) -> list[tuple[int, Key]]:
    """Return the keys of some steps that are small enough to read."""
    keys = [
        (number, step.place.key)
        for number, step in enumerate(steps)
        if step.place is not None and step.place.field is None and not step.place.key.declaration.secret
    ]
    names = [db.context.name(key) for _, key in keys]
    sizes = [
        ask(key.declaration.storage.layout.size, name) for (_, key), name in zip(keys, names, strict=True)
    ]
    found = await answers(db, [*sizes, *(ask(b"MEMORY", name, before=[b"USAGE"]) for name in names)])
    sized = zip(keys, found[: len(keys)], found[len(keys) :], strict=True)
    return [each for each, size, memory in sized if _bytes_to_read(each[1], size, memory) <= MOST_BYTES]


def _bytes_to_read(key: Key, size: int | None, memory: int | None) -> float:
    """Estimate the bytes read to inspect a key; 0 if its size is not known."""
    if key.redis_type == "string":
        return size or 0
    entries = 1 if key.declaration.storage.whole else size or 1
    return (memory or 0) / entries * min(entries, ENTRIES)


def _further(neighbours: Neighbours, inspection: Inspection, seen: set[Key]) -> tuple[_Step, ...]:
    # The inspection of a record lacks the value that references are declared on: only relations are followed.
    value = dict(inspection.value) if inspection.key.kind == "map" else inspection.value
    steps = [step for step in neighbours.linked(inspection.key, value) if step.place.key not in seen]
    shown = steps[:MOST_SECOND]
    seen.update(step.place.key for step in shown)
    further = [_Step(step.along, step.sort, step.place) for step in shown]
    if len(steps) > len(shown):
        further.append(_Step(steps[-1].along, steps[-1].sort, None, len(steps) - len(shown)))
    return tuple(further)


def _pictured(atlas: Atlas, key: Key, steps: Sequence[_Step]) -> Drawing:
    title = type(key).__name__
    cards = [_box("key", title, _detail(atlas, key), None, "here")]
    wires: list[Wire] = []
    for number, step in enumerate(steps):
        place = f"{number}"
        cards.append(_card(atlas, place, step))
        wires.append(_wire("key", place, step))
        for further, each in enumerate(step.behind):
            behind = f"{number}-{further}"
            cards.append(_card(atlas, behind, each))
            wires.append(_wire(place, behind, each))
    label = "Relation graph: this key, its neighbours, and one step further"
    return Drawing(cards, Markup(svg(cards, wires, label)))


def _card(atlas: Atlas, identity: str, step: _Step) -> Card:
    if step.place is None:
        return _box(identity, f"{step.more} more", _label(step), None, "many")
    key = step.place.key
    entry = step.place.stored_field
    detail = _detail(atlas, key) if entry is None else text_of(entry, LONGEST_CODE)
    return _box(identity, type(key).__name__, detail, atlas.url(step.place), "")


def _box(identity: str, title: str, detail: str, url: str | None, style: str) -> Card:
    lines = (
        Line(shortened(title, LONGEST_TITLE), "entity"),
        Line(shortened(detail, LONGEST_CODE), "detail"),
    )
    return Card(identity, lines, f"{title} {detail}", url, style=style)


def _detail(atlas: Atlas, key: Key) -> str:
    return " ".join(text for _, text in atlas.variables(key)) or "the only one"


def _wire(source: str, target: str, step: _Step) -> Wire:
    marks: tuple[Mark, Mark] = ("", "") if step.sort == "sibling" else ("", "arrow")
    return Wire(
        source, target, _label(step), step.along, step.sort, marks, None, "source", f"{source} {step.along}"
    )


def _label(step: _Step) -> str:
    """Return the name of a line. A relation is named after two templates, which the boxes name already."""
    return "relation" if "↔" in step.along else step.along
