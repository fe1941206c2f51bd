"""Runs one cell: its environment, its servers, its tests, and the counts of their outcome."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import msgspec

from matrix.cells import SELECTIONS, Cell
from matrix.debian import NotAvailableError
from matrix.programs import python_program, server_variables

__all__ = ["Result", "run"]

ROOT = Path(__file__).parents[1]
_SERVED = re.compile(r"^keywright: servers started: (.*)$", re.MULTILINE)
_VERSION = re.compile(r"(\S+ [\d.]+) \(\d+\)")  # without those that a test chose
_HOUR = 3600


class Result(msgspec.Struct):
    """What happened to a cell. Without a date it did not run, and `reason` says why."""

    reason: str = ""
    date: str = ""
    system: str = ""
    python: str = ""
    servers: list[str] = []
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: int = 0
    failures: list[str] = []


def run(cell: Cell, folder: Path, *, workers: int, python: Path | None = None) -> Result:
    """Run the tests of a cell, in an environment of its own or in that of `python`.

    What cannot be installed is reported as not available.
    """
    try:
        python = python or environment(cell.python, folder)
        variables = server_variables(cell.wanted, folder) if cell.wanted else {}
    except NotAvailableError as error:
        return Result(reason=f"not available: {error}")
    if cell.wanted:
        variables["KEYWRIGHT_TEST_VERSIONS"] = cell.wanted
    label = cell.name.replace(" ", "-")
    report = folder / f"{label}.xml"
    report.unlink(missing_ok=True)
    spread = ["--numprocesses", str(workers), "--dist", "loadfile"] if workers else []
    options = ["--quiet", "--tb=short", "-p", "no:cacheprovider", f"--junitxml={report}", *spread]
    done = _pytest(python, [*options, *SELECTIONS[cell.selection]], variables)
    (folder / f"{label}.log").write_text(done, encoding="utf-8")
    return _counted(cell, python, report, done)


def environment(version: str, folder: Path) -> Path:
    """Return the Python of a virtual environment with the library, the systems and the tools of the tests."""
    python = folder / f"python{version}" / "bin" / "python"
    ready = python.parents[1] / "ready"
    if ready.exists():
        return python
    _checked(python_program(version, folder), "-m", "venv", "--clear", "--without-pip", python.parents[1])
    systems = sorted(path.parent for path in ROOT.glob("systems/*/pyproject.toml"))
    # The demo asks for all extras of the systems.
    sources = [f"--editable={path}" for path in (f"{ROOT}[all]", *systems, ROOT / "demo")]
    options = ["--quiet", f"--python={python}", "--group", f"{ROOT / 'pyproject.toml'}:test"]
    _checked(sys.executable, "-m", "uv", "pip", "install", *options, *sources)
    ready.touch()
    return python


def _checked(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise NotAvailableError(f"{Path(command[0]).name}: {done.stderr.strip().splitlines()[-1]}")


def _pytest(python: Path, arguments: list[str], variables: Mapping[str, str]) -> str:
    own = ("KEYWRIGHT_", "PYTEST_", "PYTHON")
    outside = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    done = subprocess.run(
        ["nice", "-n", "10", python, "-m", "pytest", *arguments],
        cwd=ROOT,
        env={**outside, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=_HOUR,
    )
    return done.stdout


def _counted(cell: Cell, python: Path, report: Path, output: str) -> Result:
    if not report.exists():
        return Result(reason=f"pytest did not finish: {output.strip().splitlines()[-1]}")
    cases = list(ElementTree.parse(report).iter("testcase"))
    bad = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = sum(case.find("skipped") is not None for case in cases)
    served = _SERVED.search(output)
    suite = next(ElementTree.parse(report).iter("testsuite"))
    result = Result(
        date=datetime.now(UTC).date().isoformat(),
        system=f"{platform.system()} {platform.machine()}",
        python=_version(python),
        servers=sorted(_VERSION.findall(served[1])) if served else [],
        passed=len(cases) - len(bad) - skipped,
        failed=len(bad),
        skipped=skipped,
        seconds=round(float(suite.get("time", 0))),
        failures=[f"{case.get('classname')}.{case.get('name')}" for case in bad],
    )
    # The tests fail on a wrong server by themselves; this is for a run in which none started one.
    if cell.wanted and not any(f"{each}.".startswith(f"{cell.wanted}.") for each in result.servers):
        return Result(reason=f"no test was served by {cell.wanted}, only by {', '.join(result.servers)}")
    return result


def _version(python: Path) -> str:
    shown = subprocess.run([python, "--version"], capture_output=True, text=True, check=True).stdout
    return shown.split()[1]
