"""Operations: load and commands of each node, slow commands and memory by template, consumer groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from keywright.explorer.atlas import Sheet
from keywright.explorer.explorer import Explorer, explorer_of, page
from keywright.explorer.json_pages import exact
from keywright.explorer.load_history import SlowTrend
from keywright.explorer.server_facts import (
    NodeFacts,
    SlowCommand,
    SlowTemplate,
    node_facts,
    slow_by_template,
    streams,
)
from keywright.explorer.survey import Moment
from keywright.explorer.trends import HEIGHT, WIDTH, sparkline

__all__ = ["operations"]

MOST_STREAMS = 40
SHOWN_SLOW = 50
MOST_TEMPLATES = 24
HEAVIEST = 12


class Slow(NamedTuple):
    """The slow commands on one template: those in the log, and how slow they were over time."""

    logged: SlowTemplate
    trend: SlowTrend | None
    line: str
    """The slowest command of each moment as the points of an SVG polyline."""


class Trend(NamedTuple):
    """The memory and keys of one template over the last surveys."""

    sheet: Sheet
    keys: list[int]
    memory: list[int]
    line: str
    """The memory as the points of an SVG polyline."""


async def operations(request: Request) -> Response:
    explorer = explorer_of(request)
    nodes = await node_facts(explorer.db, explorer.atlas)
    found = await streams(explorer.db, _sampled_streams(explorer))
    slow = [each for node in nodes for each in node.slow or ()]
    trends = _trends(explorer)
    by_template = _slow(explorer, slow)
    means = explorer.load.mean_us
    return page(
        request,
        "operations.html",
        {
            "nodes": [_node_document(node) for node in nodes],
            "slow_by_template": [
                {
                    "template": each.logged.sheet and each.logged.sheet.about.name,
                    "verbs": each.logged.verbs,
                    "commands": each.logged.commands,
                    "total_us": each.logged.total_us,
                    "slowest_us": each.logged.slowest_us,
                    "history": each.trend
                    and {"commands": each.trend.commands, "slowest_us": each.trend.slowest_us},
                }
                for each in by_template
            ],
            "mean_us": [moment.mean_us for moment in explorer.load.moments],
            "streams": [
                {
                    "name": exact(each.name),
                    "template": each.sheet.about.name,
                    "entries": each.length,
                    "groups": [group._asdict() for group in each.groups],
                }
                for each in found
            ],
            "history": [
                {"template": each.sheet.about.name, "keys": each.keys, "memory": each.memory}
                for each in trends
            ],
        },
        nodes=nodes,
        slow=sorted(slow, key=lambda each: -each.moment)[:SHOWN_SLOW],
        slow_known=any(node.slow is not None for node in nodes),
        by_template=by_template,
        means=means,
        mean_line=sparkline([round(each * 1000) for each in means]),
        streams=found,
        trends=trends,
        moments=len(explorer.surveyor.history),
        since=explorer.surveyor.history[0].finished if explorer.surveyor.history else None,
        size=(WIDTH, HEIGHT),
    )


def _sampled_streams(explorer: Explorer) -> list[tuple[Sheet, bytes]]:
    latest = explorer.surveyor.latest
    return [
        (sheet, name)
        for kind, sheet in explorer.atlas.sheets.items()
        if sheet.about.redis_type == "stream"
        for name in sorted(latest.of(kind).names)
    ][:MOST_STREAMS]


def _slow(explorer: Explorer, logged: Sequence[SlowCommand]) -> list[Slow]:
    """Return the templates in the slow log, then those that were in it at an earlier survey."""
    trends = {each.sheet: each for each in explorer.load.trends()}
    rows = [Slow(each, trends.get(each.sheet), "") for each in slow_by_template(logged)]
    kept = {each.logged.sheet for each in rows}
    rows += [
        Slow(SlowTemplate(sheet, 0, 0, 0, []), each, "")
        for sheet, each in trends.items()
        if sheet not in kept
    ]
    shown = rows[:MOST_TEMPLATES]
    return [row._replace(line=sparkline(row.trend.slowest_us) if row.trend else "") for row in shown]


def _trends(explorer: Explorer) -> list[Trend]:
    """Return the heaviest templates with their history."""
    moments: list[Moment] = list(explorer.surveyor.history)
    latest = explorer.surveyor.latest
    heaviest = sorted(explorer.atlas.sheets, key=lambda kind: -(latest.of(kind).memory or 0))[:HEAVIEST]
    trends = []
    for kind in heaviest:
        counted = [moment.counted.get(kind, (0, 0)) for moment in moments]
        memory = [each[1] or 0 for each in counted]
        if any(memory):
            keys = [each[0] for each in counted]
            trends.append(Trend(explorer.atlas.sheets[kind], keys, memory, sparkline(memory)))
    return trends


def _node_document(node: NodeFacts) -> dict[str, Any]:
    return {
        "node": node.label,
        "info": node.fields,
        "commands": [
            {
                "name": each.name,
                "calls": each.calls,
                "total_us": each.total_us,
                "percentiles_us": each.percentiles,
            }
            for each in node.commands
        ],
        "slow": None if node.slow is None else [_slow_document(each) for each in node.slow],
    }


def _slow_document(slow: SlowCommand) -> dict[str, Any]:
    return {
        "time": slow.moment,
        "took_us": slow.took_us,
        "command": slow.verb,
        "template": slow.sheet and slow.sheet.about.name,
        "name": slow.name and exact(slow.name),
    }
