"""Judges the registry service: each acknowledged pull and push is counted once, in PostgreSQL or Redis."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import psycopg

from soak.judge.findings import Findings
from soak.judge.logs import NO, OK, attempts
from soak.judge.raw import Keys

__all__ = ["judge_registry"]


def judge_registry(notified: Path, keys: Keys, database: str) -> Findings:
    """Judge by the log of the notifications, all keys of Redis, and the tables."""
    findings = Findings()
    acknowledged: Counter[str] = Counter()
    possible: Counter[str] = Counter()
    for attempt in attempts([notified]):
        if attempt.kind == "send":
            findings.error(attempt.error)
            continue
        action, _, path = attempt.item.rpartition("/")[0].partition("/")
        if attempt.outcome == OK:
            findings.acknowledged += 1
            acknowledged[f"{action} {path}"] += 1
        if attempt.outcome != NO:
            possible[f"{action} {path}"] += 1
    counted = _counted(keys, database)
    for name in acknowledged | counted:
        for _ in range(acknowledged[name] - counted[name]):
            findings.lose(f"a {name}")
        for _ in range(counted[name] - possible[name]):
            findings.double(f"a {name}")
    return findings


def _counted(keys: Keys, database: str) -> Counter[str]:
    """Return the counts in the tables, in counters that no flush took, and in batches that none added."""
    found: Counter[str] = Counter()
    with psycopg.connect(database) as connection:
        for path, pulls, pushes in connection.execute("SELECT path, pulls, pushes FROM repository_counts"):
            found[f"pull {path}"] = pulls
            found[f"push {path}"] = pushes
        added = {batch.encode() for (batch,) in connection.execute("SELECT batch FROM count_batches")}
    for name, value in keys.items():
        stem = name.rpartition(":")[0]
        if name.endswith(":counted"):
            for action in ("pull", "push"):
                found[f"{action} {value.decode()}"] += int(keys.get(f"{stem}:{action}", 0))
        if name.endswith(":batch") and value[b"id"] not in added:
            found[f"pull {value[b'path'].decode()}"] += int(value[b"pulls"])
            found[f"push {value[b'path'].decode()}"] += int(value[b"pushes"])
    return found
