"""The lines between placed boxes: out of a side, along a track of the channel between two columns, in again.

Every end has a port of its own, right-hand ports half a pitch beside left-hand ones, so that no two lines
lie on each other. A label stands above the first part of its line, where no other line can be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from keywright.tools.diagram.geometry import PITCH, Box, Join, Label, Point, Route, settled

__all__ = ["LETTER", "Channels", "End", "ends_of", "needed_height"]

STUB = 20
"""The length of a line that is kept free for the mark at its end."""
TRACK = 9
LETTER = 6.4
"""The width of a letter of a label, generously."""
LABEL_HEIGHT, LABEL_LIFT = 12, 3
MOST_SWAPS = 40
SPARE = 3


Track = tuple[int, str]
"""The channel of a line, and its owner."""
Group = tuple[list[int], list[int]]


class End(NamedTuple):
    """One end of a line, or of a bundle: equal ends share a port."""

    node: int
    channel: int
    right: bool
    """Whether it is on the right side of its box."""
    owner: str


class Wiring(NamedTuple):
    """The ends of one join, and the track that it follows."""

    source: End
    target: End
    track: Track


def ends_of(joins: Sequence[Join], columns: Mapping[int, int]) -> list[Wiring]:
    """Return the ends and the track of each join."""
    return [_wiring(number, join, columns) for number, join in enumerate(joins)]


def needed_height(wirings: Sequence[Wiring], node: int) -> int:
    """Return the height that a box needs for its ports."""
    ends = {end for wiring in wirings for end in wiring[:2] if end.node == node}
    most = max((sum(end.right is side for end in ends) for side in (True, False)), default=0)
    return (most + 1) * PITCH


def _wiring(number: int, join: Join, columns: Mapping[int, int]) -> Wiring:
    channel = min(columns[join.source], columns[join.target])
    bundled = f"bundle {join.bundle}"
    alone = f"join {number}"
    source = bundled if join.shared == "source" else f"{alone} source"
    target = bundled if join.shared == "target" else f"{alone} target"
    holder = join.source if join.shared == "source" else join.target
    return Wiring(
        End(join.source, channel, columns[join.source] == channel, source),
        End(join.target, channel, columns[join.target] == channel, target),
        (channel, f"{bundled} {holder}" if join.shared else alone),
    )


class Channels:
    """The ports of all boxes, and the tracks and widths of the channels right of each column."""

    def __init__(
        self,
        joins: Sequence[Join],
        wirings: Sequence[Wiring],
        tops: Mapping[int, int],
        heights: Mapping[int, int],
    ) -> None:
        self._joins = joins
        self._wirings = wirings
        self._ports = _ports(wirings, tops, heights)
        self._groups = self._joined()
        self._tracks: dict[Track, int] = {}
        """How far right of the column each track is."""
        self._widths: dict[int, int] = {}
        for channel in sorted({channel for channel, _ in self._groups}):
            self._arrange(channel)

    def width(self, channel: int) -> int:
        return self._widths.get(channel, 0)

    def routes(self, boxes: Mapping[int, Box]) -> list[Route]:
        """Return the routes between boxes that have their final places."""
        labelled: set[End] = set()
        routes = []
        for join, wiring in zip(self._joins, self._wirings, strict=True):
            x = self._x(wiring, boxes)
            start, end = self._point(wiring.source, boxes), self._point(wiring.target, boxes)
            points = (start, Point(x, start.y), Point(x, end.y), end)
            label = None
            if join.label and wiring.source not in labelled:
                label = _label(join.label, start, right=wiring.source.right)
                labelled.add(wiring.source)
            routes.append(Route(points, label))
        return routes

    def junctions(self, boxes: Mapping[int, Box]) -> list[Point]:
        """Return the points where lines of a bundle join it on its way."""
        ways = {wiring.track: self._x(wiring, boxes) for wiring in self._wirings}
        return [
            Point(ways[track], y)
            for track, (left, right) in self._groups.items()
            for y in sorted({*left, *right})[1:-1]
        ]

    def _joined(self) -> dict[Track, Group]:
        """Return the heights at which each track is joined, from the left and from the right."""
        groups: dict[Track, Group] = {}
        for wiring in self._wirings:
            left, right = groups.setdefault(wiring.track, ([], []))
            for end in wiring[:2]:
                ys = left if end.right else right
                if self._ports[end] not in ys:
                    ys.append(self._ports[end])
        return groups

    def _arrange(self, channel: int) -> None:
        """Place the tracks of a channel as far left as its labels and other tracks allow."""
        groups = {track: group for track, group in self._groups.items() if track[0] == channel}
        left, right = self._labels(channel, right=True), self._labels(channel, right=False)
        for track in _ordered(groups):
            low, high = _span(groups[track])
            beside = [
                x + TRACK
                for other, x in self._tracks.items()
                if other in groups and _near(_span(groups[other]), low, high, PITCH)
            ]
            texts = [end + TRACK for y, end in left if _near(_around(y), low, high, SPARE)]
            self._tracks[track] = max([STUB, *beside, *texts])
        needed = [self._tracks[track] + STUB for track in groups]
        for y, width in right:
            crossing = [
                self._tracks[track]
                for track, group in groups.items()
                if _near(_span(group), *_around(y), SPARE)
            ]
            beside = [end for other, end in left if _near(_around(other), *_around(y), SPARE)]
            needed.append(max([0, *crossing, *beside]) + TRACK + width)
        self._widths[channel] = max(needed)

    def _labels(self, channel: int, *, right: bool) -> list[tuple[int, int]]:
        """Return the height and the reach of each label beside a column."""
        return [
            (self._ports[wiring.source], STUB + _width(join.label))
            for join, wiring in zip(self._joins, self._wirings, strict=True)
            if join.label and wiring.source.channel == channel and wiring.source.right is right
        ]

    def _point(self, end: End, boxes: Mapping[int, Box]) -> Point:
        box = boxes[end.node]
        return Point(box.right if end.right else box.x, self._ports[end])

    def _x(self, wiring: Wiring, boxes: Mapping[int, Box]) -> int:
        end = wiring.source
        box = boxes[end.node]
        return (box.right if end.right else box.x - self.width(end.channel)) + self._tracks[wiring.track]


def _ports(wirings: Sequence[Wiring], tops: Mapping[int, int], heights: Mapping[int, int]) -> dict[End, int]:
    """Return the height of each port, as near to the other ends as its side allows."""
    others: dict[End, list[End]] = {}
    for wiring in wirings:
        others.setdefault(wiring.source, []).append(wiring.target)
        others.setdefault(wiring.target, []).append(wiring.source)
    sides: dict[tuple[int, bool], list[tuple[tuple[int, float], End]]] = {}
    for end, far in others.items():
        sides.setdefault((end.node, end.right), []).append((_rank(end, far, tops, heights), end))
    ports: dict[End, int] = {}
    for (node, right), ranked in sides.items():
        ranked.sort(key=lambda each: each[0])
        slots = heights[node] // PITCH - 1
        wanted = [_slot(rank, tops[node], slots) for rank, _ in ranked]
        for (_, end), slot in zip(ranked, settled(wanted, [1] * len(ranked), slots), strict=True):
            ports[end] = tops[node] + (slot + 1) * PITCH - (0 if right else PITCH // 2)
    return ports


def _rank(
    end: End, far: Sequence[End], tops: Mapping[int, int], heights: Mapping[int, int]
) -> tuple[int, float]:
    """Return where an end belongs on its side: lines to the same column outside, so that they nest."""
    mean = sum(tops[each.node] + heights[each.node] / 2 for each in far) / len(far)
    if any(each.right is not end.right for each in far):
        return 0, mean
    return (-1 if mean < tops[end.node] + heights[end.node] / 2 else 1), -mean


def _slot(rank: tuple[int, float], top: int, slots: int) -> int:
    category, mean = rank
    if category:
        return 0 if category < 0 else slots - 1
    return min(max(round((mean - top) / PITCH) - 1, 0), slots - 1)


def _ordered(groups: Mapping[Track, Group]) -> list[Track]:
    """Return the tracks from left to right, with few crossings."""
    order = sorted(groups, key=lambda track: (bool(groups[track][1]), sum(map(sum, groups[track])), track))
    for _ in range(MOST_SWAPS):
        swapped = False
        for place in range(len(order) - 1):
            one, other = order[place], order[place + 1]
            if _crossings(groups[other], groups[one]) < _crossings(groups[one], groups[other]):
                order[place], order[place + 1] = other, one
                swapped = True
        if not swapped:
            break
    return order


def _near(span: tuple[int, int], low: int, high: int, spare: int) -> bool:
    return span[0] <= high + spare and low <= span[1] + spare


def _around(y: int) -> tuple[int, int]:
    """Return the heights that a label above a line takes."""
    return y - LABEL_LIFT - LABEL_HEIGHT, y - LABEL_LIFT


def _crossings(one: Group, other: Group) -> int:
    """Return how often two lines cross if the track of `one` is left of that of `other`."""
    (low, high), (lowest, highest) = _span(one), _span(other)
    return sum(lowest < y < highest for y in one[1]) + sum(low < y < high for y in other[0])


def _span(group: Group) -> tuple[int, int]:
    ys = [*group[0], *group[1]]
    return min(ys), max(ys)


def _label(text: str, start: Point, *, right: bool) -> Label:
    width = _width(text)
    x = start.x + STUB if right else start.x - STUB - width
    box = Box(x, start.y - LABEL_LIFT - LABEL_HEIGHT, width, LABEL_HEIGHT)
    return Label(text, box, not right)


def _width(text: str) -> int:
    return round(len(text) * LETTER) + 2
