"""The diagram as an SVG drawing: related boxes in rows with lines between them, the others packed below.

Colours come from the page's style sheet, so the drawing follows it into the dark.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from keywright.tools.docs.diagram import Box, Diagram, Edge

__all__ = ["svg"]

WIDTH, COLUMNS = 270, 3
TITLE, LINE, PAD = 30, 18, 10
GAP_X, GAP_Y, GAP_PACKED = 34, 72, 22
CHARACTERS, HEAD = 37, 12
MARGIN = 12
PORT = 46
_ENDS = {"one-to-one": ("1", "1"), "many-to-one": ("N", "1"), "many-to-many": ("N", "M")}


class _Placed(NamedTuple):
    box: Box
    x: int
    y: int

    @property
    def bottom(self) -> int:
        return self.y + _height(self.box)


class _Port(NamedTuple):
    """The point where a line meets a box, and its direction: down is 1, up is -1, sideways 0."""

    x: int
    y: int
    way: int


def svg(diagram: Diagram) -> str:
    """Return the drawing, without scripts and external resources."""
    placed = {each.box.name: each for each in _placed(diagram)}
    width = max((each.x + WIDTH for each in placed.values()), default=0) + MARGIN
    height = max((each.bottom for each in placed.values()), default=0) + MARGIN
    parts = [*_edges(diagram, placed), *map(_drawn, placed.values())]
    return (
        f'<svg class="diagram" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="The relations of the model">{"".join(parts)}</svg>'
    )


def _placed(diagram: Diagram) -> Iterator[_Placed]:
    related = {name for edge in diagram.edges for name in (edge.one, edge.other)}
    y = MARGIN
    for row in _rows(diagram):
        for column, box in enumerate(row):
            yield _Placed(box, _column(column), y)
        y += max(map(_height, row)) + GAP_Y
    depths = [y if related else MARGIN] * COLUMNS
    for box in diagram.boxes:
        if box.name not in related:
            column = depths.index(min(depths))
            yield _Placed(box, _column(column), depths[column])
            depths[column] += _height(box) + GAP_PACKED


def _rows(diagram: Diagram) -> Iterator[list[Box]]:
    """Yield rows of related boxes, by their distance from the one with the most relations."""
    boxes = {box.name: box for box in diagram.boxes}
    neighbours: dict[str, list[str]] = {name: [] for name in boxes}
    for edge in diagram.edges:
        neighbours[edge.one].append(edge.other)
        neighbours[edge.other].append(edge.one)
    seen: set[str] = set()
    for start in sorted(boxes, key=lambda name: -len(neighbours[name])):
        if start not in seen and neighbours[start]:
            for layer in _layers(start, neighbours, seen):
                for first in range(0, len(layer), COLUMNS):
                    yield [boxes[name] for name in layer[first : first + COLUMNS]]


def _layers(start: str, neighbours: dict[str, list[str]], seen: set[str]) -> list[list[str]]:
    layers: list[list[str]] = []
    waiting = deque([(start, 0)])
    seen.add(start)
    while waiting:
        name, depth = waiting.popleft()
        if depth == len(layers):
            layers.append([])
        layers[depth].append(name)
        for other in neighbours[name]:
            if other not in seen:
                seen.add(other)
                waiting.append((other, depth + 1))
    return layers


def _column(number: int) -> int:
    return MARGIN + number * (WIDTH + GAP_X)


def _height(box: Box) -> int:
    return TITLE + PAD + LINE * len(box.keys)


def _drawn(placed: _Placed) -> str:
    box, x, y = placed
    lines = [
        f'<text class="key" x="{x + 12}" y="{y + TITLE + LINE * number + 14}">'
        f"<title>{escape(key.full_template)}</title>{escape(_shortened(key.template))}</text>"
        for number, key in enumerate(box.keys)
    ]
    return (
        f'<g class="box"><rect x="{x}" y="{y}" width="{WIDTH}" height="{_height(box)}" rx="8"/>'
        f'<text class="entity" x="{x + 12}" y="{y + 20}">{escape(box.name)}</text>{"".join(lines)}</g>'
    )


def _edges(diagram: Diagram, placed: dict[str, _Placed]) -> Iterator[str]:
    taken: dict[tuple[str, int], int] = {}
    for edge in diagram.edges:
        one, other = placed[edge.one], placed[edge.other]
        yield _edge(edge, _port(one, other, taken), _port(other, one, taken))


def _port(box: _Placed, towards: _Placed, taken: dict[tuple[str, int], int]) -> _Port:
    """Return a free port on the side of a box that faces another."""
    way = (towards.y > box.y) - (towards.y < box.y)
    number = taken.setdefault((box.box.name, way), 0)
    taken[box.box.name, way] += 1
    if way == 0:
        side = box.x + WIDTH if towards.x >= box.x else box.x
        return _Port(side, box.y + 20 + LINE * number, 0)
    x = box.x + min(PORT * (number + 1), WIDTH - 20)
    return _Port(x, box.bottom if way > 0 else box.y, way)


def _edge(edge: Edge, start: _Port, end: _Port) -> str:
    first, second = _ENDS.get(edge.type, ("N", "M"))
    bend = GAP_Y * 2 // 3
    path = (
        f"M{start.x},{start.y} C{start.x},{start.y + bend * start.way} "
        f"{end.x},{end.y + bend * end.way} {end.x},{end.y}"
    )
    return (
        f'<g class="edge"><title>{escape(f"{edge.type}: {edge.label}")}</title><path d="{path}"/>'
        f"{_count(start, first)}{_count(end, second)}</g>"
    )


def _count(port: _Port, mark: str) -> str:
    """Return the label with the cardinality of this side, just outside the box."""
    y = port.y + 15 if port.way > 0 else port.y - 6
    return f'<text class="count" x="{port.x + 6}" y="{y}">{mark}</text>'


def _shortened(text: str) -> str:
    """Return a name without its middle: beginning and end distinguish it from others."""
    return text if len(text) <= CHARACTERS else f"{text[:HEAD]}…{text[HEAD + 1 - CHARACTERS :]}"
