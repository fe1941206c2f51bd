"""The audit of the pages of one node: into a tally of this process, or shared by worker processes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple, Protocol

from keywright.engine.nodes import NodeReader
from keywright.tools.audit.findings import Finding
from keywright.tools.audit.pages import Judge
from keywright.tools.audit.sample import LEAST
from keywright.tools.audit.tally import Tally
from keywright.tools.jobs import Page
from keywright.tools.pace import GENTLE, Pace

__all__ = ["AuditOptions", "NodeAudit", "NodePages"]


class AuditOptions(NamedTuple):
    """The options of an audit. `sample` is the share of the values to read."""

    sample: float = 1.0
    pace: Pace = GENTLE
    keep: int = 100
    entries: int = 10_000
    ignore: Sequence[str] = ()
    prefer_replica: bool = True


class NodePages(Protocol):
    """What audits the pages of one node."""

    async def audit(self, page: Page) -> None: ...

    async def tally(self) -> Tally:
        """Return the counts of all pages that were audited, once none is at work."""
        ...


class NodeAudit:
    """Audits the pages of one node in this process."""

    def __init__(
        self,
        judge: Judge,
        options: AuditOptions,
        node: NodeReader,
        nodes: Sequence[NodeReader],
        tally: Tally,
        on_finding: Callable[[Finding], None] | None = None,
    ) -> None:
        self._judge = judge
        self._options = options
        self._node = node
        self._nodes = nodes
        self._tally = tally
        self._on_finding = on_finding

    async def audit(self, page: Page) -> None:
        for finding in await self.findings(page.names):
            if self._on_finding is not None:
                self._on_finding(finding)

    async def findings(self, names: list[bytes]) -> list[Finding]:
        """Audit a page. Return its findings, which are counted too."""
        tally = self._tally
        tally.names += len(names)
        found = await self._judge.page(self._wanted(names), self._node, self._nodes, tally, self._chosen)
        for finding in found:
            tally.add(finding, self._options.keep)
        return found

    async def tally(self) -> Tally:
        return self._tally

    def _wanted(self, names: list[bytes]) -> list[bytes]:
        ignore = self._options.ignore
        if not ignore:
            return names
        return [
            name
            for name in names
            if not any(fnmatchcase(name.decode("utf-8", "replace"), pattern) for pattern in ignore)
        ]

    def _chosen(self, names: list[bytes], read: int) -> list[bytes]:
        """Return the names of the sample: the first of each template, and others by hash."""
        if self._options.sample >= 1:
            return names
        bar = int(self._options.sample * 2**32)
        first = max(0, LEAST - read)
        return names[:first] + [name for name in names[first:] if zlib.crc32(name) < bar]
