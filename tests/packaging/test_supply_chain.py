"""Installed packages: pinned by hash for development, bounded below by advisories, vendored unchanged."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from scripts import advisories, lock

from environments import ROOT

LOCKS = [lock.LOCK, *lock.groups().values()]
VENDORED = [ROOT / "src/keywright/explorer/static/vendor", ROOT / "website/vendor"]

# The first release without the newest advisory that reaches a part of it which we, or a dependency, may run.
SAFE = {
    "aiohttp": ("3.14.1", "CVE-2026-34993, CVE-2026-47265 and the others that 3.14.1 fixes"),
    "cryptography": ("50", "CVE-2026-69247; 44.0.0 also carries CVE-2024-12797"),
    "h11": ("0.16", "CVE-2025-43859"),
    "idna": ("3.15", "CVE-2026-45409"),
    "jinja2": ("3.1.6", "CVE-2025-27516"),
    "redis": ("4.5.4", "CVE-2023-28858, CVE-2023-28859"),
    "starlette": ("1.3.1", "CVE-2025-62727, CVE-2026-48710, CVE-2026-54283"),
}


def declared() -> Iterator[tuple[str, Requirement]]:
    """Every dependency that an installed package of ours asks for, with the name of that package."""
    for folder in lock.projects():
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        tables = [project.get("dependencies", []), *project.get("optional-dependencies", {}).values()]
        for text in chain.from_iterable(tables):
            yield project["name"], Requirement(text)


def pinned() -> dict[str, list[Version]]:
    """The versions that the lock file holds; a package has several where Pythons differ."""
    found: dict[str, list[Version]] = {}
    for name, version in re.findall(r"^([a-z0-9.-]+)==([^ \\\n]+)", lock.LOCK.read_text(), re.MULTILINE):
        found.setdefault(name, []).append(Version(version))
    return found


@pytest.mark.parametrize("name", sorted(SAFE))
def test_a_vulnerable_release_satisfies_no_requirement(name: str) -> None:
    safe, advisory = SAFE[name]
    asked = [(owner, each) for owner, each in declared() if each.name == name]
    assert asked, f"{name} is not asked for any more: remove it from the table"
    for owner, requirement in asked:
        bounds = [
            Version(each.version) for each in requirement.specifier if each.operator in (">=", "==", "~=")
        ]
        assert bounds, f"{owner} asks for {requirement} without a lower bound"
        assert max(bounds) >= Version(safe), f"{owner} permits {requirement}: {advisory}"


@pytest.mark.parametrize("group", [None, *lock.groups()])
def test_a_lock_file_follows_the_dependency_tables(group: str | None) -> None:
    file = lock.LOCK if group is None else lock.groups()[group]
    written = file.read_text().partition("\n")[0].removeprefix("# ")
    assert written == lock.digest(group), "a dependency table changed: run make lock"


@pytest.mark.parametrize("file", LOCKS, ids=lambda file: file.name)
def test_every_pinned_package_has_a_hash(file: Path) -> None:
    entries = re.split(r"\n(?=\S)", file.read_text().partition("setup.sh.\n")[2])
    assert len(entries) > (100 if file == lock.LOCK else 4)
    assert [entry.partition("\n")[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_pinned_versions_satisfy_what_is_declared() -> None:
    locked = pinned()
    for owner, requirement in declared():
        if requirement.name.startswith("keywright"):
            continue
        versions = locked[requirement.name.replace("_", "-")]
        assert any(requirement.specifier.contains(each) for each in versions), (owner, str(requirement))


@pytest.mark.parametrize("folder", VENDORED, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_vendored_files_are_what_was_published(folder: Path) -> None:
    table = (folder / "README.md").read_text()
    hashes = dict(re.findall(r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|", table, re.MULTILINE))
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    del files["README.md"]
    assert hashes == files


def test_an_advisory_fails_the_look_up() -> None:
    vulnerable = {
        "name": "h11",
        "version": "0.14.0",
        "vulns": [{"id": "CVE-2025-43859", "fix_versions": ["0.16.0"]}],
    }
    lines, sound = advisories.judged([vulnerable, {"name": "idna", "version": "3.20", "vulns": []}])
    assert not sound
    assert lines == [
        "advisories: 2 packages audited, 1 known vulnerabilities",
        "h11 0.14.0: CVE-2025-43859, fixed in 0.16.0",
    ]


def test_a_package_that_was_not_looked_up_is_not_called_sound() -> None:
    skipped = {"name": "h11", "skip_reason": "not found"}
    assert advisories.judged([skipped])[0] == [
        "advisories: not audited, because the database cannot be reached from this machine"
    ]
    lines, sound = advisories.judged([skipped, {"name": "idna", "version": "3.20", "vulns": []}])
    assert sound
    assert lines[-1] == "not audited: h11"


@pytest.mark.parametrize("file", LOCKS, ids=lambda file: file.name)
def test_a_lock_file_names_no_index_and_no_folder(file: Path) -> None:
    assert not re.search(
        r"https?://|file://|--(extra-)?index-url|--find-links|^-e ", file.read_text(), re.MULTILINE
    )


def test_every_environment_of_programs_has_one_lock_file() -> None:
    assert sorted(lock.groups().values()) == sorted(lock.FOREIGN.iterdir())


def test_the_lock_file_lies_where_the_set_up_looks() -> None:
    assert lock.LOCK == ROOT / "requirements-dev.txt"
    assert f"--requirement {lock.LOCK.name}" in Path(ROOT, "scripts/setup.sh").read_text()
