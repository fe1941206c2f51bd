"""Build the wheel and the source distribution of every package of this repository, and check them.

    python -m scripts.distributions [--output dist]

The metadata is held against the rules of PyPI (packaging and trove-classifiers, which PyPI uses). A wheel
that is built from the source distribution must be the same, byte for byte. SHA256SUMS lists what was built.
"""

from __future__ import annotations

import argparse
import configparser
import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from packaging.metadata import Metadata
from scripts.lock import ROOT, projects
from trove_classifiers import classifiers as known_classifiers
from trove_classifiers import deprecated_classifiers

BUILDERS = 4
SECONDS = 120
SUMS = "SHA256SUMS"
# Folders of a wheel's source that its users do not need, or that are of one machine.
UNWANTED = ("tests/", "__pycache__/", ".venv", ".git/")


@dataclass(frozen=True)
class Built:
    """The two files of one distribution."""

    wheel: Path
    sdist: Path

    @property
    def name(self) -> str:
        return self.wheel.name.partition("-")[0].replace("_", "-")


def build_wheel(source: Path, output: Path) -> Path:
    """Build a wheel with the hatchling of this environment, so that nothing is fetched."""
    return _hatchling(source, output, "wheel", "*.whl")


def build(source: Path, output: Path) -> Built:
    """Build both files into a folder of their own below `output`."""
    output.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=output))
    return Built(build_wheel(source, folder), _hatchling(source, folder, "sdist", "*.tar.gz"))


def build_all(sources: Sequence[Path], output: Path) -> list[Built]:
    with ThreadPoolExecutor(BUILDERS) as pool:
        return list(pool.map(lambda source: build(source, output), sources))


def _hatchling(source: Path, output: Path, target: str, pattern: str) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(output), "--target", target]
    before = set(output.glob(pattern))
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"{source} cannot be built: {done.stderr}")
    (file,) = set(output.glob(pattern)) - before
    return file


def problems(built: Built) -> Iterator[str]:
    """Yield what is wrong with the two files of a distribution."""
    with zipfile.ZipFile(built.wheel) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    yield from wheel_problems(contents)
    yield from sdist_problems(built)


def wheel_problems(contents: Mapping[str, bytes]) -> Iterator[str]:
    (info,) = {name.partition("/")[0] for name in contents if ".dist-info/" in name}
    yield from metadata_problems(contents[f"{info}/METADATA"])
    packages = sorted({name.partition("/")[0] for name in contents} - {info})
    if packages != [info.partition("-")[0]]:
        yield f"the packages are {packages}, expected the one that is named as the distribution"
    for package in packages:
        if f"{package}/py.typed" not in contents:
            yield f"{package} has no py.typed, so type checkers ignore its types"
    if not contents.get(f"{info}/licenses/LICENSE"):
        yield "there is no licence file"
    yield from (f"{name} does not belong in a wheel" for name in _unwanted(contents))
    yield from _unknown_entry_points(contents, info)


def metadata_problems(raw: bytes) -> Iterator[str]:
    """Yield what PyPI would refuse, and what it would show badly."""
    try:
        metadata = Metadata.from_email(raw, validate=True)
    except ExceptionGroup as group:
        yield from (str(each) for each in group.exceptions)
        return
    given = set(metadata.classifiers or ())
    for classifier in sorted(given - known_classifiers - deprecated_classifiers.keys()):
        yield f"{classifier!r} is not a classifier of PyPI"
    for classifier in sorted(given & deprecated_classifiers.keys()):
        yield f"the classifier {classifier!r} is deprecated"
    for field in ("summary", "description", "license_expression", "requires_python"):
        if not getattr(metadata, field):
            yield f"the metadata has no {field}"
    if metadata.description_content_type != "text/markdown":
        yield f"the description is {metadata.description_content_type}, expected text/markdown"
    for requirement in metadata.requires_dist or ():
        if requirement.url:
            yield f"the requirement {requirement} names an address, which PyPI refuses"
    for label, url in (metadata.project_urls or {}).items():
        if not url.startswith("https://"):
            yield f"the address of {label} is not HTTPS: {url}"


def _unwanted(names: Iterable[str]) -> list[str]:
    return [name for name in sorted(names) if any(part in name for part in UNWANTED)]


def _unknown_entry_points(contents: Mapping[str, bytes], info: str) -> Iterator[str]:
    listed = configparser.ConfigParser(delimiters="=")
    listed.optionxform = str  # type: ignore[assignment, method-assign]  # names keep their case
    listed.read_string(contents.get(f"{info}/entry_points.txt", b"").decode())
    for group in listed.sections():
        for name, target in listed[group].items():
            path = target.partition(":")[0].replace(".", "/")
            if not {f"{path}.py", f"{path}/__init__.py"} & contents.keys():
                yield f"the entry point {name} of {group} names {target}, which the wheel does not have"


def sdist_problems(built: Built) -> Iterator[str]:
    with tarfile.open(built.sdist) as archive, tempfile.TemporaryDirectory() as folder:
        links = [member.name for member in archive.getmembers() if not (member.isfile() or member.isdir())]
        if links:
            yield f"{links} are links, which lead nowhere once the file is unpacked elsewhere"
            return
        archive.extractall(folder, filter="data")
        (source,) = Path(folder).iterdir()
        files = [str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()]
        yield from (f"{name} does not belong in a source distribution" for name in _unwanted(files))
        yield from (f"there is no {name}" for name in ("LICENSE", "README.md") if name not in files)
        if build_wheel(source, Path(folder, "wheel")).read_bytes() != built.wheel.read_bytes():
            yield "the wheel that is built from the source distribution differs from the one built directly"


def write_sums(output: Path, built: Sequence[Built]) -> Path:
    """Write the digests in the form of sha256sum, and move the files of all folders together."""
    lines = []
    for each in built:
        for file in (each.wheel, each.sdist):
            moved = file.rename(output / file.name)
            lines.append(f"{hashlib.sha256(moved.read_bytes()).hexdigest()}  {moved.name}\n")
        each.wheel.parent.rmdir()
    sums = output / SUMS
    sums.write_text("".join(sorted(lines, key=lambda line: line.partition("  ")[2])))
    return sums


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="an empty folder, or a new one")
    output = parser.parse_args().output.resolve()
    if output.exists() and any(output.iterdir()):
        print(f"error: {output} is not empty: remove it first.", file=sys.stderr)
        return 2
    built = build_all(projects(), output)
    with ThreadPoolExecutor(BUILDERS) as pool:
        found = list(pool.map(lambda each: list(problems(each)), built))
    for each, wrong in zip(built, found, strict=True):
        sizes = f"{each.wheel.stat().st_size:>9,} {each.sdist.stat().st_size:>9,}"
        print(f"{each.name:22} {sizes}  {'; '.join(wrong) or 'valid'}")
    print(write_sums(output, built))
    return 1 if any(found) else 0


if __name__ == "__main__":
    sys.exit(main())
