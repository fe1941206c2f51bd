"""The column of each node, so that every line joins boxes of one column or of two beside each other.

Nodes are ranked by their distance from the one with the most lines. Neighbours then differ by one rank at
most, and ranks fold into a few columns with the same property. A local search evens out the columns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from keywright.tools.diagram.geometry import Join, Node

__all__ = ["Neighbours", "columns_of", "components", "neighbours_of"]

Neighbours = Mapping[int, Sequence[int]]
SAME_COLUMN = 20_000
"""The cost of a line inside a column, in squares of pixels of a column's height."""
ROUNDS = 12


def neighbours_of(count: int, joins: Sequence[Join]) -> dict[int, list[int]]:
    """Return the other end of each line of each node, without lines from a node to itself."""
    near: dict[int, list[int]] = {node: [] for node in range(count)}
    for join in joins:
        if join.source != join.target:
            near[join.source].append(join.target)
            near[join.target].append(join.source)
    return near


def components(near: Neighbours) -> list[list[int]]:
    """Return the connected nodes together, the largest component first."""
    found: list[list[int]] = []
    seen: set[int] = set()
    for node in near:
        if node not in seen:
            found.append(sorted(_distances(node, near)))
            seen.update(found[-1])
    return sorted(found, key=lambda nodes: (-len(nodes), nodes[0]))


def columns_of(
    component: Sequence[int], near: Neighbours, nodes: Sequence[Node], most: int, variant: int = 0
) -> dict[int, int]:
    """Return the column of each node of a component, from 0; lines join equal or adjacent columns.

    Variants start from another node, and odd ones are mirrored.
    """
    hubs = sorted(component, key=lambda node: (-len(near[node]), node))
    columns = _folded(_distances(hubs[variant // 2 % len(hubs)], near), near, most)
    _even_out(component, columns, near, nodes, most)
    first, last = min(columns.values()), max(columns.values())
    return {node: last - column if variant % 2 else column - first for node, column in columns.items()}


def _distances(start: int, near: Neighbours) -> dict[int, int]:
    found = {start: 0}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for other in near[node]:
            if other not in found:
                found[other] = found[node] + 1
                waiting.append(other)
    return found


def _folded(distances: Mapping[int, int], near: Neighbours, most: int) -> dict[int, int]:
    """Put even distances into one column and odd ones beside it, left and right in turn."""
    if most == 1:
        return dict.fromkeys(distances, 0)
    middle = min(1, most - 2)
    columns: dict[int, int] = {}
    turn = 0
    for node, distance in distances.items():
        if node in columns:
            continue
        if distance % 2 == 0:
            columns[node] = middle
            continue
        side = middle + 1 if turn % 2 == 0 or middle == 0 else middle - 1
        turn += 1
        waiting = [node]
        while waiting:  # nodes of one odd distance that are joined stay on one side
            here = waiting.pop()
            columns[here] = side
            waiting += [n for n in near[here] if distances[n] == distance and n not in columns]
    return columns


def _even_out(
    component: Sequence[int], columns: dict[int, int], near: Neighbours, nodes: Sequence[Node], most: int
) -> None:
    heights: dict[tuple[str, int], int] = {}
    for node in component:
        place = nodes[node].cluster, columns[node]
        heights[place] = heights.get(place, 0) + nodes[node].height
    for _ in range(ROUNDS):
        moved = False
        for node in component:
            others = [columns[other] for other in near[node]]
            lowest, highest = (
                max([0, *(each - 1 for each in others)]),
                min([most - 1, *(e + 1 for e in others)]),
            )
            here, (cluster, height) = columns[node], nodes[node]
            heights[cluster, here] -= height
            costs = {}
            for column in range(lowest, highest + 1):
                rest = heights.get((cluster, column), 0)
                cost = (rest + height) ** 2 - rest**2 + SAME_COLUMN * others.count(column)
                costs[cost, column != here, column] = column
            best = costs[min(costs)]
            heights[cluster, best] = heights.get((cluster, best), 0) + height
            if best != here:
                columns[node] = best
                moved = True
        if not moved:
            return
