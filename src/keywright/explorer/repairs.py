"""Repairs of all findings of one code: a plan first, then its steps in the background, then their undo.

One job runs at a time. A job keeps its plan in a private folder until the explorer ends, and its removed data
in an undo file of its own, written before each step: a process that dies between two steps leaves a file that
`keywright repair --undo` restores.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import tempfile
import time
from collections import Counter, deque
from collections.abc import Coroutine, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from keywright.engine import AsyncDatabase
from keywright.errors import KeywrightError, UsageError
from keywright.explorer.precedence import Requests, YieldingPacemaker
from keywright.keyspace import Keyspace
from keywright.tools.audit.findings import CODES, Finding, FindingCode
from keywright.tools.audit.matcher import Matcher
from keywright.tools.audit.walk import AuditOptions, Walk, WalkProgress
from keywright.tools.repair.commands import commands_of
from keywright.tools.repair.plan import RepairPlan, make_plan
from keywright.tools.repair.repairer import Repairer, StepOutcome
from keywright.tools.repair.step import Step
from keywright.tools.repair.undo import UndoFile, Undone, undo

__all__ = ["RepairJob", "Repairs"]

SHOWN = 100
MOST_JOBS = 20
log = logging.getLogger("keywright.explorer")


class RepairJob:
    """One repair. `state` is planning, planned, applying, applied, cancelled, failed, undoing or undone."""

    def __init__(
        self, number: int, code: FindingCode, undo_file: Path, space: Keyspace | None, *, remove: bool
    ) -> None:
        self.number = number
        self.code = code
        self.space = space
        """The only keyspace that is repaired; None: all."""
        self.remove = remove
        self.undo_file = undo_file
        self.state = "planning"
        self.begun = time.time()
        self.progress: WalkProgress | None = None
        self.plan: RepairPlan | None = None
        self.steps: list[tuple[Step, list[str]]] = []
        """The first steps, with their commands."""
        self.total = 0
        self.done = 0
        self.stopping = False
        self.states: Counter[str] = Counter()
        self.left: list[StepOutcome] = []
        self.problem: str | None = None
        self.undone: Undone | None = None

    @property
    def busy(self) -> bool:
        return self.state in ("planning", "applying", "undoing")

    def planned(self) -> Iterator[Step]:
        """Yield the steps of this code. The plan has others as well, so that conflicts are detected."""
        assert self.plan is not None
        return (step for step in self.plan.steps_in_order() if step.code == self.code.code)

    @property
    def removes(self) -> bool:
        """Whether a step of the plan loses data; of long plans, one of the steps that are shown."""
        return any(step.loses_data for step, _ in self.steps)

    @property
    def mark(self) -> str:
        """Return the digest of the plan, by which a form names the plan that was shown."""
        digest = hashlib.blake2b(digest_size=9)
        if self.plan is not None:
            digest.update(self.plan.path.read_bytes())
        return digest.hexdigest()

    @property
    def can_undo(self) -> bool:
        return self.state in ("applied", "cancelled", "failed") and self.undo_file.exists()


class Repairs:
    """The repair jobs of one explorer, the newest first."""

    def __init__(
        self,
        db: AsyncDatabase,
        spaces: Sequence[Keyspace],
        requests: Requests,
        *,
        writable: bool,
        undo_file: Path,
    ) -> None:
        self.db = db
        self.requests = requests
        self.spaces = tuple(spaces)
        self.writable = writable
        self.undo_file = undo_file
        self.jobs: deque[RepairJob] = deque(maxlen=MOST_JOBS)
        self._number = 0
        self._task: asyncio.Task[None] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def job(self, number: int) -> RepairJob | None:
        return next((job for job in self.jobs if job.number == number), None)

    def begin(self, code: str, *, remove: bool, space: Keyspace | None = None) -> RepairJob:
        """Start to plan the repair of a code: audit the database again, and plan a step for each finding.

        With a keyspace, nothing else is audited or repaired.
        """
        self._require_idle()
        self._number += 1
        moment = f"{datetime.now():%Y%m%d-%H%M%S}-{self._number}"
        path = self.undo_file.with_name(f"{self.undo_file.stem}-{moment}{self.undo_file.suffix}")
        job = RepairJob(self._number, CODES[code], path, space, remove=remove)
        self.jobs.appendleft(job)
        self._start(job, self._planned(job))
        return job

    def apply(self, job: RepairJob, mark: str) -> bool:
        """Start to apply a plan. Return False if it is not the plan that `mark` names."""
        self._require_idle()
        if job.state != "planned" or mark != job.mark:
            return False
        job.state = "applying"
        self._start(job, self._applied(job))
        return True

    def undo(self, job: RepairJob) -> bool:
        """Start to restore what a job removed. Return False if it cannot be undone."""
        self._require_idle()
        if not job.can_undo:
            return False
        job.state = "undoing"
        self._start(job, self._undone(job))
        return True

    def cancel(self, job: RepairJob) -> None:
        """Stop a job: a plan at once, its application after the present step."""
        job.stopping = True
        if job.state == "planning" and self._task is not None:
            self._task.cancel()

    async def stop(self) -> None:
        """Stop the running job, and remove the plans."""
        if self.jobs:
            self.cancel(self.jobs[0])
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        if self._folder is not None:
            self._folder.cleanup()

    def _require_idle(self) -> None:
        if not self.writable:
            raise UsageError("this explorer is read-only. Start it with --write to repair.")
        if self.running:
            raise UsageError("another repair is running. Wait for it, or cancel it.")

    def _start(self, job: RepairJob, work: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.create_task(self._guarded(job, work))

    async def _guarded(self, job: RepairJob, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            job.state = "cancelled"
        except (KeywrightError, OSError) as error:
            job.state, job.problem = "failed", str(error)
        except Exception as error:
            job.state = "failed"
            job.problem = f"It failed with {type(error).__name__}. The log of the explorer has the details."
            log.exception("a repair failed")

    async def _planned(self, job: RepairJob) -> None:
        with tempfile.TemporaryFile() as spool:  # so that a plan of any length needs no memory

            def keep(finding: Finding) -> None:
                if finding.code == job.code.code or finding.link:
                    spool.write(msgspec.json.encode(finding) + b"\n")

            # At the primaries: a replica may be behind what an earlier job repaired.
            options = AuditOptions(keep=1, prefer_replica=False)
            await Walk(
                self.db,
                self.spaces if job.space is None else (job.space,),
                options,
                on_finding=keep,
                on_progress=lambda progress: setattr(job, "progress", progress),
                pacemaker=YieldingPacemaker(self.requests),
            ).run()
            spool.seek(0)
            findings = (msgspec.json.decode(line, type=Finding) for line in spool)
            matcher = Matcher(self.spaces, self.db.context)
            remove = frozenset({job.code.code}) if job.remove else frozenset[str]()
            path = self._plans() / f"plan-{job.number}"
            job.plan = await make_plan(self.db, matcher, "explorer", findings, path, remove)
        job.total = sum(1 for _ in job.planned())
        job.steps = [(step, commands_of(step, matcher)) for step in islice(job.planned(), SHOWN)]
        job.state = "planned"

    def _plans(self) -> Path:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="keywright-")
        return Path(self._folder.name)

    async def _applied(self, job: RepairJob) -> None:
        kept = UndoFile(job.undo_file)
        repairer = Repairer(self.db, Matcher(self.spaces, self.db.context), kept)
        try:
            kept.open()
            for step in job.planned():
                if job.stopping:
                    job.state = "cancelled"
                    return
                outcome = await repairer.apply(step)
                job.done += 1
                job.states[outcome.state] += 1
                if outcome.state == "left" and len(job.left) < SHOWN:
                    job.left.append(outcome)
            job.state = "applied"
        finally:
            kept.close()

    async def _undone(self, job: RepairJob) -> None:
        job.undone = await undo(self.db, job.undo_file, self.spaces)
        job.state = "undone"
