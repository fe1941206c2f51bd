"""The distributions of this repository agree with each other, and with the settings that list them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from scripts.lock import projects

from environments import ROOT
from keywright.tools.plugins import install_hint

FOLDERS = projects()


def read(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text())


PROJECTS = {folder: read(folder)["project"] for folder in FOLDERS}
SETTINGS = read(ROOT)["tool"]
VERSION = PROJECTS[ROOT]["version"]
each_folder = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


@each_folder
def test_all_distributions_share_one_version(folder: Path) -> None:
    assert PROJECTS[folder]["version"] == VERSION


@each_folder
def test_a_distribution_pins_the_others_to_the_same_version(folder: Path) -> None:
    own = [each for each in PROJECTS[folder]["dependencies"] if each.startswith("keywright")]
    assert [each for each in own if not each.endswith(f"=={VERSION}")] == []


@each_folder
def test_a_distribution_has_the_shape_of_the_others(folder: Path) -> None:
    project = PROJECTS[folder]
    package = folder / "src" / project["name"].replace("-", "_")
    assert (package / "py.typed").is_file()
    assert (folder / "README.md").is_file()
    assert (folder / "tests").is_dir()
    assert (project["requires-python"], project["license"]) == (">=3.11", "Apache-2.0")


def test_every_distribution_is_checked_typed_and_measured() -> None:
    packages = [project["name"].replace("-", "_") for project in PROJECTS.values()]
    sources = [str((folder / "src").relative_to(ROOT)) for folder in FOLDERS]
    assert sorted(SETTINGS["importlinter"]["root_packages"]) == sorted(packages)
    assert set(sources) <= set(SETTINGS["mypy"]["mypy_path"])
    assert sorted(SETTINGS["slipcover"]["source"]) == sorted(sources)


@each_folder
def test_a_distribution_says_what_it_runs_on_in_the_words_of_the_others(folder: Path) -> None:
    """What differs are topics and frameworks."""
    own, root = (
        {each for each in PROJECTS[one]["classifiers"] if not each.startswith(("Topic ::", "Framework ::"))}
        for one in (folder, ROOT)
    )
    assert own == root
    supported = {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13, 14)}
    assert {each for each in own if ":: 3." in each} == supported
    assert PROJECTS[folder].get("urls") == PROJECTS[ROOT].get("urls")


@each_folder
def test_a_system_that_is_missing_can_be_named(folder: Path) -> None:
    project = PROJECTS[folder]
    groups = project.get("entry-points", {})
    published = ("keywright.models", "keywright.catalogue", "keywright.commands")
    names = [name for group in published for name in groups.get(group, ())]
    assert [install_hint(name) for name in names] == [f"pip install {project['name']}"] * len(names)


def test_every_extra_of_the_library_is_part_of_all() -> None:
    extras = PROJECTS[ROOT]["optional-dependencies"]
    (everything,) = extras["all"]
    named = re.fullmatch(r"keywright\[(.+)\]", everything)
    assert named is not None
    assert set(named[1].split(",")) == extras.keys() - {"all"}


def test_the_changelog_knows_the_version() -> None:
    headings = re.findall(
        r"^## \[(.+?)\]( - \d{4}-\d\d-\d\d)?$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert headings[0] == ("Unreleased", "")
    assert VERSION in [version for version, date in headings if date]
