"""Judges the loads of the library: acknowledged writes are there, none twice, and relations agree."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from soak.judge.findings import Findings
from soak.judge.logs import DOUBT, NO, OK, Attempt, attempts
from soak.judge.raw import Keys

__all__ = ["judge_keyspace", "relation_violations"]


def judge_keyspace(
    logs: Iterable[Path], keys: Keys, *, unsafe: Iterable[Path] = (), evicts: bool = False
) -> Findings:
    """Judge all keys of a server by the logs of its writers.

    `unsafe` are the logs of writers without WAIT where failovers happen, and with `evicts` the server may
    remove keys: then losses are documented, and counted only.
    """
    findings = Findings()
    safe, allowed = list(attempts(logs)), list(attempts(unsafe))
    _judge_writes(safe, keys, findings)
    if allowed:
        without_wait = Findings()
        _judge_writes(allowed, keys, without_wait)
        findings.acknowledged += without_wait.acknowledged
        findings.allowed_lost += without_wait.lost
        findings.doubled += without_wait.doubled
        for name, count in without_wait.errors.items():
            findings.error(name, count)
    _judge_jobs([*safe, *allowed], keys, findings, lossless=not allowed and not evicts)
    if evicts:
        findings.allowed_lost += findings.lost
        findings.lost = 0
        findings.violations = 0
        findings.details.clear()
    else:
        for violation in relation_violations(keys):
            findings.violate(violation)
    return findings


def _calls(tried: Iterable[Attempt]) -> list[Attempt]:
    """Return one attempt for each call: a call is made again after a refusal, and the best outcome counts."""
    calls: dict[tuple[str, str], Attempt] = {}
    for attempt in tried:
        before = calls.get((attempt.kind, attempt.item))
        if before is None or _RANK[attempt.outcome] >= _RANK[before.outcome]:
            calls.pop((attempt.kind, attempt.item), None)  # keeps the order of outcomes
            calls[attempt.kind, attempt.item] = attempt
    return list(calls.values())


_RANK = {NO: 0, DOUBT: 1, OK: 2}


def _judge_writes(tried: list[Attempt], keys: Keys, findings: Findings) -> None:
    additions: dict[str, Counter[str]] = defaultdict(Counter)
    notes: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in tried:
        if attempt.error:
            findings.error(attempt.error)
    tried = _calls(tried)
    for attempt in tried:
        if attempt.outcome == OK:
            findings.acknowledged += 1
        if attempt.kind == "add":
            additions[attempt.item.partition("/")[0]][attempt.outcome] += 1
        elif attempt.kind == "note":
            notes[attempt.item.partition("/")[0]].append(attempt)
    _judge_pushes(tried, keys, findings)
    for writer, outcomes in additions.items():
        stored = int(keys.get(f"hits:{writer}", 0))
        for _ in range(outcomes[OK] - stored):
            findings.lose(f"an addition to hits:{writer}")
        for _ in range(stored - outcomes[OK] - outcomes[DOUBT]):
            findings.double(f"an addition to hits:{writer}")
    for name, written in notes.items():
        _judge_note(name, written, keys, findings)
    _judge_relations(tried, keys, findings)


def _judge_pushes(tried: list[Attempt], keys: Keys, findings: Findings) -> None:
    pushed = [attempt for attempt in tried if attempt.kind == "push"]
    blocks = {attempt.item.partition("/")[0] for attempt in pushed}
    there = {block: Counter(item.decode() for item in keys.get(f"log:{block}", ())) for block in blocks}
    for attempt in pushed:
        block, _, item = attempt.item.partition("/")
        times = there[block][item]
        if times > 1:
            findings.double(f"log:{block} has {item} {times} times")
        if attempt.outcome == OK and not times:
            findings.lose(f"{item} of log:{block}")
        if attempt.outcome == NO and times:
            findings.violate(f"log:{block} has {item}, but its writer got {attempt.error}")


def _judge_note(name: str, written: list[Attempt], keys: Keys, findings: Findings) -> None:
    """The last acknowledged value, or one whose outcome was unknown: that may be applied late."""
    last = next((each.item for each in reversed(written) if each.outcome == OK), None)
    possible = {each.item for each in written if each.outcome == DOUBT} | ({last} if last else set())
    stored = keys.get(f"note:{name}")
    if stored is None and last is not None:
        findings.lose(f"note:{name}")
    elif stored is not None and f"{name}/{stored.decode()}" not in possible:
        findings.lose(f"{last} of note:{name}, which has {stored.decode()}")


def _judge_relations(tried: list[Attempt], keys: Keys, findings: Findings) -> None:
    moved = {a.item.partition("/")[0]: a.outcome for a in tried if a.kind == "move"}
    for attempt in tried:
        person, _, partner = attempt.item.partition("/")
        stored = _STORED.get(attempt.kind)
        if stored is None or (attempt.kind == "assign" and person in moved):
            continue
        is_there = stored(keys, person, partner)
        if attempt.outcome == OK and not is_there:
            findings.lose(f"{attempt.kind} {attempt.item}")
        if attempt.outcome == NO and is_there and attempt.error != "TakenError":
            findings.violate(f"{attempt.kind} {attempt.item} is there, but its writer got {attempt.error}")
        if attempt.kind == "move":
            moves = int(keys.get(f"moves:{person}", 0))
            if moves > 1:
                findings.double(f"moves:{person} is {moves} after one move")
            if bool(moves) != is_there and attempt.outcome != NO:
                stored_team = keys.get(f"person:{person}:team")
                findings.violate(f"moves:{person} is {moves}, but its team is {stored_team}")


_STORED: dict[str, Callable[[Keys, str, str], bool]] = {
    "assign": lambda keys, person, team: keys.get(f"person:{person}:team") == team.encode(),
    "move": lambda keys, person, team: keys.get(f"person:{person}:team") == team.encode(),
    "sit": lambda keys, person, desk: keys.get(f"person:{person}:desk") == desk.encode(),
    "tag": lambda keys, person, tag: tag.encode() in keys.get(f"person:{person}:tags", ()),
    "profile": lambda keys, person, _: f"profile:{person}" in keys,
}


def _judge_jobs(tried: list[Attempt], keys: Keys, findings: Findings, *, lossless: bool) -> None:
    """A job is finished once, by any of the writers."""
    finished = Counter(a.item for a in tried if a.kind == "finish" and a.outcome == OK)
    for job, times in finished.items():
        runs = int(keys.get(f"job:{{{job}}}:runs", 0))
        if times > 1 and lossless:
            findings.double(f"job {job} was finished {times} times")
        if not runs and lossless:
            findings.lose(f"the runs of job {job}")
    for name, value in keys.items():
        if name.startswith("job:") and name.endswith(":runs") and int(value) > 1:
            findings.double(f"{name} is {int(value)}")


def relation_violations(keys: Keys) -> list[str]:
    """Return each half of a relation without its other half, index entries without a record, and intents."""
    found = []
    for name, value in keys.items():
        if name.startswith("keywright:"):
            found.append(f"{name} is left of the journal")
        for pattern, check in _CHECKS:
            if matched := pattern.fullmatch(name):
                found += check(keys, name, matched[1], value)
    return found


def _half(keys: Keys, name: str, own: str, inverse: str) -> list[str]:
    other = keys.get(inverse)
    mutual = (
        other == own.encode() if isinstance(other, bytes) else other is not None and own.encode() in other
    )
    return [] if mutual else [f"{name} names {inverse}, which does not have {own}"]


def _each(kind: str, part: str) -> Callable[[Keys, str, str, object], list[str]]:
    """Return a check that every partner of a key (one, or a set) names its owner in `kind:<partner>:part`."""

    def check(keys: Keys, name: str, own: str, value: object) -> list[str]:
        partners = [value] if isinstance(value, bytes) else list(value)  # type: ignore[call-overload]
        return [
            broken
            for partner in partners
            for broken in _half(keys, name, own, f"{kind}:{partner.decode()}:{part}")
        ]

    return check


def _in_index(keys: Keys, name: str, own: str, value: object) -> list[str]:
    return [] if own.encode() in keys.get("profiles", ()) else [f"{name} is not in the index"]


def _has_record(keys: Keys, name: str, own: str, value: set[bytes]) -> list[str]:
    return [
        f"the index has {each.decode()}, which has no profile"
        for each in value
        if f"profile:{each.decode()}" not in keys
    ]


_CHECKS: list[tuple[re.Pattern[str], Callable[..., list[str]]]] = [
    (re.compile(r"person:([^:]+):team"), _each("team", "members")),
    (re.compile(r"team:([^:]+):members"), _each("person", "team")),
    (re.compile(r"person:([^:]+):desk"), _each("desk", "person")),
    (re.compile(r"desk:([^:]+):person"), _each("person", "desk")),
    (re.compile(r"person:([^:]+):tags"), _each("tag", "people")),
    (re.compile(r"tag:([^:]+):people"), _each("person", "tags")),
    (re.compile(r"profile:([^:]+)"), _in_index),
    (re.compile(r"(profiles)"), _has_record),
]
