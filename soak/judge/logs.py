"""The logs of loads: a line for each attempt, `outcome<TAB>kind<TAB>item<TAB>error`.

A `try` is written first. Then `ok` was acknowledged, `doubt` may have been applied or not, `no` was refused:
nothing was applied. A try without an outcome is of a process that was killed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["DOUBT", "KILLED", "NO", "OK", "TRY", "Attempt", "attempts"]

TRY, OK, DOUBT, NO = "try", "ok", "doubt", "no"
KILLED = "(killed)"


class Attempt(NamedTuple):
    outcome: str
    kind: str
    item: str
    error: str


def attempts(logs: Iterable[Path]) -> Iterator[Attempt]:
    """Yield the outcome of each attempt; one that has none is a doubt."""
    for log in logs:
        tried: dict[tuple[str, str], Attempt] = {}
        for attempt in _lines(log):
            if attempt.outcome == TRY:
                tried[attempt.kind, attempt.item] = attempt
            else:
                tried.pop((attempt.kind, attempt.item), None)
                yield attempt
        yield from (Attempt(DOUBT, kind, item, KILLED) for kind, item in tried)


def _lines(log: Path) -> Iterator[Attempt]:
    """Yield the whole lines of a log; a killed process may have left half a line at the end."""
    if not log.exists():
        return
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            parts = line.rstrip("\n").split("\t")
            if line.endswith("\n") and len(parts) == len(Attempt._fields):
                yield Attempt(*parts)
