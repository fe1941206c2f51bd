"""From findings to a plan: one step each, or the reason why it is left to a person.

What only adds, or removes what the forward side of a relation denies, is decided here. What would lose
data that may be someone's (an unknown key, a value that does not decode) is a step only for the findings
that the caller names. A plan is a file of JSON lines, so it can be of any length, read and edited.
"""

from __future__ import annotations

import hashlib
import os
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
from keywright.tools.repair.fingerprints import fingerprint

__all__ = ["Plan", "Step", "make_plan", "read_plan"]

DUMP = Operation("repair", b"DUMP", Effect.READ)
CHUNK = 200

REMOVABLE = frozenset({"KW101", "KW102", "KW201", "KW202", "KW203", "KW205", "KW401"})
"""Findings whose only repair is to remove something; it must be asked for."""

_ACTIONS = {
    "KW103": "upgrade",
    "KW204": "seal",
    "KW301": "expire",
    "KW302": "expire",
    "KW402": "complete",
    "KW403": "withdraw",
    "KW404": "unlist",
    "KW405": "list",
}
_LEFT = {
    "KW101": "nobody can tell whose it is; --remove unknown removes it",
    "KW102": "keywright migrate moves it; --remove old-version removes it",
    "KW201": "the declared value cannot be told from it; --remove wrong-type removes it",
    "KW202": "the declared value cannot be told from it; --remove undecodable removes it",
    "KW203": "the missing member cannot be told; --remove missing-member removes the record",
    "KW205": "a key that opens it may exist elsewhere; --remove broken-seal removes it",
    "KW401": "either side may be wrong; --remove dangling removes what refers",
    "KW501": "a budget is a decision",
    "KW502": "it was not read",
}


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One repair: what to do to which key, and what it rests on.

    `seen` is the fingerprint of what the key held, for steps that remove it: a key that changed is left.
    """

    action: str
    code: str
    template: str
    name: bytes
    reason: str
    member: bytes | None = None
    other: bytes | None = None
    field: bytes | None = None
    link: str = ""
    seen: str = ""


class Header(msgspec.Struct):
    model: str
    steps: int = 0
    left: dict[str, int] = {}


class Plan(NamedTuple):
    """A plan in a file: how many steps it has, what was left and why."""

    path: Path
    model: str
    steps: int
    left: dict[str, int]
    actions: dict[str, int]

    def steps_in_order(self) -> Iterator[Step]:
        return _steps(self.path)

    def reasons(self) -> list[tuple[str, int, str]]:
        """What was left: code, how many, and why."""
        return [(code, count, _LEFT.get(code, "")) for code, count in sorted(self.left.items())]


async def make_plan(
    db: AsyncDatabase, model: str, findings: Iterable[Finding], path: Path, remove: frozenset[str]
) -> Plan:
    """Write the plan for some findings to a file, readable only for its owner: it holds names of keys."""
    left: dict[str, int] = {}
    actions: dict[str, int] = {}
    seen: set[bytes] = set()
    with owners_file(path) as file:
        file.write(msgspec.json.encode(Header(model)) + b"\n")
        async for step, code in _planned(db, findings, remove):
            if step is None:
                left[code] = left.get(code, 0) + 1
                continue
            line = msgspec.json.encode(step) + b"\n"
            digest = hashlib.blake2b(line, digest_size=16).digest()
            if digest in seen:
                continue  # SCAN gave the key twice
            seen = seen if len(seen) < 100_000 else set()
            seen.add(digest)
            file.write(line)
            actions[step.action] = actions.get(step.action, 0) + 1
        file.write(msgspec.json.encode(Header(model, sum(actions.values()), left)) + b"\n")
    return Plan(path, model, sum(actions.values()), left, actions)


def read_plan(path: Path) -> Plan:
    """A saved plan; UsageError where the file is none."""
    try:
        lines = path.read_bytes().splitlines()
        first = msgspec.json.decode(lines[0], type=Header)
        last = msgspec.json.decode(lines[-1], type=Header)
        actions: dict[str, int] = {}
        for step in _steps(path):
            actions[step.action] = actions.get(step.action, 0) + 1
    except (OSError, IndexError, msgspec.MsgspecError) as error:
        raise UsageError(
            f"{path} is no plan: {error}. Make one with keywright repair MODEL --save."
        ) from error
    return Plan(path, first.model, sum(actions.values()), last.left, actions)


def owners_file(path: Path) -> IO[bytes]:
    """A fresh file that only its owner may read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _steps(path: Path) -> Iterator[Step]:
    with path.open("rb") as file:
        for line in file:
            if b'"action"' in line:
                yield msgspec.json.decode(line, type=Step)


async def _planned(
    db: AsyncDatabase, findings: Iterable[Finding], remove: frozenset[str]
) -> AsyncIterator[tuple[Step | None, str]]:
    chunk: list[Finding] = []
    for finding in findings:
        chunk.append(finding)
        if len(chunk) == CHUNK:
            for planned in await _chunk(db, chunk, remove):
                yield planned
            chunk = []
    for planned in await _chunk(db, chunk, remove):
        yield planned


async def _chunk(
    db: AsyncDatabase, findings: Sequence[Finding], remove: frozenset[str]
) -> list[tuple[Step | None, str]]:
    whole = [finding for finding in findings if _action(finding, remove) == "remove-key"]
    dumps = await db.run(gather_list(Plain(DUMP, (finding.name,), finding.name) for finding in whole))
    seen = {finding.name: fingerprint(dump) for finding, dump in zip(whole, dumps, strict=True) if dump}
    return [(_step(finding, remove, seen), finding.code) for finding in findings]


def _step(finding: Finding, remove: frozenset[str], seen: dict[bytes, str]) -> Step | None:
    action = _action(finding, remove)
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


def _action(finding: Finding, remove: frozenset[str]) -> str | None:
    if finding.code == "KW102" and finding.other is not None:
        return "move"
    if finding.code in REMOVABLE:
        if finding.code not in remove:
            return None
        has_entry = finding.member is not None and finding.code in ("KW202", "KW205", "KW401")
        return "remove-entry" if has_entry else "remove-key"
    return _ACTIONS.get(finding.code)
