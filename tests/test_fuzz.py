"""The fuzz targets: their seeds pass, a short run passes, and a planted fault is found."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from fuzz.session import fuzz
from fuzz.targets import NAMES, SEEDS

RUNS = 2000
PLANTED = """
def one_input(data):
    if len(data) > 3:
        raise ValueError("a planted fault")
"""


def seeds() -> list[Path]:
    return sorted(SEEDS.glob("*/*"))


def test_every_target_has_seeds() -> None:
    assert {path.parent.name for path in seeds()} == set(NAMES)


@pytest.mark.parametrize("path", seeds(), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_seed_raises_nothing(path: Path) -> None:
    importlib.import_module(f"fuzz.targets.{path.parent.name}").one_input(path.read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_a_short_run_finds_nothing(name: str, tmp_path: Path) -> None:
    session = fuzz(f"fuzz.targets.{name}", SEEDS / name, tmp_path / name, runs=RUNS)
    assert session.passed, session.output
    assert session.inputs >= RUNS


def test_a_fault_fails_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted.py").write_text(PLANTED)
    monkeypatch.syspath_prepend(tmp_path)
    session = fuzz("planted", SEEDS / "etf", tmp_path / "kept", runs=RUNS)
    assert not session.passed
    assert "a planted fault" in session.output
