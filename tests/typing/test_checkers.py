"""Type checkers accept right use and refuse wrong use, on exactly the lines that say so.

A line that must be refused ends with `# E: mypy[code] pyright[rule]`; a comma separates several.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ACCEPTED = sorted(HERE.glob("accept_*.py"))
REJECTED = sorted(HERE.glob("reject_*.py"))
MARKER = re.compile(r"# E: mypy\[(?P<mypy>[\w,-]+)\] pyright\[(?P<pyright>\w+(?:,\w+)*)\]$")
MYPY_LINE = re.compile(r"(?P<file>[^:]+):(?P<line>\d+): error: .*\[(?P<code>[\w-]+)\]$")

Refusals = dict[tuple[str, int], set[str]]


def _expected(checker: str) -> Refusals:
    return {
        (path.name, number): set(found[checker].split(","))
        for path in REJECTED
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if (found := MARKER.search(line))
    }


def _run(*command: str) -> str:
    variables = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "PYRIGHT_PYTHON_GLOBAL_NODE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def _refused_by_mypy() -> Refusals:
    refused: Refusals = {}
    for line in _run("mypy", *map(str, [*ACCEPTED, *REJECTED])).splitlines():
        if found := MYPY_LINE.match(line):
            refused.setdefault((Path(found["file"]).name, int(found["line"])), set()).add(found["code"])
    return refused


def _refused_by_pyright() -> Refusals:
    report = json.loads(_run("pyright", "-p", str(HERE), "--pythonpath", sys.executable, "--outputjson"))
    assert report["summary"]["filesAnalyzed"] >= len(ACCEPTED) + len(REJECTED)
    refused: Refusals = {}
    for each in report["generalDiagnostics"]:
        if each["severity"] == "error":
            place = (Path(each["file"]).name, each["range"]["start"]["line"] + 1)
            refused.setdefault(place, set()).add(each["rule"])
    return refused


def test_mypy_refuses_exactly_the_marked_lines() -> None:
    assert _refused_by_mypy() == _expected("mypy")


def test_pyright_refuses_exactly_the_marked_lines() -> None:
    assert _refused_by_pyright() == _expected("pyright")


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_what_the_checkers_accept_also_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)
    runpy.run_path(str(path))
