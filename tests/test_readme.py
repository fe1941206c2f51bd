"""The README's code works when pasted, and names only commands that exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from invoking import invoke_keywright

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


def test_every_model_of_the_table_is_one_of_the_tools() -> None:
    named = re.findall(r"^\| \[\w+\]\(systems/[^|]*\|[^|]*\|([^|]*)\|", README.read_text(), re.MULTILINE)
    models = re.findall(r"`([^`]+)`", " ".join(named))
    assert "drc" in models
    for model in models:
        done = invoke_keywright("check", model)
        assert done.exit_code == 0, done.output


def install_commands() -> list[tuple[Path, list[str]]]:
    """Return the requirements of every `pip install` of a page, with the page."""
    pages = [page for page in ROOT.rglob("*.md") if ".venv" not in page.parts and page.name != "CHANGELOG.md"]
    found = re.compile(r"pip install ((?:\\\n|[^`#&\n])+)")
    return [
        (page, shlex.split(each.replace("\\\n", " ")))
        for page in pages
        for each in found.findall(page.read_text())
    ]


def test_install_commands_work_in_a_checkout_without_a_package_index_that_has_keywright() -> None:
    commands = install_commands()
    assert commands
    for page, requirements in commands:
        folders = {each.partition("[")[0] for each in requirements}
        assert not [each for each in folders if each.startswith("keywright")], page
        systems = {Path(each).name for each in folders if "systems/" in each and "*" not in each}
        for name in systems:
            project = tomllib.loads((ROOT / "systems" / name / "pyproject.toml").read_text())["project"]
            needed = {re.split(r"[^\w-]", each)[0] for each in project["dependencies"]}
            others = {each.removeprefix("keywright-") for each in needed if each.startswith("keywright-")}
            assert others <= systems, f"{page}: {name} needs {others - systems}"


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
