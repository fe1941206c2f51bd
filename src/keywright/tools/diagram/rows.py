"""The rows of a component: the order of the boxes in each column, and how far down each one stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keywright.tools.diagram.columns import Neighbours
from keywright.tools.diagram.geometry import PITCH, settled

__all__ = ["GAP", "Rows", "rows_of"]

GAP = PITCH
APART = 100_000
"""The distance between two clusters while boxes are ordered, so that lines between them pull far."""
SWEEPS, SWAPS = 10, 6

Stacks = dict[tuple[int, int], list[int]]
"""Nodes from top to bottom, by band (the number of their cluster) and column."""


class Rows:
    """How far each node stands below the top of its band, and the height that each band takes."""

    def __init__(self, tops: dict[int, int], heights: dict[int, int]) -> None:
        self.tops = tops
        self.heights = heights


def rows_of(
    columns: Mapping[int, int], bands: Mapping[int, int], heights: Mapping[int, int], near: Neighbours
) -> Rows:
    stacks: Stacks = {}
    for node in sorted(columns):
        stacks.setdefault((bands[node], columns[node]), []).append(node)
    _order(stacks, heights, near)
    return _placed(stacks, heights, near)


def _centres(stacks: Stacks, heights: Mapping[int, int]) -> dict[int, float]:
    centres: dict[int, float] = {}
    for (band, _), stack in stacks.items():
        top: float = APART * band
        for node in stack:
            centres[node] = top + heights[node] / 2
            top += heights[node] + GAP
    return centres


def _length(centres: Mapping[int, float], near: Neighbours) -> float:
    return sum(abs(centres[node] - centres[other]) for node in centres for other in near[node])


def _order(stacks: Stacks, heights: Mapping[int, int], near: Neighbours) -> None:
    """Order each stack by the means of the neighbours, then swap boxes while that shortens the lines."""
    best = {place: list(stack) for place, stack in stacks.items()}
    shortest = _length(_centres(stacks, heights), near)
    for _ in range(SWEEPS):
        for stack in stacks.values():
            centres = _centres(stacks, heights)
            stack.sort(key=lambda node: _mean([centres[n] for n in near[node]], centres[node]))
        length = _length(_centres(stacks, heights), near)
        if length < shortest:
            shortest, best = length, {place: list(stack) for place, stack in stacks.items()}
    stacks.update(best)
    for _ in range(SWAPS):
        before = shortest
        for stack in stacks.values():
            for place in range(len(stack) - 1):
                stack[place], stack[place + 1] = stack[place + 1], stack[place]
                length = _length(_centres(stacks, heights), near)
                if length < shortest:
                    shortest = length
                else:
                    stack[place], stack[place + 1] = stack[place + 1], stack[place]
        if shortest == before:
            return


def _placed(stacks: Stacks, heights: Mapping[int, int], near: Neighbours) -> Rows:
    """Move boxes of shorter columns beside their neighbours."""
    tall: dict[int, int] = {}
    for (band, _), stack in stacks.items():
        needed = sum(heights[node] + GAP for node in stack) - GAP
        tall[band] = max(tall.get(band, 0), needed)
    centres = _centres(stacks, heights)
    tops: dict[int, int] = {}
    for _ in range(SWEEPS // 2):
        for (band, _column), stack in stacks.items():
            wanted = [
                _mean([centres[other] for other in near[node]], centres[node])
                - APART * band
                - heights[node] / 2
                for node in stack
            ]
            sizes = [heights[node] + GAP for node in stack]
            snapped = [round(each / PITCH) * PITCH for each in wanted]
            for node, top in zip(stack, settled(snapped, sizes, tall[band] + GAP), strict=True):
                tops[node] = top
                centres[node] = APART * band + top + heights[node] / 2
    return Rows(tops, tall)


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
