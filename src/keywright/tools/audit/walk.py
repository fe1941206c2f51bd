"""The walk of an audit: pages of names from every node, each page read in one batch, several in flight.

Memory does not grow with the keyspace: a page is judged and forgotten, only counts and the first findings
of each code stay. All findings go to `on_finding`.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from keywright.engine import AsyncDatabase
from keywright.engine.nodes import NodeReader, key_count, name_page
from keywright.keyspace import Keyspace
from keywright.tools.audit.checkpoint import Checkpoint
from keywright.tools.audit.findings import Finding
from keywright.tools.audit.pages import Judge
from keywright.tools.audit.tally import LEAST, Tally
from keywright.tools.pace import Pace, WalkProgress, place_of, side_by_side

__all__ = ["AuditOptions", "Walk", "WalkProgress"]

PAGE = 500
IN_FLIGHT = 3


class AuditOptions(NamedTuple):
    """The options of an audit; `max_rate` is in keys a second, `sample` the share of values read."""

    sample: float = 1.0
    max_rate: int | None = None
    keep: int = 100
    entries: int = 10_000
    ignore: Sequence[str] = ()
    prefer_replica: bool = True


class Walk:
    """One audit of one database."""

    def __init__(
        self,
        db: AsyncDatabase,
        spaces: Iterable[Keyspace],
        options: AuditOptions,
        *,
        on_finding: Callable[[Finding], None] | None = None,
        on_progress: Callable[[WalkProgress], None] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.db = db
        self.options = options
        self.judge = Judge(db, spaces, options.entries)
        self._on_finding = on_finding
        self._on_progress = on_progress
        self._checkpoint = checkpoint
        self._pace = Pace(options.max_rate)
        self._seen = 0
        self._total = 0
        self.replicas = 0

    async def run(self) -> Tally:
        """Walk every node to its end. Return the counts of all of them."""
        nodes = await self.db.nodes(prefer_replica=self.options.prefer_replica)
        self.replicas = sum(node.replica is not None for node in nodes)
        self._total = sum(await side_by_side(self.db.run(key_count(), at=node) for node in nodes))
        self._pace.begin()
        tallies = await side_by_side(self._node(node, nodes) for node in nodes)
        self._progress(final=True)
        return Tally.merged(tallies, self.options.keep)

    async def _node(self, node: NodeReader, nodes: Sequence[NodeReader]) -> Tally:
        """Walk one node. If its replica fails, walk the primary from the start: cursors differ."""
        while True:
            label = node.label
            tally = await self._pages(node, nodes, label)
            if node.label == label:
                return tally
            self._seen -= tally.names

    async def _pages(self, node: NodeReader, nodes: Sequence[NodeReader], label: str) -> Tally:
        place = await place_of(self.db, node)
        saved = self._checkpoint
        cursor, tally = (0, Tally()) if saved is None else saved.of(place)
        self._seen += tally.names
        if cursor is None:
            return tally
        count = self._page_size()  # without MATCH: keys outside the prefix are counted, and not read
        in_flight: set[asyncio.Task[None]] = set()
        ahead = asyncio.ensure_future(self.db.run(name_page(cursor, count), at=node))
        try:
            while node.label == label:
                cursor, names = await ahead
                await self._pace.wait(count)
                if cursor:
                    # Asked for before this page's batch, so that the server always has something to do.
                    ahead = asyncio.ensure_future(self.db.run(name_page(cursor, count), at=node))
                in_flight.add(asyncio.create_task(self._page(names, node, nodes, tally)))
                self._seen += len(names)
                self._progress()
                due = saved is not None and saved.due(place)
                while in_flight and (due or not cursor or len(in_flight) >= IN_FLIGHT):
                    done, in_flight = await asyncio.wait(in_flight, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()
                if saved is not None and (due or not cursor):
                    saved.save(place, cursor or None, tally)
                if not cursor:
                    break
        finally:
            ahead.cancel()
            for task in in_flight:
                task.cancel()
            await asyncio.gather(ahead, *in_flight, return_exceptions=True)
        return tally

    async def _page(
        self, names: list[bytes], node: NodeReader, nodes: Sequence[NodeReader], tally: Tally
    ) -> None:
        tally.names += len(names)
        for finding in await self.judge.page(self._wanted(names), node, nodes, tally, self._chosen):
            tally.add(finding, self.options.keep)
            if self._on_finding is not None:
                self._on_finding(finding)

    def _wanted(self, names: list[bytes]) -> list[bytes]:
        ignore = self.options.ignore
        if not ignore:
            return names
        return [
            name
            for name in names
            if not any(fnmatchcase(name.decode("utf-8", "replace"), pattern) for pattern in ignore)
        ]

    def _chosen(self, names: list[bytes], read: int) -> list[bytes]:
        """Return the names of the sample: the first of each template, and others by hash."""
        if self.options.sample >= 1:
            return names
        bar = int(self.options.sample * 2**32)
        first = max(0, LEAST - read)
        return names[:first] + [name for name in names[first:] if zlib.crc32(name) < bar]

    def _page_size(self) -> int:
        rate = self.options.max_rate
        return PAGE if rate is None else max(10, min(PAGE, rate // 50))

    def _progress(self, *, final: bool = False) -> None:
        if self._on_progress is not None and (final or self._pace.due()):
            self._on_progress(WalkProgress(self._seen, max(self._total, self._seen), self._pace.seconds))
