"""The audit of pages by worker processes: what a worker does, and how the walk speaks with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from keywright.engine.nodes import NodeReader
from keywright.keyspace import Keyspace
from keywright.tools.audit.findings import Finding
from keywright.tools.audit.page_audit import AuditOptions, NodeAudit
from keywright.tools.audit.pages import Judge
from keywright.tools.audit.tally import Tally
from keywright.tools.jobs import JobPlan, Page, PagesJob, SharedPages, Stretch, Workers, pacemaker_of
from keywright.tools.readable import ReadableDatabase

__all__ = ["SharedAudit", "audit_job", "audit_workers"]


class _Options(msgspec.Struct):
    audit: AuditOptions
    reported: bool
    """Whether the findings of each page are returned with it."""


_encode = msgspec.msgpack.Encoder().encode
_findings = msgspec.msgpack.Decoder(list[Finding])
_tally = msgspec.msgpack.Decoder(Tally)


def audit_workers(
    plan: JobPlan, spaces: Sequence[Keyspace], options: AuditOptions, *, reported: bool
) -> Workers:
    """Return the workers of one audit."""
    return Workers(plan, "audit", spaces, _encode(_Options(options, reported)))


class SharedAudit:
    """Has the pages of one node audited by workers. `begun` is what was counted before."""

    def __init__(
        self, pages: SharedPages, begun: Tally, keep: int, on_finding: Callable[[Finding], None] | None
    ) -> None:
        self._pages = pages
        self._begun = begun
        self._keep = keep
        self._on_finding = on_finding

    async def audit(self, page: Page) -> None:
        self._report(await self._pages.work(page))

    async def stretch(self, cursor: int, size: int, pages: int) -> Stretch:
        """Have a worker read so many pages from a cursor on, and audit them."""
        found = await self._pages.stretch(cursor, size, pages)
        for content in found.contents:
            self._report(content)
        return found

    def _report(self, content: bytes) -> None:
        if self._on_finding is not None:
            for finding in _findings.decode(content):
                self._on_finding(finding)

    async def tally(self) -> Tally:
        tallies = map(_tally.decode, await self._pages.collected())
        return Tally.merged([self._begun, *tallies], self._keep)


def audit_job(db: ReadableDatabase, spaces: Sequence[Keyspace], options: bytes) -> PagesJob:
    """Return the job of a worker."""
    found = msgspec.msgpack.decode(options, type=_Options)
    pacemaker = pacemaker_of(found.audit.pace, db)
    judge = Judge(db, spaces, found.audit.entries, pacemaker)
    prefer_replica = found.audit.prefer_replica
    return PagesJob(db, pacemaker, lambda: _AuditWork(judge, found), prefer_replica=prefer_replica)


class _AuditWork:
    """The pages of one node that a worker audits."""

    def __init__(self, judge: Judge, options: _Options) -> None:
        self._judge = judge
        self._options = options
        self._counted = Tally()

    async def work(self, names: list[bytes], node: NodeReader, nodes: Sequence[NodeReader]) -> bytes:
        audit = NodeAudit(self._judge, self._options.audit, node, nodes, self._counted)
        found = await audit.findings(names)
        return _encode(found if self._options.reported else [])

    async def collected(self) -> bytes:
        return _encode(self._counted)
