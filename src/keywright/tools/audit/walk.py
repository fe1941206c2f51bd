"""The walk of an audit: pages of names from every node, each page read in one batch, several in flight.

Memory does not grow with the keyspace: a page is judged and forgotten, only counts and the first findings
of each code stay. All findings go to `on_finding`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import count

from keywright.engine.nodes import NodeReader, key_count, name_page
from keywright.keyspace import Keyspace
from keywright.tools.audit.checkpoint import Checkpoint
from keywright.tools.audit.findings import Finding
from keywright.tools.audit.page_audit import AuditOptions, NodeAudit, NodePages
from keywright.tools.audit.page_job import SharedAudit, audit_workers
from keywright.tools.audit.pages import Judge
from keywright.tools.audit.tally import Tally
from keywright.tools.jobs import JobPlan, Page, SharedPages, Workers
from keywright.tools.pace import Pacemaker, WalkProgress, place_of, side_by_side
from keywright.tools.page_tasks import PageTasks
from keywright.tools.readable import ReadableDatabase

__all__ = ["AuditOptions", "Walk", "WalkProgress"]

PAGE = 500
IN_FLIGHT = 3
STRETCH = 20
"""The pages of a node that a worker reads before another one may go on with it."""


class Walk:
    """One audit of one database. With a plan of several jobs worker processes audit the pages."""

    def __init__(
        self,
        db: ReadableDatabase,
        spaces: Iterable[Keyspace],
        options: AuditOptions,
        *,
        on_finding: Callable[[Finding], None] | None = None,
        on_progress: Callable[[WalkProgress], None] | None = None,
        checkpoint: Checkpoint | None = None,
        pacemaker: Pacemaker | None = None,
        plan: JobPlan | None = None,
    ) -> None:
        self.db = db
        self.options = options
        self._spaces = tuple(spaces)
        self._plan = plan
        self._workers: Workers | None = None
        self._numbers = count()
        self._on_finding = on_finding
        self._on_progress = on_progress
        self._checkpoint = checkpoint
        self._pace = options.pace.on(db) if pacemaker is None else pacemaker.pace
        # Workers rest by themselves.
        own = self._pace if plan is None else self._pace._replace(full_speed=True)
        self._pacemaker = pacemaker or Pacemaker(own)
        self.judge = Judge(db, self._spaces, options.entries, self._pacemaker)
        self._seen = 0
        self._total = 0
        self.replicas = 0

    async def run(self) -> Tally:
        """Walk every node to its end. Return the counts of all of them."""
        if self._plan is None:
            return await self._everywhere()
        reported = self._on_finding is not None
        async with audit_workers(self._plan, self._spaces, self.options, reported=reported) as self._workers:
            return await self._everywhere()

    async def _everywhere(self) -> Tally:
        nodes = await self.db.nodes(prefer_replica=self.options.prefer_replica)
        self.replicas = sum(node.replica is not None for node in nodes)
        self._total = sum(await side_by_side(self.db.run(key_count(), at=node) for node in nodes))
        self._pacemaker.begin()
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
        cursor, begun = (0, Tally()) if saved is None else saved.of(place)
        self._seen += begun.names
        if cursor is None:
            return begun
        if self._workers is not None and not self.replicas and len(nodes) >= max(2, self._workers.jobs):
            return await self._stretched(self._shared(self._workers, node, begun), place, cursor)
        pages = self._node_pages(node, nodes, begun)
        most = self._most_in_flight(len(nodes))
        count = self._pace.page(PAGE)  # without MATCH: keys outside the prefix are counted, and not read
        ahead = asyncio.ensure_future(self.db.run(name_page(cursor, count), at=node))
        try:
            async with PageTasks(most) as in_flight:
                while node.label == label:
                    at, (cursor, names) = cursor, await ahead
                    await self._pacemaker.wait(count)
                    if cursor:
                        # Asked for before this page's batch, so that the server always has something to do.
                        ahead = asyncio.ensure_future(self.db.run(name_page(cursor, count), at=node))
                    self._seen += len(names)
                    self._progress()
                    await in_flight.add(pages.audit(Page(at, count, names)))
                    due = saved is not None and saved.due(place)
                    if due or not cursor:
                        await in_flight.all_done()
                    if saved is not None and (due or not cursor):
                        saved.save(place, cursor or None, await pages.tally())
                    if not cursor:
                        break
        finally:
            ahead.cancel()
            await asyncio.gather(ahead, return_exceptions=True)
        return await pages.tally()

    def _node_pages(self, node: NodeReader, nodes: Sequence[NodeReader], begun: Tally) -> NodePages:
        if self._workers is None:
            return NodeAudit(self.judge, self.options, node, nodes, begun, self._on_finding)
        return self._shared(self._workers, node, begun)

    def _shared(self, workers: Workers, node: NodeReader, begun: Tally) -> SharedAudit:
        shared = SharedPages(workers, next(self._numbers), self.db, node)
        return SharedAudit(shared, begun, self.options.keep, self._on_finding)

    async def _stretched(self, shared: SharedAudit, place: str, start: int) -> Tally:
        """Have a primary walked by workers that read its names too: there is a node for each of them.

        Of fewer nodes, the names are read here, since one walk over names cannot be divided. So are those of
        replicas: each process chooses its own, and they have other cursors.
        """
        saved, size = self._checkpoint, self._pace.page(PAGE)
        pages = STRETCH if self._pace.max_rate is None else 1
        cursor: int | None = start
        while cursor is not None:
            await self._pacemaker.wait(size * pages)
            found = await shared.stretch(cursor, size, pages)
            cursor = found.cursor or None
            self._seen += found.names
            self._progress()
            if saved is not None and (cursor is None or saved.due(place)):
                saved.save(place, cursor, await shared.tally())
        return await shared.tally()

    def _most_in_flight(self, nodes: int) -> int:
        """Return how many pages of one node are audited at a time."""
        jobs = 1 if self._workers is None else -(-self._workers.jobs // nodes)
        return self._pace.together(IN_FLIGHT * jobs)

    def _progress(self, *, final: bool = False) -> None:
        if self._on_progress is not None and (final or self._pacemaker.due()):
            self._on_progress(WalkProgress(self._seen, max(self._total, self._seen), self._pacemaker.seconds))
