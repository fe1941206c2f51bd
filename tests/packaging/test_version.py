"""One command sets the version of every distribution."""

from __future__ import annotations

import re
import shutil
from datetime import date
from pathlib import Path

import pytest
from packaging.version import Version
from scripts import lock, version

from environments import ROOT

TODAY = date(2026, 12, 24)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files of this repository that have a version."""
    for folder in lock.projects():
        file = folder.relative_to(ROOT) / "pyproject.toml"
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    shutil.copy(ROOT / version.CHANGELOG, tmp_path)
    return tmp_path


def contents(checkout: Path) -> dict[Path, str]:
    return {path: path.read_text() for path in checkout.rglob("*") if path.is_file()}


def test_a_version_replaces_the_former_one_in_every_file(checkout: Path) -> None:
    former = str(version.current(checkout))
    changed = version.change(checkout, Version("97.1.0"), TODAY)
    assert set(changed) == set(contents(checkout))
    assert version.current(checkout) == Version("97.1.0")
    for folder in lock.projects(checkout):
        text = (folder / "pyproject.toml").read_text()
        assert f'version = "{former}"' not in text
        assert f"=={former}" not in text
        assert text.count("==97.1.0") == (
            ROOT / folder.relative_to(checkout) / "pyproject.toml"
        ).read_text().count(f"=={former}")


def test_the_changes_since_the_last_release_get_the_version_and_the_date(checkout: Path) -> None:
    before = (checkout / version.CHANGELOG).read_text().partition(version.UNRELEASED)[2]
    version.change(checkout, Version("97.1.0"), TODAY)
    after = (checkout / version.CHANGELOG).read_text().partition(version.UNRELEASED)[2]
    assert after == f"\n## [97.1.0] - 2026-12-24\n{before}"


@pytest.mark.parametrize(
    ("wanted", "file", "text", "problem"),
    [
        ("0.0.1", None, "", "0.0.1 is not later than"),
        ("97.1.0", "CHANGELOG.md", "# Changelog\n", "has no heading"),
        (
            "97.1.0",
            "CHANGELOG.md",
            "## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n",
            "there is nothing to release",
        ),
        ("97.1.0", "demo/pyproject.toml", "[project]\n", "declares 0 versions, expected one"),
    ],
)
def test_a_version_that_cannot_be_set_changes_nothing(
    checkout: Path, wanted: str, file: str | None, text: str, problem: str
) -> None:
    if file:
        (checkout / file).write_text(text)
    before = contents(checkout)
    with pytest.raises(ValueError, match=problem):
        version.change(checkout, Version(wanted), TODAY)
    assert contents(checkout) == before


def test_the_checklist_of_a_release_names_commands_that_exist() -> None:
    checklist = (ROOT / "docs" / "release.md").read_text().partition("## Checklist")[2]
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"`make (\w+)", checklist))
    assert {"check", "lock", "sbom"} <= targets
    assert {target for target in targets if f"\n{target}: " not in makefile} == set()
    (script,) = re.findall(r"python -m scripts\.(\w+) X\.Y\.Z", checklist)
    assert (ROOT / "scripts" / f"{script}.py").is_file()
