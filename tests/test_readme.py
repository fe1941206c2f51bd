"""The README's code works when pasted, and names only commands that exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def blocks(language: str, document: Path = README) -> list[str]:
    fenced = document.read_text().split("```")[1::2]
    return [block.partition("\n")[2] for block in fenced if block.partition("\n")[0] == language]


def test_the_python_code_runs_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    script = tmp_path / "pasted.py"
    script.write_text("\n".join(blocks("python")))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "Dungeon night" in done.stdout
    assert done.stdout.splitlines()[-1] == "s1"


def test_the_code_of_the_migrating_page_runs_as_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    script = tmp_path / "pasted.py"
    script.write_text("\n".join(blocks("python", ROOT / "docs/migrating.md")))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["{'b7'}", "old: 199", "swept: 199 left: 0", "may be dropped: 3"]


def test_the_first_screen_has_at_most_thirty_lines_of_code() -> None:
    assert len([line for line in blocks("python")[0].splitlines() if line.strip()]) <= 30


def test_every_command_it_shows_exists() -> None:
    shown = set(re.findall(r"^keywright (\w+)", "\n".join(blocks("")), re.MULTILINE))
    listed = subprocess.run(
        [sys.executable, "-c", "from keywright.cli import main; main()", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert shown
    assert all(re.search(rf"^\W*{command}\b", listed, re.MULTILINE) for command in shown)
