"""Wheels and source distributions of every package: checked as PyPI does, and one builds the other."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from scripts import distributions, lock
from scripts.distributions import Built, build_all, problems, sdist_problems, wheel_problems, write_sums


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> list[Built]:
    return build_all(lock.projects(), tmp_path_factory.mktemp("dist"))


@pytest.fixture
def service(every: list[Built]) -> Built:
    """The smallest package that others need."""
    (found,) = (each for each in every if each.name == "keywright-service")
    return found


@pytest.fixture
def contents(service: Built) -> dict[str, bytes]:
    with zipfile.ZipFile(service.wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_both_files_of_every_distribution_are_valid_and_its_wheel_can_be_built_from_the_other(
    every: list[Built],
) -> None:
    assert len(every) == len(lock.projects())
    assert {each.name: list(problems(each)) for each in every} == {each.name: [] for each in every}


def with_metadata(contents: Mapping[str, bytes], old: bytes, new: bytes) -> dict[str, bytes]:
    name = next(each for each in contents if each.endswith("/METADATA"))
    assert old in contents[name]
    return {**contents, name: contents[name].replace(old, new, 1)}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b"\nVersion: ", b"\nVersion: x", "is invalid for 'version'"),
        (b"Classifier: Typing", b"Classifier: Typed", "is not a classifier of PyPI"),
        (
            b"Classifier: Typing :: Typed",
            b"Classifier: Natural Language :: Ukranian",
            "is deprecated",
        ),
        (b"Requires-Dist: h11>=0.16", b"Requires-Dist: h11 @ file:///h11.whl", "names an address"),
        (b"License-Expression: Apache-2.0\n", b"", "no license_expression"),
        (b"\nSummary: ", b"\nProject-URL: Home, http://localhost\nSummary: ", "is not HTTPS"),
        (b"Content-Type: text/markdown", b"Content-Type: text/plain", "expected text/markdown"),
    ],
)
def test_metadata_that_pypi_would_refuse_is_found(
    contents: dict[str, bytes], old: bytes, new: bytes, problem: str
) -> None:
    (found,) = wheel_problems(with_metadata(contents, old, new))
    assert problem in found


@pytest.mark.parametrize(
    ("missing", "problem"),
    [("keywright_service/py.typed", "has no py.typed"), ("/licenses/LICENSE", "no licence file")],
)
def test_a_wheel_without_a_file_that_it_needs_is_found(
    contents: dict[str, bytes], missing: str, problem: str
) -> None:
    kept = {name: text for name, text in contents.items() if not name.endswith(missing)}
    assert len(kept) == len(contents) - 1
    (found,) = wheel_problems(kept)
    assert problem in found


def test_a_file_that_does_not_belong_in_a_wheel_is_found(contents: dict[str, bytes]) -> None:
    (found,) = wheel_problems({**contents, "keywright_service/tests/test_tasks.py": b""})
    assert found == "keywright_service/tests/test_tasks.py does not belong in a wheel"


def test_an_entry_point_that_the_wheel_does_not_have_is_found(contents: dict[str, bytes]) -> None:
    (info,) = {name.partition("/")[0] for name in contents if ".dist-info/" in name}
    shop, run = b"shop = keywright_service.shop:shop", b"run = keywright_service:run"
    listed = b"[keywright.models]\n%s\n[console_scripts]\n%s\n" % (shop, run)
    (found,) = wheel_problems({**contents, f"{info}/entry_points.txt": listed})
    assert "the entry point shop of keywright.models" in found


def repacked(built: Built, folder: Path, change: Mapping[str, bytes | None], link: str = "") -> Built:
    """Return the distribution with another sdist: files changed, left out, or replaced by a link."""
    sdist = folder / built.sdist.name
    with tarfile.open(built.sdist) as old, tarfile.open(sdist, "w:gz") as new:
        for member in old.getmembers():
            name = member.name.partition("/")[2]
            source = old.extractfile(member)
            assert source is not None
            text = change.get(name, source.read())
            if text is None:
                continue
            member.size = len(text)
            if name == link:
                member.type, member.linkname, member.size = tarfile.SYMTYPE, "../../LICENSE", 0
            new.addfile(member, io.BytesIO(text))
    return Built(built.wheel, sdist)


def test_a_source_distribution_that_builds_another_wheel_is_found(service: Built, tmp_path: Path) -> None:
    changed = repacked(service, tmp_path, {"src/keywright_service/py.typed": b"partial\n"})
    (found,) = sdist_problems(changed)
    assert "differs from the one built directly" in found


def test_a_source_distribution_without_a_readable_licence_is_found(service: Built, tmp_path: Path) -> None:
    """Hatchling packs a link as a link: eight links to the licence of the root would lead nowhere."""
    (found,) = sdist_problems(repacked(service, tmp_path, {}, link="LICENSE"))
    assert "are links, which lead nowhere" in found


def test_the_sums_name_every_file(service: Built, tmp_path: Path) -> None:
    folder = tmp_path / "dist" / "one"
    folder.mkdir(parents=True)
    copies = [folder / file.name for file in (service.wheel, service.sdist)]
    for copy, file in zip(copies, (service.wheel, service.sdist), strict=True):
        copy.write_bytes(file.read_bytes())
    sums = write_sums(folder.parent, [Built(*copies)]).read_text().splitlines()
    assert [line.partition("  ")[2] for line in sums] == sorted(copy.name for copy in copies)
    assert sorted(path.name for path in folder.parent.iterdir()) == sorted(
        [distributions.SUMS, *(copy.name for copy in copies)]
    )


def test_every_distribution_has_the_licence_of_the_repository() -> None:
    licences = {(folder / "LICENSE").read_bytes() for folder in lock.projects()}
    assert len(licences) == 1
