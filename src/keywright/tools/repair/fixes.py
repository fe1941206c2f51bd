"""Repairs that the model decides: the fixes of its invariants, planned together and applied one by one.

A plan holds which invariant repairs which key. The writes are computed when the step is applied, and
committed with the checks that they depend on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from keywright.engine import AsyncDatabase
from keywright.errors import KeywrightError
from keywright.keyspace import Call, gather_list
from keywright.keyspace.commits.journal import commit
from keywright.keyspace.commits.work import Work, bind
from keywright.keyspace.invariants import Fix, Invariant, Violation
from keywright.tools.audit.findings import Finding
from keywright.tools.audit.invariants import attempted, examine, settled_by
from keywright.tools.audit.matcher import Matcher
from keywright.tools.repair.reversal import reversed_writes
from keywright.tools.repair.step import Step
from keywright.tools.repair.undo import UndoFile

__all__ = ["Claims", "Decided", "Decisions", "FixSteps"]

REMOVING = frozenset({b"UNLINK", b"DEL", b"SREM", b"HDEL", b"ZREM"})
MODEL_CODES = frozenset({"KW601", "KW602", "KW603"})


class Decided(NamedTuple):
    """The step for a finding, and the step to take instead if another finding contradicts it.

    `claims` are the names that the first would set, with the values.
    """

    step: Step
    contested: Step
    claims: list[tuple[bytes, bytes]]


class Decisions:
    """The decisions of the invariants of some keyspaces about findings."""

    def __init__(self, db: AsyncDatabase, matcher: Matcher) -> None:
        self._db = db
        self.matcher = matcher
        self._settled = settled_by(matcher.spaces)
        self._named = _named(matcher)

    def invariant(self, finding: Finding) -> Invariant | None:
        """Return the invariant that decides about a finding."""
        if finding.code in MODEL_CODES:
            return self._named.get(finding.link)
        return self._settled.get((finding.template, finding.link))

    async def decide(self, findings: Sequence[Finding]) -> list[Decided | None]:
        """Decide about findings of invariants, concurrently. None stands for those left to a person."""
        results = await self._db.run(gather_list(attempted(self._examined(each)) for each in findings))
        return [self._decided(*each) for each in zip(findings, results, strict=True)]

    def _examined(self, finding: Finding) -> Call[list[Violation]]:
        invariant = self.invariant(finding)
        assert invariant is not None
        return examine(invariant, self.matcher.key(finding.name), finding.member)

    def _decided(self, finding: Finding, result: list[Violation] | KeywrightError) -> Decided | None:
        if isinstance(result, KeywrightError) or not result or result[0].fix is None:
            return None
        violation, fix = result[0], result[0].fix
        return Decided(
            self._step(finding, fix),
            self._step(finding, violation.if_contested or fix, contested=True),
            _claims(self._bound(fix), bind(self._db.context, (), violation.claims)),
        )

    def _step(self, finding: Finding, fix: Fix, *, contested: bool = False) -> Step:
        invariant = self.invariant(finding)
        assert invariant is not None
        return Step(
            "fix",
            finding.code,
            finding.template,
            finding.name,
            finding.reason,
            finding.member,
            link=invariant.name,
            does=fix.does,
            removes=removes(self._bound(fix)),
            contested=contested,
        )

    def _bound(self, fix: Fix) -> Work:
        return bind(self._db.context, fix.checks, fix.writes)


class Claims:
    """The values that the steps of a plan set, by key, so that contradictions are detected."""

    def __init__(self) -> None:
        self._wanted: dict[bytes, bytes] = {}
        self._contested: set[bytes] = set()

    def add(self, claims: Iterable[tuple[bytes, bytes]]) -> None:
        for name, value in claims:
            place, content = _digest(name), _digest(value)
            if self._wanted.setdefault(place, content) != content:
                self._contested.add(place)

    def settled(self, decided: Decided) -> Step:
        """Return the step to take, once all claims are known."""
        contested = any(_digest(name) in self._contested for name, _ in decided.claims)
        return decided.contested if contested else decided.step


class FixSteps:
    """The executor of steps that invariants decide."""

    def __init__(self, db: AsyncDatabase, matcher: Matcher, undo: UndoFile) -> None:
        self._db = db
        self._matcher = matcher
        self._undo = undo
        self._named = _named(matcher)

    async def fix(self, step: Step) -> bool:
        """Check the key again, and commit the repair of its invariant. Return False if there is none.

        A step that was planned to complete data never removes data instead: if the data changed since, make
        another plan.
        """
        invariant = self._named.get(step.link)
        if invariant is None:
            raise ValueError(f"the invariant {step.link!r} is not declared any more")
        found = await self._db.run(examine(invariant, self._matcher.key(step.name), step.member))
        violation = found[0] if found else Violation("")
        fix = violation.if_contested if step.contested and violation.if_contested else violation.fix
        if fix is None:
            return False
        work = bind(self._db.context, fix.checks, fix.writes)
        if removes(work) and not step.removes:
            return False
        backs, unchanged = await reversed_writes(self._db, work, self._matcher.key, step.code)
        call = commit(f"fix {invariant.name}", [*fix.checks, *unchanged], fix.writes)
        return await self._undo.run(self._db, call, *backs)


def removes(work: Work) -> bool:
    """Return whether writes remove data."""
    return any(verb in REMOVING for _, (verb, *_) in work.writes)


def _named(matcher: Matcher) -> dict[str, Invariant]:
    return {each.name: each for space in matcher.spaces for each in space.invariants}


def _claims(*works: Work) -> list[tuple[bytes, bytes]]:
    """Return the names that writes set, with the values."""
    return [
        (work.names[index], arguments[0])
        for work in works
        for index, (verb, *arguments) in work.writes
        if verb == b"SET"
    ]


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=12).digest()
