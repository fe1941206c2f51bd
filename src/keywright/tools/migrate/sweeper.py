"""The sweep: upgrades every old key of a database, page by page, while programs run.

Names come from SCAN, node by node. Keys with former names or older shapes are upgraded by the calls that a
read would make, under an optimistic lock, and keep their expiry. So no concurrent write is lost, and a sweep
that was stopped may start again. Without `apply` it is a dry run: the same walk, which only counts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, NamedTuple

import msgspec

from keywright.engine import AsyncDatabase
from keywright.engine.nodes import NodeReader, key_count, name_page
from keywright.keyspace import Keyspace
from keywright.tools.jobs import JobPlan, Page, SharedPages, Workers
from keywright.tools.migrate.bookmark import Bookmark
from keywright.tools.migrate.page_sweep import PageCounts, PageSweep, Refusal, SweepOptions, SweepRules
from keywright.tools.migrate.progress import MigrationPacemaker, MigrationProgress, SweepCounts
from keywright.tools.pace import place_of, side_by_side

__all__ = ["SweepResult", "sweep"]

PAGE = 500
IN_FLIGHT = 3
"""The pages that each worker has at a time."""


class SweepResult(NamedTuple):
    """The result of a sweep: counts by template, the first refusals, and the number of names scanned."""

    counts: dict[str, SweepCounts]
    refusals: list[Refusal]
    seen: int
    total: int
    seconds: float

    @property
    def done(self) -> int:
        """Return the number of keys that were moved or upgraded."""
        return sum(counts.done for counts in self.counts.values())

    @property
    def left(self) -> int:
        """Return the number of keys that could not be migrated."""
        return sum(counts.left for counts in self.counts.values())


async def sweep(
    db: AsyncDatabase,
    spaces: Iterable[Keyspace],
    options: SweepOptions | None = None,
    *,
    bookmark: Bookmark | None = None,
    on_progress: Callable[[MigrationProgress], None] | None = None,
    plan: JobPlan | None = None,
) -> SweepResult:
    """Upgrade every old key of some keyspaces, or only count them unless `options.apply` is set.

    A key that exists during the whole sweep is found; one that an older program writes behind the cursor is
    not. Raise EngineError if the server cannot be reached; keys upgraded until then stay upgraded. With a
    `plan` of several jobs worker processes share the pages.
    """
    spaces, options = tuple(spaces), options or SweepOptions()
    mark = bookmark or Bookmark("sweep")
    rules = SweepRules(db, spaces, options)
    try:
        if plan is None:
            result = await _Sweep(rules, mark, on_progress, None).everywhere()
        else:
            async with Workers(plan, "migrate", spaces, msgspec.msgpack.encode(options)) as workers:
                result = await _Sweep(rules, mark, on_progress, workers).everywhere()
    finally:
        mark.save()
    mark.done()
    return result


class _Pending(NamedTuple):
    """A page at work, and where the walk is when it is done."""

    work: asyncio.Task[None]
    done: PageCounts
    after: int | None
    names: int


class _Sweep:
    def __init__(
        self,
        rules: SweepRules,
        bookmark: Bookmark,
        on_progress: Callable[[MigrationProgress], None] | None,
        workers: Workers | None,
    ) -> None:
        self._rules = rules
        self._db = rules.db
        self._workers = workers
        self._bookmark = bookmark
        self._pace = rules.options.pace
        # Workers rest by themselves.
        own = self._pace if workers is None else self._pace._replace(full_speed=True)
        self._pacemaker = MigrationPacemaker(own, on_progress)
        self._total = 0
        self._begun = bookmark.saved.seen
        """The names of pages that are done or at work."""
        self._done = PageCounts(bookmark.saved.counts)

    async def everywhere(self) -> SweepResult:
        saved = self._bookmark.saved
        nodes = await self._db.nodes()
        self._total = sum(await side_by_side(self._db.run(key_count(), at=node) for node in nodes))
        jobs = 1 if self._workers is None else IN_FLIGHT * -(-self._workers.jobs // len(nodes))
        await side_by_side(self._node(node, self._pace.together(jobs)) for node in nodes)
        seconds = self._pacemaker.seconds
        result = SweepResult(saved.counts, self._done.refusals, saved.seen, self._total, seconds)
        self._report(final=True)
        return result

    async def _node(self, node: NodeReader, most: int) -> None:
        place = await place_of(self._db, node)
        cursor, size = self._bookmark.cursor(place), self._pace.page(PAGE)
        lead = self._rules.matcher.common_lead
        work = self._work_of(node)
        at_work: deque[_Pending] = deque()
        try:
            while cursor is not None and not self._enough:
                after, names = await self._db.run(name_page(cursor, size, lead=lead), at=node)
                done = PageCounts()
                task = asyncio.create_task(work(Page(cursor, size, names), done))
                cursor = after or None
                at_work.append(_Pending(task, done, cursor, len(names)))
                self._begun += len(names)
                while at_work and (len(at_work) >= most or cursor is None or self._enough):
                    await self._finished(place, at_work)
                # The server walks so many, whether they are ours or not.
                await self._pacemaker.wait(size)
        finally:
            for page in at_work:
                page.work.cancel()
            await asyncio.gather(*(page.work for page in at_work), return_exceptions=True)
            for page in at_work:
                self._done.add(page.done)

    def _work_of(self, node: NodeReader) -> Callable[[Page, PageCounts], Coroutine[Any, Any, None]]:
        """Return what is done with a page of a node: here, or by a worker. It fills the counts."""
        if self._workers is None:
            return self._swept
        shared = SharedPages(self._workers, 0, self._db, node)

        async def by_worker(page: Page, done: PageCounts) -> None:
            done.add(_page_counts.decode(await shared.work(page)))

        return by_worker

    async def _swept(self, page: Page, done: PageCounts) -> None:
        await PageSweep(self._rules, done).run(page.names)

    async def _finished(self, place: str, at_work: deque[_Pending]) -> None:
        """Wait for the first page of a node, and move the bookmark behind it: never over one at work."""
        page = at_work[0]
        await page.work
        at_work.popleft()
        self._done.add(page.done)
        self._bookmark.saved.seen += page.names
        self._bookmark.at_cursor(place, page.after)
        self._report()

    @property
    def _enough(self) -> bool:
        most = self._rules.options.most
        return most is not None and self._begun >= most

    def _report(self, *, final: bool = False) -> None:
        saved = self._bookmark.saved
        done = sum(counts.done for counts in saved.counts.values())
        left = sum(counts.left for counts in saved.counts.values())
        self._pacemaker.report(saved.seen, self._total, done, left, final=final)


_page_counts = msgspec.msgpack.Decoder(PageCounts)
