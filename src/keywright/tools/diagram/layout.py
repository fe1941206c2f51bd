"""The layout of a diagram: connected boxes in columns with routed lines, the others in a grid below.

The same nodes and joins always give the same layout. No two boxes overlap, every line ends on the borders
of its boxes, and no label touches a box, another label, or the line of another port.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from keywright.tools.diagram.columns import Neighbours, columns_of, components, neighbours_of
from keywright.tools.diagram.geometry import PITCH, Box, Cluster, Join, Layout, Node
from keywright.tools.diagram.routes import Channels, ends_of, needed_height
from keywright.tools.diagram.rows import GAP, rows_of

__all__ = ["COLUMNS", "ON_A_PHONE", "WIDTH", "laid_out"]

WIDTH = 212
COLUMNS, ON_A_PHONE = 3, 1
GRID_COLUMNS = 4
VARIANTS, MANY = 12, 150
"""So many layouts are compared, unless there are many nodes."""
MARGIN, PAD = 12, 12
TITLE = 3 * PITCH
"""The space above the boxes of a cluster, for its title."""


class _Tied(NamedTuple):
    """The connected boxes: the column and the top of each, and the height of each cluster's part."""

    columns: dict[int, int]
    tops: dict[int, int]
    heights: dict[str, int]


@functools.lru_cache(maxsize=64)
def laid_out(nodes: tuple[Node, ...], joins: tuple[Join, ...], columns: int = COLUMNS) -> Layout:
    """Place the nodes in at most so many columns, and route the joins between them, in the least room."""
    variants = VARIANTS if joins and len(nodes) <= MANY else 1
    return min((_laid_out(nodes, joins, columns, each) for each in range(variants)), key=_room)


def _room(layout: Layout) -> int:
    """Return how good a layout is: width counts more, since pages scroll down, not sideways."""
    return 3 * layout.width + layout.height


def _laid_out(nodes: tuple[Node, ...], joins: tuple[Join, ...], columns: int, variant: int) -> Layout:
    near = neighbours_of(len(nodes), joins)
    tied = {node for join in joins for node in (join.source, join.target)}
    parts = [part for part in components(near) if part[0] in tied]
    ranked: dict[int, int] = {}
    for part in parts:
        ranked |= columns_of(part, near, nodes, columns, variant)
    wirings = ends_of(joins, ranked)
    heights = {
        number: _on_grid(max(node.height, needed_height(wirings, number)))
        for number, node in enumerate(nodes)
    }
    placed = _stacked(parts, ranked, nodes, heights, near, columns)
    frames = list(_frames(placed.heights))
    starts = {frame.name: frame.box.y + _title(frame.name) for frame in frames}
    tops = {node: starts[nodes[node].cluster] + top for node, top in placed.tops.items()}
    channels = Channels(joins, ends_of(joins, placed.columns), tops, heights)
    lefts = _lefts(channels, max(placed.columns.values(), default=-1) + 1)
    boxes = {
        node: Box(lefts[placed.columns[node]], tops[node], WIDTH, heights[node]) for node in placed.columns
    }
    bottom = max((frame.box.bottom + 2 * PITCH for frame in frames), default=MARGIN)
    loose = [node for node in range(len(nodes)) if node not in tied]
    beside = 1 if columns == ON_A_PHONE else GRID_COLUMNS
    across = max(lefts[-1], MARGIN + PAD + _row_width(min(beside, len(loose))))
    fitting = 1 if columns == ON_A_PHONE else (across - MARGIN - PAD + PITCH) // (WIDTH + PITCH)
    for grid, inside in _grids(loose, nodes, heights, max(1, fitting), bottom):
        frames.append(grid)
        boxes |= inside
    width = across + PAD + MARGIN
    routes = channels.routes(boxes)
    return Layout(
        tuple(boxes[node] for node in range(len(nodes))),
        tuple(routes),
        tuple(
            frame._replace(box=frame.box._replace(width=width - 2 * MARGIN)) for frame in frames if frame.name
        ),
        tuple(channels.junctions(boxes)),
        width,
        max((frame.box.bottom for frame in frames), default=0) + MARGIN,
    )


def _on_grid(height: int) -> int:
    return -(-height // PITCH) * PITCH


def _title(cluster: str) -> int:
    return TITLE if cluster else 0


def _row_width(count: int) -> int:
    return count * (WIDTH + PITCH) - PITCH if count else 0


def _stacked(
    parts: Sequence[Sequence[int]],
    ranked: Mapping[int, int],
    nodes: Sequence[Node],
    heights: Mapping[int, int],
    near: Neighbours,
    most: int,
) -> _Tied:
    """Place the components below and beside each other, each where its columns are free."""
    names = list(dict.fromkeys(nodes[node].cluster for node in sorted(ranked)))
    bands = {node: names.index(nodes[node].cluster) for node in ranked}
    filled = [[0] * most for _ in names]
    placed = _Tied({}, {}, {})
    for part in parts:
        rows = rows_of({node: ranked[node] for node in part}, bands, heights, near)
        used = {(bands[node], ranked[node]) for node in part}
        last = max(column for _, column in used)

        options = [
            {band: max(filled[band][c + shift] for b, c in used if b == band) for band in rows.heights}
            for shift in range(most - last)
        ]
        starts = min(options, key=lambda tops: sum(tops.values()))
        shift = options.index(starts)
        for node in part:
            placed.columns[node] = ranked[node] + shift
            placed.tops[node] = starts[bands[node]] + rows.tops[node]
        for band, column in used:
            filled[band][column + shift] = starts[band] + rows.heights[band] + GAP
    placed.heights.update({name: max(filled[band]) - GAP for band, name in enumerate(names)})
    return placed


def _frames(heights: Mapping[str, int]) -> Iterator[Cluster]:
    y = MARGIN
    for name, height in heights.items():
        box = Box(MARGIN, y, 0, _title(name) + height + (PITCH if name else 0))
        yield Cluster(name, box, joined=True)
        y = box.bottom + PITCH


def _lefts(channels: Channels, columns: int) -> list[int]:
    """Return the left of each column, and the right of the last channel."""
    lefts = [MARGIN + PAD]
    for column in range(columns):
        lefts.append(lefts[-1] + WIDTH + channels.width(column))
    return lefts


def _grids(
    loose: Sequence[int], nodes: Sequence[Node], heights: Mapping[int, int], count: int, y: int
) -> Iterator[tuple[Cluster, dict[int, Box]]]:
    """Yield the clusters of boxes without lines, packed into so many columns."""
    by_cluster: dict[str, list[int]] = {}
    for node in loose:
        by_cluster.setdefault(nodes[node].cluster, []).append(node)
    for name, members in by_cluster.items():
        depths = [y + _title(name)] * count
        boxes: dict[int, Box] = {}
        for node in members:
            column = depths.index(min(depths))
            x = MARGIN + PAD + column * (WIDTH + PITCH)
            boxes[node] = Box(x, depths[column], WIDTH, heights[node])
            depths[column] += heights[node] + PITCH
        bottom = max(depths)
        yield Cluster(name, Box(MARGIN, y, 0, bottom - y), joined=False), boxes
        y = bottom + PITCH
