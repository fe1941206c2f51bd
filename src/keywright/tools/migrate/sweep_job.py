"""The sweep of pages by worker processes: what a worker does."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from keywright.engine import AsyncDatabase
from keywright.engine.nodes import NodeReader
from keywright.keyspace import Keyspace
from keywright.tools.jobs import PagesJob, pacemaker_of
from keywright.tools.migrate.page_sweep import PageCounts, PageSweep, SweepOptions, SweepRules

__all__ = ["sweep_job"]


def sweep_job(db: AsyncDatabase, spaces: Sequence[Keyspace], options: bytes) -> PagesJob:
    """Return the job of a worker."""
    found = msgspec.msgpack.decode(options, type=SweepOptions)
    rules = SweepRules(db, spaces, found)
    return PagesJob(db, pacemaker_of(found.pace, db), lambda: _SweepWork(rules))


class _SweepWork:
    """The pages that a worker sweeps. Their counts are returned page by page, with the place in the walk."""

    def __init__(self, rules: SweepRules) -> None:
        self._rules = rules

    async def work(self, names: list[bytes], node: NodeReader, nodes: Sequence[NodeReader]) -> bytes:
        done = PageCounts()
        await PageSweep(self._rules, done).run(names)
        return msgspec.msgpack.encode(done)

    async def collected(self) -> bytes:
        return b""
