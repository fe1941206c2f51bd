"""Slow commands by template, and the mean time of all commands, between surveys: a ring of moments.

After each survey the slow log and the command statistics of every node are read, in one round trip. A moment
has what happened since the one before; the first has nothing, since nobody knows how long its log is.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from keywright.engine import AsyncDatabase
from keywright.explorer.atlas import Atlas, Sheet
from keywright.explorer.server_facts import (
    NodeFacts,
    SlowCommand,
    SlowTemplate,
    node_facts,
    slow_by_template,
)
from keywright.explorer.survey import MOMENTS

__all__ = ["LoadHistory", "LoadMoment", "SlowTrend"]


class LoadMoment(NamedTuple):
    """What happened between two surveys; `mean_us` is None if no command was counted."""

    finished: float
    slow: dict[Sheet | None, SlowTemplate]
    mean_us: float | None


class SlowTrend(NamedTuple):
    """The slow commands on one template, moment by moment."""

    sheet: Sheet | None
    commands: list[int]
    slowest_us: list[int]


class LoadHistory:
    """The ring of one database."""

    def __init__(self, db: AsyncDatabase, atlas: Atlas) -> None:
        self.db = db
        self.atlas = atlas
        self.moments: deque[LoadMoment] = deque(maxlen=MOMENTS)
        self._before: dict[str, NodeFacts] = {}

    async def record(self) -> None:
        """Read every node and add a moment."""
        nodes = await node_facts(self.db, self.atlas)
        slow: list[SlowCommand] = []
        calls = spent_us = 0
        for node in nodes:
            before = self._before.get(node.label)
            if before is None:
                continue
            slow += _newer(before.slow or (), node.slow or ())
            if node.executed[0] >= before.executed[0]:  # else the server was restarted
                calls += node.executed[0] - before.executed[0]
                spent_us += node.executed[1] - before.executed[1]
        self._before = {node.label: node for node in nodes}
        grouped = {each.sheet: each for each in slow_by_template(slow)}
        self.moments.append(LoadMoment(time.time(), grouped, spent_us / calls if calls else None))

    @property
    def mean_us(self) -> list[float]:
        """Return the mean time of a command, of the moments that have one."""
        return [each.mean_us for each in self.moments if each.mean_us is not None]

    def trends(self) -> list[SlowTrend]:
        """Return the templates with slow commands in any moment, the slowest first."""
        sheets = {sheet for moment in self.moments for sheet in moment.slow}
        trends = [
            SlowTrend(
                sheet,
                [moment.slow[sheet].commands if sheet in moment.slow else 0 for moment in self.moments],
                [moment.slow[sheet].slowest_us if sheet in moment.slow else 0 for moment in self.moments],
            )
            for sheet in sheets
        ]
        return sorted(trends, key=lambda each: -max(each.slowest_us))


def _newer(before: Sequence[SlowCommand], now: Sequence[SlowCommand]) -> list[SlowCommand]:
    """Return the entries that were logged since; all of them, if the numbers began again."""
    last = max((each.number for each in before), default=-1)
    if now and max(each.number for each in now) < last:
        last = -1
    return [each for each in now if each.number > last]
