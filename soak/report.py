"""The page of a soak: a table of scenarios, one of faults, and what callers saw."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version

from soak.scenario import Result

__all__ = ["page", "versions"]

_INTRODUCTION = """\
<!-- Made by `python -m soak --report FILE`. Run it again instead of changing this file. -->

# Reliability

What happened to data while servers, connections and processes failed. The soak runs all systems at once,
each with its own servers on loopback and a modest load, and injects one fault after another into each of
them. Every attempt of a load is in a log: tried, acknowledged, refused, or in doubt. At the end a judge,
which imports nothing of Keywright, reads Redis, PostgreSQL and RabbitMQ raw and compares them with the
logs.

```
make soak                                       # five minutes
make soak ARGS="--minutes 60"                   # longer
make soak ARGS="--only cluster sentinel"        # some of it
make soak ARGS="--minutes 30 --report docs/reliability.md"
```

It exits with 1 if the judge finds something, a program ends by itself, a process or file is left, or
memory grows. [Outages](outages.md) explains the settings that decide about losses.

- **Acknowledged**: writes, messages and events whose success the caller or the platform was assured of.
- **Lost**: acknowledged, and not there. **Doubled**: a write that must not be repeated, applied twice.
  **Violations**: half a relation, an index that disagrees, a write that is there though its caller got an
  error that promises the contrary. All three must be 0.
- **Allowed**: lost where the configuration does not promise to keep it: failover without WAIT, eviction.
  Counted only.
- **Repeated**: messages that a worker got again. Delivery is at least once.
- **Errors**: errors that callers saw, or HTTP refusals. The load went on after each.
"""

_LIMITS = """\
## What it does not show

- All servers are on one machine, where a replica is less than a millisecond behind. On a network a
  failover without WAIT loses more.
- Connections are cut, refused, delayed and slowed down. TCP keeps the order of bytes, so only connections
  overtake each other.
- `appendfsync always` and PostgreSQL survive killed processes here; power cuts are not tried.
- The clock of a Redis server jumps; clocks of the Python processes do not.
"""


def versions() -> dict[str, str]:
    """Return the versions of everything that took part."""
    found = {
        "Python": platform.python_version(),
        "Keywright": version("keywright"),
        "redis-py": version("redis"),
    }
    for name, command in (
        ("Redis", ["redis-server", "--version"]),
        ("PostgreSQL", ["postgres", "--version"]),
        ("RabbitMQ", ["dpkg-query", "-W", "-f", "${Version}", "rabbitmq-server"]),
        ("Linux", ["uname", "-r"]),
    ):
        if shutil.which(command[0]):
            said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
            if number := re.search(r"\d+(\.\d+)+", said):
                found[name] = number[0]
    return found


def page(results: Sequence[Result], *, minutes: float, at: datetime) -> str:
    """Return the page in Markdown."""
    took_part = ", ".join(f"{name} {number}" for name, number in versions().items())
    passed = sum(result.passed for result in results)
    verdict = f"{passed} of {len(results)} scenarios passed."
    lines = [
        _INTRODUCTION,
        "## The last run",
        "",
        f"{at:%Y-%m-%d}, {minutes:g} minutes. {took_part}. {verdict}",
        "",
    ]
    lines += [*_scenarios(results), "", *_faults(results), "", *_errors(results), "", *_memory(results), ""]
    lines += [*_remarks(results), _LIMITS]
    return "\n".join(lines)


def _scenarios(results: Sequence[Result]) -> list[str]:
    columns = ("scenario", "faults", "acknowledged", "lost", "doubled", "violations", "allowed", "repeated")
    rows = [f"| {' | '.join((*columns, 'errors', 'verdict'))} |", "| --- " * (len(columns) + 2) + "|"]
    for result in results:
        found = result.findings
        counts = (
            *(sum(result.faults.values()), found.acknowledged, found.lost, found.doubled, found.violations),
            *(found.allowed_lost, found.repeated, sum(found.errors.values())),
        )
        numbers = " | ".join(f"{count:,}" for count in counts)
        rows.append(f"| {result.title} | {numbers} | {'passed' if result.passed else '**failed**'} |")
    return rows


def _faults(results: Sequence[Result]) -> list[str]:
    rows = ["| scenario | faults injected and survived |", "| --- | --- |"]
    for result in results:
        listed = ", ".join(f"{name} {count}" for name, count in sorted(result.faults.items()))
        rows.append(f"| {result.name} | {listed or 'none'} |")
    return rows


def _errors(results: Sequence[Result]) -> list[str]:
    rows = ["| scenario | errors that callers saw |", "| --- | --- |"]
    for result in results:
        errors = sorted(result.findings.errors.items(), key=lambda item: -item[1])
        if errors:
            rows.append(f"| {result.name} | {', '.join(f'{name} {count:,}' for name, count in errors)} |")
    return rows


def _memory(results: Sequence[Result]) -> list[str]:
    """The process of each name that lived longest. The trend is a line fitted by least squares."""
    rows = ["| process | minutes observed | MB after the warm-up | trend, MB |", "| --- | --- | --- | --- |"]
    for result in results:
        longest = {each.name: each for each in sorted(result.memory, key=lambda each: each.minutes)}
        rows += [
            f"| {result.name}: {name} | {each.minutes:g} | {each.begin_mb:g} | {each.grown_mb:+g} |"
            for name, each in sorted(longest.items())
        ]
    if len(rows) == 2:
        return ["No process lived long enough to show a trend of its memory."]
    return rows


def _remarks(results: Sequence[Result]) -> list[str]:
    lines = []
    for result in results:
        notes = [*result.findings.notes, *(f"not available: {each}" for each in result.unavailable)]
        faults = [*result.problems, *result.findings.details]
        lines += [f"- {result.name}: {text}" for text in notes]
        lines += [f"- **{result.name}**: {' '.join(text.split())}" for text in faults]
    return ["## Remarks", "", *lines, ""] if lines else []
