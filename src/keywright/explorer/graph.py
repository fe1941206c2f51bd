"""The relation graph around a key: two steps, laid out in columns from left to right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from keywright.engine import AsyncDatabase
from keywright.explorer.atlas import Atlas, text_of
from keywright.explorer.key_reader import answers, ask
from keywright.explorer.neighbours import Neighbour, Neighbours
from keywright.keyspace import Key, gather_list
from keywright.keyspace.codecs import unpacking_at_most
from keywright.keyspace.references import Place
from keywright.tools.describe.inspection import Inspection, inspect

__all__ = ["Drawing", "Edge", "Node", "drawn"]

MOST_FIRST = 12
MOST_OF_ONE = 4
MOST_SECOND = 2
ENTRIES = 20
MOST_BYTES = 1 << 16
WIDTH, HEIGHT, GAP, AISLE = 230, 40, 12, 110


class Node(NamedTuple):
    """A key in the drawing, or a placeholder for several."""

    title: str
    detail: str
    url: str | None
    x: float
    y: float

    @property
    def middle(self) -> float:
        return self.y + HEIGHT / 2


class Edge(NamedTuple):
    """A curve between two nodes, labelled with its relation or reference."""

    path: str
    label: str
    x: float
    y: float
    sort: str


class Drawing(NamedTuple):
    """The nodes and edges that a page template draws."""

    nodes: list[Node]
    edges: list[Edge]
    width: float
    height: float


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
    behind = await _behind(db, neighbours, key, first)
    return _laid_out(
        atlas, key, [step._replace(behind=more) for step, more in zip(first, behind, strict=True)]
    )


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
) -> list[tuple[_Step, ...]]:
    """Return the neighbours of each neighbour along relations and references, without the way back."""
    read = await _readable(db, first)
    with unpacking_at_most(MOST_BYTES * len(read)):
        found = await db.run(gather_list([inspect(key, ENTRIES).attempt() for _, key in read]))
    seen = {key, *(step.place.key for step in first if step.place is not None)}
    behind: list[tuple[_Step, ...]] = [()] * len(first)
    for (number, _), inspection in zip(read, found, strict=True):
        if isinstance(inspection, Inspection) and inspection.older is None:
            behind[number] = _further(neighbours, inspection, seen)
    return behind


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


def _laid_out(atlas: Atlas, key: Key, steps: Sequence[_Step]) -> Drawing:
    columns = [8.0, 8.0 + WIDTH + AISLE, 8.0 + 2 * (WIDTH + AISLE)]
    nodes: list[Node] = []
    edges: list[Edge] = []
    y = 8.0
    placed: list[tuple[_Step, Node]] = []
    said = ""
    for step in steps:
        rows = max(1, len(step.behind))
        node = _node(atlas, step, columns[1], y + (rows - 1) * (HEIGHT + GAP) / 2)
        placed.append((step._replace(along="" if step.along == said else step.along), node))
        said = step.along
        for row, further in enumerate(step.behind):
            behind = _node(atlas, further, columns[2], y + row * (HEIGHT + GAP))
            nodes.append(behind)
            repeated = row > 0 and step.behind[row - 1].along == further.along
            edges.append(_edge(node, behind, further._replace(along="") if repeated else further))
        y += rows * (HEIGHT + GAP)
    height = max(y, 8.0 + HEIGHT + GAP)
    center = Node(type(key).__name__, _detail(atlas, key), None, columns[0], (height - HEIGHT) / 2)
    edges += [_edge(center, node, step) for step, node in placed]
    deepest = 2 if any(step.behind for step in steps) else 1
    return Drawing(
        [center, *(node for _, node in placed), *nodes], edges, columns[deepest] + WIDTH + 8, height
    )


def _node(atlas: Atlas, step: _Step, x: float, y: float) -> Node:
    if step.place is None:
        return Node(f"{step.more} more", step.along, None, x, y)
    key = step.place.key
    entry = step.place.stored_field
    detail = _detail(atlas, key) if entry is None else text_of(entry, 26)
    return Node(type(key).__name__, detail, atlas.url(step.place), x, y)


def _detail(atlas: Atlas, key: Key) -> str:
    text = " ".join(text for _, text in atlas.variables(key)) or "the only one"
    return text if len(text) <= 28 else f"…{text[-27:]}"


def _edge(start: Node, end: Node, step: _Step) -> Edge:
    x1, x2 = start.x + WIDTH, end.x
    bend = (x2 - x1) / 2
    path = (
        f"M{x1:.0f} {start.middle:.0f} C{x1 + bend:.0f} {start.middle:.0f} "
        f"{x2 - bend:.0f} {end.middle:.0f} {x2:.0f} {end.middle:.0f}"
    )
    return Edge(path, step.along, x2 - 6, end.middle - 5, step.sort)
