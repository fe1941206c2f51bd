"""Repair plans: one step for each finding, or the reason why it is left to a person.

Repairs that only add data, or remove what the forward side of a relation denies, are decided here. Repairs
that may lose data (an unknown key, a malformed value) become steps only for the findings that the caller
names. A plan is a file of JSON lines, so it can be of any length, reviewed and edited.
"""

from __future__ import annotations

import hashlib
import itertools
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from keywright.engine import AsyncDatabase
from keywright.errors import UsageError
from keywright.keyspace import gather_list
from keywright.keyspace.call import Plain
from keywright.keyspace.wires import Effect, Operation
from keywright.tools.audit.findings import Finding
from keywright.tools.audit.matcher import Matcher
from keywright.tools.private_files import overwrite_private, read_private
from keywright.tools.repair.fingerprints import fingerprint
from keywright.tools.repair.fixes import Claims, Decided, Decisions
from keywright.tools.repair.step import Step

__all__ = ["RepairPlan", "Step", "make_plan", "read_plan"]

DUMP = Operation("repair", b"DUMP", Effect.READ)
CHUNK = 200
MOST_REMEMBERED = 100_000

CREATABLE = frozenset({"KW207"})
"""Findings whose only repair creates something that consumers then act on; it must be asked for."""

REMOVABLE = frozenset({"KW101", "KW102", "KW201", "KW202", "KW203", "KW205", "KW401"})
"""Findings whose only repair is to remove something; it must be asked for."""

_ACTIONS = {
    "KW103": "upgrade",
    "KW204": "seal",
    "KW301": "expire",
    "KW302": "expire",
    "KW304": "expire-field",
    "KW402": "complete",
    "KW403": "withdraw",
    "KW404": "unlist",
    "KW405": "list",
}
_LEFT = {
    "KW101": "its owner is unknown; --remove unknown removes it",
    "KW102": "keywright migrate moves it; --remove old-version removes it",
    "KW201": "the declared value is unknown; --remove wrong-type removes it",
    "KW202": "the declared value is unknown; --remove undecodable removes it",
    "KW203": "the missing member is unknown; --remove missing-member removes the record, or the entry",
    "KW205": "a key that opens it may exist elsewhere; --remove broken-seal removes it",
    "KW206": "it may belong to other software; declare it, or declare the class with open=True",
    "KW207": "consumers may create it when they start; --create-groups creates it from the first entry",
    "KW208": "another program may consume with it; declare it, or delete it with XGROUP DESTROY",
    "KW303": "its writer may want it; HPERSIST removes the expiry",
    "KW305": "its writer may want it; declare it in field_expiry, or remove it with HPERSIST",
    "KW401": "either side may be wrong; --remove dangling removes the reference",
    "KW501": "a budget is a decision",
    "KW502": "it was not read",
    "KW601": "the model has no repair for it, or a value that it depends on cannot be read",
    "KW603": "the values that it depends on must be repaired first",
}
_UNDECIDED = "the model does not decide about it, or a value that it depends on cannot be read"
LINKED = frozenset({"KW401", "KW402", "KW403", "KW404", "KW405"})
"""The codes of findings about what a key has to do with another one."""
UNREPAIRED = frozenset({"KW602"})
"""The codes of findings that need no repair."""


class Header(msgspec.Struct):
    model: str
    steps: int = 0
    left: dict[str, int] = {}


class RepairPlan(NamedTuple):
    """A plan in a file: the number of its steps, and the findings that are left, and why."""

    path: Path
    model: str
    steps: int
    left: dict[str, int]
    actions: dict[str, int]

    def steps_in_order(self) -> Iterator[Step]:
        return _steps(self.path)

    def reasons(self) -> list[tuple[str, int, str]]:
        """Return the findings that are left: code, number, and reason."""
        return [(code, count, _LEFT.get(code, _UNDECIDED)) for code, count in sorted(self.left.items())]


async def make_plan(
    db: AsyncDatabase,
    matcher: Matcher,
    model: str,
    findings: Iterable[Finding],
    path: Path,
    remove: frozenset[str],
) -> RepairPlan:
    """Write the plan for some findings to a file, readable only by its owner: it holds names of keys.

    Steps about links come after those that remove or replace a key, which may be at the other end. Steps that
    invariants decide come last, and those of them that remove data at the very end, after those that complete
    data.
    """
    left: Counter[str] = Counter()
    claims = Claims()
    decisions = Decisions(db, matcher)
    with (
        overwrite_private(path) as file,
        tempfile.TemporaryFile() as linked,
        tempfile.TemporaryFile() as spool,
    ):
        lines = _Lines(file)
        file.write(msgspec.json.encode(Header(model)) + b"\n")
        async for planned, code in _planned(db, decisions, findings, remove):
            if planned is None:
                left[code] += 1
            elif isinstance(planned, Decided):
                claims.add(planned.claims)
                spool.write(msgspec.json.encode(planned) + b"\n")
            elif planned.code in LINKED:
                linked.write(msgspec.json.encode(planned) + b"\n")
            else:
                lines.write(planned)
        linked.seek(0)
        for line in linked:
            lines.write(msgspec.json.decode(line, type=Step))
        for removing in (False, True):
            spool.seek(0)
            for line in spool:
                step = claims.settled(msgspec.json.decode(line, type=Decided))
                if step.removes is removing:
                    lines.write(step)
        file.write(msgspec.json.encode(Header(model, lines.actions.total(), left)) + b"\n")
    return RepairPlan(path, model, lines.actions.total(), dict(left), dict(lines.actions))


