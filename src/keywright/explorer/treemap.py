"""A squarified treemap: weights as areas of boxes that are as square as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Box", "squarified"]


class Box(NamedTuple):
    """The rectangle of one weight, in the units of the whole."""

    x: float
    y: float
    width: float
    height: float

    @property
    def area(self) -> float:
        return self.width * self.height


def squarified(weights: Sequence[float], whole: Box) -> list[Box]:
    """Return a box for each weight, in order; squarest with the largest first (Bruls et al., 2000)."""
    total = sum(weights)
    if total <= 0:
        return [Box(whole.x, whole.y, 0, 0) for _ in weights]
    areas = [weight * whole.area / total for weight in weights]
    boxes: list[Box] = []
    room = whole
    while len(boxes) < len(areas):
        rest = areas[len(boxes) :]
        count = _row(rest, min(room.width, room.height))
        laid, room = _lay(rest[:count], room)
        boxes += laid
    return boxes


def _row(areas: Sequence[float], side: float) -> int:
    """Return how many of the next areas form the squarest row along a side."""
    count = 1
    while count < len(areas) and _worst(areas[: count + 1], side) <= _worst(areas[:count], side):
        count += 1
    return count


def _worst(row: Sequence[float], side: float) -> float:
    """Return the worst aspect ratio in a row."""
    total, least = sum(row), min(row)
    if least <= 0 or side <= 0:
        return float("inf") if total else 1.0
    return max(side**2 * max(row) / total**2, total**2 / (side**2 * least))


def _lay(row: Sequence[float], room: Box) -> tuple[list[Box], Box]:
    """Lay a row along the shorter side of a room. Return its boxes and the remaining room."""
    total = sum(row)
    shares = [area / total if total else 0.0 for area in row]
    boxes = []
    if room.width >= room.height:
        depth, at = min(room.width, total / room.height if room.height else 0.0), room.y
        for share in shares:
            boxes.append(Box(room.x, at, depth, share * room.height))
            at += share * room.height
        return boxes, Box(room.x + depth, room.y, room.width - depth, room.height)
    depth, at = min(room.height, total / room.width if room.width else 0.0), room.x
    for share in shares:
        boxes.append(Box(at, room.y, share * room.width, depth))
        at += share * room.width
    return boxes, Box(room.x, room.y + depth, room.width, room.height - depth)
