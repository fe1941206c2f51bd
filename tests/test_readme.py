"""The README is short, and its install commands and models exist. tests/test_pages.py runs its code."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

from doc_pages import blocks_of
from invoking import invoke_keywright

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def test_it_is_short_and_nothing_is_scrolled_out_of_view() -> None:
    lines = README.read_text().splitlines()
    assert len(lines) < 150
    code = [line for block in blocks_of(README.read_text()) for line in block.text.splitlines()]
    assert [line for line in code if len(line) > 100] == []


def test_the_first_program_has_few_lines() -> None:
    program = next(block.text for block in blocks_of(README.read_text()) if block.language == "python")
    assert len([line for line in program.splitlines() if line.strip()]) <= 30


def test_every_model_of_the_table_is_one_of_the_tools() -> None:
    named = re.findall(r"^\| \[\w+\]\(systems/[^|]*\|[^|]*\|([^|]*)\|", README.read_text(), re.MULTILINE)
    models = re.findall(r"`([^`]+)`", " ".join(named))
    assert "drc" in models
    for model in models:
        done = invoke_keywright("check", model)
        assert done.exit_code == 0, done.output


def install_commands() -> list[tuple[Path, list[str]]]:
    """Return the requirements of every `pip install` of a page, with the page."""
    skipped = {".venv", "build", "CHANGELOG.md", "release.md"}  # which is for when an index has keywright
    pages = [page for page in ROOT.rglob("*.md") if not skipped & set(page.parts)]
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
