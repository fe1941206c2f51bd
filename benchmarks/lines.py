"""The JSON lines of a run: what was measured, where, and how busy the machine was."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeAlias

import msgspec

from benchmarks.measuring import Effort, Figure, Point, Result

PACKAGES = (
    "redis",
    "hiredis",
    "msgspec",
    "coredis",
    "valkey-glide",
    "valkey-glide-sync",
    "redis-om",
    "walrus",
    "aio-pika",
    "faststream",
)
DIGITS = 4


class Run(msgspec.Struct, frozen=True, tag="run", kw_only=True):
    """The first line: when and where."""

    day: str
    commit: str
    quick: bool
    most_rounds: int | None
    processor: str
    cores: int
    python: str
    server: str
    packages: dict[str, str]


class Part(msgspec.Struct, frozen=True, tag="part", kw_only=True):
    """The line after the results of one benchmark: how long it took, and the load averages around it.

    The load of a benchmark at work on two processes is about 2. Anything above is other work of the machine.
    """

    benchmark: str
    placement: str
    seconds: float
    load_before: float
    load_after: float
    left_out: tuple[str, ...] = ()
    failed: str | None = None


Line: TypeAlias = Run | Result | Point | Part


def this_run(server: str, effort: Effort) -> Run:
    return Run(
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        commit=_commit(),
        quick=effort.quick,
        most_rounds=effort.most_rounds,
        processor=_processor(),
        cores=os.cpu_count() or 1,
        python=platform.python_version(),
        server=server,
        packages={name: found for name in PACKAGES if (found := _version(name))},
    )


def json_line(line: Line) -> str:
    """Return a line as JSON, figures with four significant digits."""
    return msgspec.json.encode(_rounded(msgspec.to_builtins(line))).decode()


def read_lines(texts: Iterable[str]) -> list[Line]:
    decode = msgspec.json.Decoder(Line).decode
    return [decode(text) for text in texts if text.strip()]


def save_lines(lines: Sequence[Line], file: Path) -> None:
    file.write_text("".join(f"{json_line(line)}\n" for line in lines), "utf-8")


def load_now() -> float:
    return os.getloadavg()[0]


def _rounded(value: object) -> object:
    match value:
        case float():
            return float(f"{value:.{DIGITS}g}")
        case dict():
            return {name: _rounded(each) for name, each in value.items()}
        case list() | tuple():
            return [_rounded(each) for each in value]
    return value


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


__all__ = ["Figure", "Line", "Part", "Run", "json_line", "load_now", "read_lines", "save_lines", "this_run"]
