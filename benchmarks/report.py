"""Results as JSON lines and as a table."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.latency import ROUNDS as LATENCY_ROUNDS
from benchmarks.measuring import ROUNDS, Figure, Result
from benchmarks.meetup import ROUNDS as MEETUP_ROUNDS
from benchmarks.messaging import ROUNDS as MESSAGING_ROUNDS

PACKAGES = ("keywright", "redis", "hiredis", "msgspec", "redis-om", "aio-pika", "faststream")
VERDICTS = {True: "met", False: "MISSED", None: "—"}


def json_line(result: Result) -> str:
    fields: dict[str, Any] = {
        "benchmark": result.benchmark,
        "subject": result.subject,
        result.unit: _rounded(result.ours.value),
        "spread": [_rounded(result.ours.low), _rounded(result.ours.high)],
        "peer": result.peer,
        "peer_value": _rounded(result.theirs.value),
        "peer_spread": [_rounded(result.theirs.low), _rounded(result.theirs.high)],
        "ratio": round(result.ratio, 2),
        "target": result.target,
        "met": result.met,
    }
    return msgspec.json.encode(fields).decode()


def summarise(results: Sequence[Result], server: str) -> None:
    """Print a table to standard error."""
    console = Console(stderr=True, width=150)
    table = Table("benchmark", "subject", "keywright", "peer", "figure", "ratio", "target", "")
    for result in results:
        table.add_row(
            result.benchmark,
            result.subject,
            _shown(result.ours, result.unit),
            result.peer,
            _shown(result.theirs, result.unit),
            f"{result.ratio:.2f}",
            _target(result),
            VERDICTS[result.met],
        )
    console.print(table)
    console.print(
        f"Medians of {ROUNDS} rounds, of {LATENCY_ROUNDS} for latency, {MESSAGING_ROUNDS} for messaging "
        f"and {MEETUP_ROUNDS} for meetup; "
        f"in brackets the lowest and highest."
    )
    console.print(f"Unix socket for all, loopback TCP for the cluster. {server}. {_machine()}")


def _machine() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"Python {platform.python_version()}, {os.cpu_count()} cores, {packages}."


def _shown(figure: Figure, unit: str) -> str:
    if unit == "microseconds":
        return f"{figure.value:.1f} µs ({figure.low:.1f}-{figure.high:.1f})"
    if unit == "commands":
        return f"{figure.value:.2f}"
    if unit == "bytes":
        return f"{figure.value:,.0f} bytes"
    return f"{figure.value:,.0f}/s ({figure.low:,.0f}-{figure.high:,.0f})"


def _target(result: Result) -> str:
    if result.target is None:
        return "—"
    return f"{'≤' if result.unit == 'microseconds' else '≥'} {result.target:g}"


def _rounded(value: float) -> float:
    return round(value, 1)
