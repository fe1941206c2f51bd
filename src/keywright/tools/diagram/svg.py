"""A diagram as an SVG drawing: cards in boxes, wires along their routes. Colours come from the page's style.

Without scripts, inline styles and external resources. All text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Literal, NamedTuple

from keywright.tools.diagram.geometry import Box, Cluster, Join, Layout, Node, Point, Route
from keywright.tools.diagram.layout import COLUMNS, ON_A_PHONE, laid_out

__all__ = [
    "LONGEST_CODE",
    "LONGEST_TEXT",
    "LONGEST_TITLE",
    "Card",
    "Line",
    "Mark",
    "Wire",
    "drawn",
    "shortened",
]

PAD, ABOVE = 10, 9
LINE, HEAD = 16, 19
LONGEST_CODE = 28
"""So many letters of the monospaced face fit into a box."""
LONGEST_TEXT, LONGEST_TITLE = 30, 24
WIDE_LETTER = 7.2
LONGEST_LABEL = 24
LARGE = 1088
"""A wider drawing may be shrunk to this width; the style sheet has the same number."""
BEND = 5

Mark = Literal["", "one", "many", "arrow"]


class Line(NamedTuple):
    """A line of text in a box; `style` is its class, `aside` stands at the right."""

    text: str
    style: str
    aside: str = ""


class Card(NamedTuple):
    """The content of a box; the first line is its heading. `url` makes it a link."""

    identity: str
    lines: tuple[Line, ...]
    title: str
    url: str | None = None
    cluster: str = ""
    style: str = ""
    badges: tuple[tuple[str, str], ...] = ()
    """Short texts on the upper border, from the right, each with its class. They take no room."""


class Wire(NamedTuple):
    """A line between two cards by their identities, with the marks of its ends."""

    source: str
    target: str
    label: str
    title: str
    sort: str
    marks: tuple[Mark, Mark] = ("", "arrow")
    url: str | None = None
    shared: Literal["", "source", "target"] = ""
    bundle: str = ""


def drawn(
    cards: Sequence[Card],
    wires: Sequence[Wire],
    label: str,
    notes: Mapping[str, str] | None = None,
    columns: int = COLUMNS,
) -> str:
    """Return the drawing. `notes` has a second line for the titles of clusters."""
    numbers = {card.identity: number for number, card in enumerate(cards)}
    layout = laid_out(
        tuple(Node(card.cluster, _height(card)) for card in cards),
        tuple(
            Join(
                numbers[wire.source],
                numbers[wire.target],
                shortened(wire.label, LONGEST_LABEL),
                wire.shared,
                wire.bundle,
            )
            for wire in wires
        ),
        columns,
    )
    parts = [
        *(_cluster(each, (notes or {}).get(each.name, "")) for each in layout.clusters),
        *(_wire(wire, route) for wire, route in zip(wires, layout.routes, strict=True)),
        *_junctions(layout),
        *(_card(card, box) for card, box in zip(cards, layout.boxes, strict=True)),
    ]
    size = " narrow" if columns == ON_A_PHONE else " large" if layout.width > LARGE else ""
    return (
        f'<svg class="diagram{size}" viewBox="0 0 {layout.width} {layout.height}" width="{layout.width}" '
        f'height="{layout.height}" role="group" aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def shortened(text: str, most: int) -> str:
    """Return a text without its end, if it is longer than the place for it."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _height(card: Card) -> int:
    return 2 * ABOVE + HEAD + LINE * (len(card.lines) - 1)


def _cluster(cluster: Cluster, note: str) -> str:
    box = cluster.box
    if cluster.joined:
        name, note = shortened(cluster.name, LONGEST_TITLE), shortened(note, LONGEST_CODE)
    else:
        name = f"{cluster.name}, without relations or references"
    return (
        f'<g class="cluster"><rect {_attributes(box)} rx="8"/>'
        f'<text class="cluster-name" x="{box.x + 12}" y="{box.y + 22}">{escape(name)}</text>'
        f'<text class="cluster-note" x="{box.x + 12}" y="{box.y + 39}">{escape(note)}</text></g>'
    )


