"""Audits started from a page, one at a time, in the background, while no page waits; repairs of findings."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import tempfile
import time
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from anyio import CancelScope
from anyio.from_thread import start_blocking_portal

from keywright.engine import AsyncDatabase
from keywright.errors import KeywrightError, UsageError
from keywright.explorer.precedence import Requests, YieldingPacemaker
from keywright.keyspace import Key, Keyspace
from keywright.tools.audit.findings import CODES, Finding, FindingCode
from keywright.tools.audit.matcher import Matcher
from keywright.tools.audit.tally import Tally
from keywright.tools.audit.walk import AuditOptions, Walk, WalkProgress
from keywright.tools.repair.plan import make_plan
from keywright.tools.repair.repairer import Repairer, StepOutcome
from keywright.tools.repair.step import Step
from keywright.tools.repair.undo import UndoFile

__all__ = ["Auditing", "Group", "Past", "Proposal", "finding_id"]

KEPT = 200
AUDITS = 50
LEVELS = ("error", "warning", "note")
log = logging.getLogger("keywright.explorer")


class Group(NamedTuple):
    """The findings of one code: their number, and the first of them."""

    code: FindingCode
    total: int
    kept: list[Finding]


class Proposal(NamedTuple):
    """The repair plan of one finding; `removes` if it would delete data."""

    finding: Finding
    steps: list[Step]
    removes: bool

    @property
    def mark(self) -> str:
        """Return the digest by which a form names the plan that was shown."""
        return hashlib.blake2b(repr(self.steps).encode(), digest_size=9).hexdigest()


class Past(NamedTuple):
    """One finished audit: when, how many keys, and how many findings of each code."""

    finished: float
    keys: int
    findings: dict[str, int]

    def total(self, level: str) -> int:
        return sum(count for code, count in self.findings.items() if CODES[code].level == level)


class Auditing:
    """The last audit, the running one, and the counts of earlier ones."""

    def __init__(
        self,
        db: AsyncDatabase,
        spaces: Sequence[Keyspace],
        requests: Requests,
        *,
        writable: bool,
        undo: Path | None = None,
    ) -> None:
        self.db = db
        self.requests = requests
        self.spaces = tuple(spaces)
        self.writable = writable
        self.undo = undo or Path("keywright-explorer.undo")
        self.progress: WalkProgress | None = None
        self.tally: Tally | None = None
        self.begun = 0.0
        """When the last audit that has findings here began."""
        self.finished = 0.0
        self.trouble: str | None = None
        self.history: deque[Past] = deque(maxlen=AUDITS)
        self.by_template: dict[type[Key], Counter[str]] = {}
        """How many findings of each code the last audit has on each template."""
        self._task: asyncio.Task[None] | None = None
        self._repairing = asyncio.Lock()

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def age(self) -> float:
        return time.time() - self.finished

    def start(self) -> bool:
        """Start an audit. Return False if one is running."""
        if self.running:
            return False
        self.progress, self.trouble = None, None
        self._task = asyncio.create_task(self._audit())
        self._task.add_done_callback(self._report)
        return True

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def total(self) -> int:
        """Return how many findings the last audit has, without notes."""
        return sum(group.total for group in self.groups() if group.code.level != "note")

    @property
    def errors(self) -> int:
        return sum(group.total for group in self.groups() if group.code.level == "error")

    def groups(self) -> list[Group]:
        """Return the findings of the last audit by code, errors first."""
        found = {} if self.tally is None else self.tally.findings
        groups = [Group(CODES[code], each.count, each.kept) for code, each in sorted(found.items())]
        return sorted(groups, key=lambda group: LEVELS.index(group.code.level))

    def counts_on(self, kind: type[Key]) -> tuple[int, int]:
        """Return how many errors and warnings the last audit has on a template."""
        found = self.by_template.get(kind, Counter())
        errors, warnings = (
            sum(count for code, count in found.items() if CODES[code].level == level)
            for level in ("error", "warning")
        )
        return errors, warnings

    async def cancel(self) -> None:
        """Stop the running audit; the last one stays."""
        if self.running:
            await self.stop()
            self.trouble = "It was cancelled."

    def findings_on(self, name: bytes) -> list[Finding]:
        """Return the findings that the last audit kept about one key."""
        return [finding for finding in self._kept() if finding.name == name]

    @property
    def names(self) -> set[bytes]:
        """Return the names of the keys that the last audit kept findings about."""
        return {finding.name for finding in self._kept()}

    def finding(self, identity: str) -> Finding | None:
        return next((each for each in self._kept() if finding_id(each) == identity), None)

    async def propose(self, finding: Finding) -> Proposal:
        """Return the repair plan of one finding. Changes nothing.

        Findings of relations and invariants are planned together with the others that were kept, to detect
        conflicts between them.
        """
        others = [each for each in self._kept() if each.link and each != finding] if finding.link else []
        matcher = Matcher(self.spaces, self.db.context)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "plan"
            plan = await make_plan(
                self.db, matcher, "explorer", [finding, *others], path, frozenset({finding.code})
            )
            steps = [
                step
                for step in plan.steps_in_order()
                if (step.code, step.name, step.member) == (finding.code, finding.name, finding.member)
            ]
        return Proposal(finding, steps, any(step.loses_data for step in steps))

    async def repair(self, proposal: Proposal) -> list[StepOutcome]:
        """Apply a plan and append to the undo file; drop the finding once it is repaired."""
        if not self.writable:
            raise UsageError("this explorer is read-only. Start it with --write to repair.")
        async with self._repairing:  # there is one undo file
            outcomes = await self._apply(proposal.steps)
        if all(outcome.state != "left" for outcome in outcomes):
            self._forget(proposal.finding)
        return outcomes

    async def _apply(self, steps: Sequence[Step]) -> list[StepOutcome]:
        undo = UndoFile(self.undo)
        repairer = Repairer(self.db, Matcher(self.spaces, self.db.context), undo)
        try:
            return [await repairer.apply(step) for step in steps]
        except OSError as error:
            raise UsageError(
                f"cannot write the undo file {self.undo}: {error}. "
                f"Start the explorer with --undo and another file."
            ) from error
        finally:
            undo.close()

    def _kept(self) -> list[Finding]:
        return [finding for group in self.groups() for finding in group.kept]

    def _forget(self, finding: Finding) -> None:
        found = None if self.tally is None else self.tally.findings.get(finding.code)
        if self.tally is None or found is None or finding not in found.kept:
            return
        found.kept.remove(finding)
        found.count -= 1
        kind = Matcher(self.spaces, self.db.context).kind_of(finding.name)
        if kind is not None and kind in self.by_template:
            self.by_template[kind][finding.code] -= 1
        if not found.count:
            del self.tally.findings[finding.code]

    async def _audit(self) -> None:
        begun = time.time()
        try:
            found: dict[type[Key], Counter[str]] = {}
            with start_blocking_portal() as other_thread:
                tally = await asyncio.wrap_future(other_thread.start_task_soon(self._walked, found))
            self.tally, self.by_template = tally, found
            self.begun, self.finished = begun, time.time()
            counts = {code: each.count for code, each in tally.findings.items()}
            self.history.append(Past(self.finished, tally.inside, counts))
        except KeywrightError as error:
            self.trouble = str(error)

    async def _walked(self, found: dict[type[Key], Counter[str]]) -> Tally:
        """Walk the database with a loop and connections of this thread: pages must not wait for it."""
        options = AuditOptions(keep=KEPT)
        matcher = Matcher(self.spaces, self.db.context)

        def count(finding: Finding) -> None:
            kind = matcher.kind_of(finding.name)
            if kind is not None:
                found.setdefault(kind, Counter())[finding.code] += 1

        database = AsyncDatabase(self.db.address, self.db.context, self.db.settings)
        try:
            return await Walk(
                database,
                self.spaces,
                options,
                on_finding=count,
                on_progress=self._on_progress,
                pacemaker=YieldingPacemaker(self.requests),
            ).run()
        finally:
            with CancelScope(shield=True):
                await database.close()

    def _report(self, task: asyncio.Task[None]) -> None:
        """Show an unexpected error of an audit on the page, and log it."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.trouble = f"It failed with {type(error).__name__}. The log of the explorer has the details."
            log.error("an audit failed", exc_info=error)

    def _on_progress(self, progress: WalkProgress) -> None:
        self.progress = progress


def finding_id(finding: Finding) -> str:
    """Return the identifier of a finding in URLs."""
    return hashlib.blake2b(repr(finding.identity).encode(), digest_size=9).hexdigest()