class _Lines:
    """The steps of a plan as they are written, without duplicates.

    SCAN may return a key twice, and a key may have several findings that one invariant repairs together.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.actions: Counter[str] = Counter()
        self._file = file
        self._seen: set[bytes] = set()

    def write(self, step: Step) -> None:
        line = msgspec.json.encode(step) + b"\n"
        identity = repr((step.link, step.name, step.member)).encode() if step.action == "fix" else line
        digest = hashlib.blake2b(identity, digest_size=16).digest()
        if digest in self._seen:
            return
        self._seen = self._seen if len(self._seen) < MOST_REMEMBERED else set()
        self._seen.add(digest)
        self._file.write(line)
        self.actions[step.action] += 1


def read_plan(path: Path) -> RepairPlan:
    """Return a saved plan. Raise UsageError if the file is malformed."""
    try:
        with read_private(path) as file:
            lines = file.read().splitlines()
        first = msgspec.json.decode(lines[0], type=Header)
        last = msgspec.json.decode(lines[-1], type=Header)
        actions: dict[str, int] = {}
        for step in _steps(path):
            actions[step.action] = actions.get(step.action, 0) + 1
    except (OSError, IndexError, msgspec.MsgspecError) as error:
        raise UsageError(
            f"{path} is not a plan: {error}. Make one with keywright repair MODEL --save."
        ) from error
    return RepairPlan(path, first.model, sum(actions.values()), last.left, actions)


def _steps(path: Path) -> Iterator[Step]:
    with read_private(path) as file:
        for line in file:
            if b'"action"' in line:
                yield msgspec.json.decode(line, type=Step)


async def _planned(
    db: AsyncDatabase, decisions: Decisions, findings: Iterable[Finding], remove: frozenset[str]
) -> AsyncIterator[tuple[Step | Decided | None, str]]:
    wanted = (finding for finding in findings if finding.code not in UNREPAIRED)
    while chunk := list(itertools.islice(wanted, CHUNK)):
        for planned in await _chunk(db, decisions, chunk, remove):
            yield planned


async def _chunk(
    db: AsyncDatabase, decisions: Decisions, findings: Sequence[Finding], remove: frozenset[str]
) -> list[tuple[Step | Decided | None, str]]:
    settled = [finding for finding in findings if decisions.invariant(finding) is not None]
    others = [finding for finding in findings if decisions.invariant(finding) is None]
    actions = [_action(finding, decisions.matcher, remove) for finding in others]
    whole = [each for each, action in zip(others, actions, strict=True) if action == "remove-key"]
    dumps = await db.run(gather_list(Plain(DUMP, (finding.name,), finding.name) for finding in whole))
    seen = {finding.name: fingerprint(dump) for finding, dump in zip(whole, dumps, strict=True) if dump}
    decided = zip(settled, await decisions.decide(settled), strict=True)
    return [
        *(
            (_step(finding, action, seen), finding.code)
            for finding, action in zip(others, actions, strict=True)
        ),
        *((decision, finding.code) for finding, decision in decided),
    ]


def _step(finding: Finding, action: str | None, seen: dict[bytes, str]) -> Step | None:
    if action is None:
        return None
    return Step(
        action,
        finding.code,
        finding.template,
        finding.name,
        finding.reason,
        finding.member,
        finding.other,
        finding.field,
        finding.link,
        seen.get(finding.name, "") if action == "remove-key" else "",
    )


def _action(finding: Finding, matcher: Matcher, remove: frozenset[str]) -> str | None:
    if finding.code == "KW102" and finding.other is not None:
        return "move"
    if finding.code in REMOVABLE:
        if finding.code not in remove:
            return None
        return "remove-key" if _concerns_key(finding, matcher) else "remove-entry"
    if finding.code in CREATABLE:
        return "create-group" if finding.code in remove else None
    if finding.code == "KW402" and finding.code in remove:
        return "settle"
    return _ACTIONS.get(finding.code)


def _concerns_key(finding: Finding, matcher: Matcher) -> bool:
    """Return whether a finding is about a key as a whole, not about one of its entries.

    A member that a record lacks is not an entry that can be removed. An entry of a stream that lacks one is.
    """
    if finding.member is None:
        return True
    return finding.code == "KW203" and matcher.key(finding.name).declaration.storage.whole
