"""The terms of a layout: nodes and joins to lay out, and the boxes, routes and labels of the result.

Lengths are pixels. Boxes and routes stand on a grid of PITCH, so that lines of different ports never meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

__all__ = ["PITCH", "Box", "Cluster", "Join", "Label", "Layout", "Node", "Point", "Route", "settled"]

PITCH = 18


class Node(NamedTuple):
    """A box to place: the cluster it belongs to ("" for none), and the height of its content."""

    cluster: str
    height: int


class Join(NamedTuple):
    """A line to draw. Joins with the same `bundle` share the end at their `shared` node."""

    source: int
    target: int
    label: str = ""
    shared: Literal["", "source", "target"] = ""
    bundle: str = ""


class Point(NamedTuple):
    x: int
    y: int


class Box(NamedTuple):
    """A rectangle."""

    x: int
    y: int
    width: int
    height: int

    @property
    def right(self) -> int:
        return self.x + self.width

    @property
    def bottom(self) -> int:
        return self.y + self.height


class Label(NamedTuple):
    """A text on a line: the space reserved for it, and whether it ends at the right of that."""

    text: str
    box: Box
    at_end: bool


class Route(NamedTuple):
    """The corners of a line from its source to its target; labels that would repeat are left out."""

    points: tuple[Point, ...]
    label: Label | None


class Cluster(NamedTuple):
    """The frame around the boxes of one cluster; `joined` if these have lines."""

    name: str
    box: Box
    joined: bool


class Layout(NamedTuple):
    """The boxes in the order of the nodes, and the routes in the order of the joins."""

    boxes: tuple[Box, ...]
    routes: tuple[Route, ...]
    clusters: tuple[Cluster, ...]
    junctions: tuple[Point, ...]
    width: int
    height: int


def settled(wanted: Sequence[int], sizes: Sequence[int], most: int) -> list[int]:
    """Return starts for consecutive intervals between 0 and `most`, near the wanted ones, without overlap."""
    starts: list[int] = []
    free = 0
    for want, size in zip(wanted, sizes, strict=True):
        starts.append(max(want, free))
        free = starts[-1] + size
    free = most
    for place in range(len(starts) - 1, -1, -1):
        starts[place] = min(starts[place], free - sizes[place])
        free = starts[place]
    return starts