def _card(card: Card, box: Box) -> str:
    lines, badges = "".join(_lines(card, box)), "".join(_badges(card, box))
    inside = (
        f"<title>{escape(card.title)}</title>"
        f'<rect class="card {escape(card.style)}" {_attributes(box)} rx="6"/>{lines}{badges}'
    )
    named = f'class="box" data-box="{escape(card.identity)}"'
    if card.url is None:
        return f"<g {named}>{inside}</g>"
    return f'<a {named} href="{escape(card.url)}">{inside}</a>'


def _badges(card: Card, box: Box) -> Iterator[str]:
    right = box.right - PAD
    for text, style in card.badges:
        width = round(len(text) * WIDE_LETTER) + 12
        outline = Box(right - width, box.y - 9, width, 17)
        yield (
            f'<rect class="badge-{style}" {_attributes(outline)} rx="8"/>'
            f'<text class="badge-text-{style}" x="{right - width // 2}" y="{box.y + 3}" text-anchor="middle">'
            f"{escape(text)}</text>"
        )
        right -= width + 5


def _lines(card: Card, box: Box) -> Iterator[str]:
    y = box.y + ABOVE + 13
    for line in card.lines:
        yield f'<text class="{line.style}" x="{box.x + PAD}" y="{y}">{escape(line.text)}</text>'
        if line.aside:
            yield (
                f'<text class="type" x="{box.right - PAD}" y="{y}" text-anchor="end">'
                f"{escape(line.aside)}</text>"
            )
        y += LINE + (HEAD - LINE if line is card.lines[0] else 0)


def _wire(wire: Wire, route: Route) -> str:
    path = _path(route.points)
    first, last = wire.marks
    marks = "".join(
        (
            _mark(first, route.points[0], route.points[1]),
            _mark(last, route.points[-1], route.points[-2]),
        )
    )
    label = ""
    if route.label is not None:
        box = route.label.box
        x, anchor = (box.right, ' text-anchor="end"') if route.label.at_end else (box.x, "")
        label = f'<text class="label" x="{x}" y="{box.bottom - 2}"{anchor}>{escape(route.label.text)}</text>'
    inside = (
        f"<title>{escape(wire.title)}</title>"
        f'<path class="hit" d="{path}"/><path class="line" d="{path}"/>{marks}{label}'
    )
    named = (
        f'class="wire {wire.sort}" data-from="{escape(wire.source)}" data-to="{escape(wire.target)}" '
        f'data-name="{escape(wire.label)}"'
    )
    if wire.url is None:
        return f"<g {named}>{inside}</g>"
    # Lines are many, and all of them are on the page in words too: the keyboard goes from box to box.
    return f'<a {named} href="{escape(wire.url)}" tabindex="-1">{inside}</a>'


def _path(points: Sequence[Point]) -> str:
    """Return the path through some corners, which are rounded where there is room."""
    path = [f"M{points[0].x} {points[0].y}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        bend = min(BEND, _distance(before, corner) // 2, _distance(corner, after) // 2)
        start, end = _towards(corner, before, bend), _towards(corner, after, bend)
        path.append(f"L{start.x} {start.y} Q{corner.x} {corner.y} {end.x} {end.y}")
    path.append(f"L{points[-1].x} {points[-1].y}")
    return " ".join(path)


def _distance(one: Point, other: Point) -> int:
    return abs(one.x - other.x) + abs(one.y - other.y)


def _towards(start: Point, end: Point, far: int) -> Point:
    across, down = end.x - start.x, end.y - start.y
    return Point(
        start.x + max(-far, min(far, across)),
        start.y + max(-far, min(far, down)),
    )


def _mark(mark: Mark, end: Point, back: Point) -> str:
    """Return the sign at an end: an arrow, a bar for one, a crow's foot for many."""
    way = 1 if back.x > end.x else -1
    x, y = end
    if mark == "arrow":
        return f'<path class="arrow" d="M{x} {y} L{x + 8 * way} {y - 4} L{x + 8 * way} {y + 4} Z"/>'
    if mark == "one":
        return f'<path class="mark" d="M{x + 7 * way} {y - 5} L{x + 7 * way} {y + 5}"/>'
    if mark == "many":
        tip = x + 10 * way
        return f'<path class="mark" d="M{x} {y - 5} L{tip} {y} L{x} {y + 5}"/>'
    return ""


def _junctions(layout: Layout) -> Iterator[str]:
    for point in layout.junctions:
        yield f'<circle class="junction" cx="{point.x}" cy="{point.y}" r="2.5"/>'


def _attributes(box: Box) -> str:
    return f'x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}"'
