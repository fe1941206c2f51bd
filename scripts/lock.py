"""Write requirements-dev.txt: what `make test` installs, each file pinned by version and hash.

Also tests/foreign/requirements/*.txt: what `make foreign` installs, one for each group `foreign-…`.

    python scripts/lock.py [--upgrade]

Versions that are locked stay unless they no longer satisfy pyproject.toml, or with --upgrade. One file
serves every supported Python and platform. The first line holds a digest of the dependency tables, by
which a test finds a lock file that was not written again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-dev.txt"
FOREIGN = ROOT / "tests" / "foreign" / "requirements"
APART = "foreign-"
OLDEST_PYTHON = "3.11"


def projects(root: Path = ROOT) -> list[Path]:
    """Return the folders of the packages that are installed from this repository."""
    return [root, *sorted(path.parent for path in root.glob("systems/*/pyproject.toml")), root / "demo"]


def groups() -> dict[str, Path]:
    """Return the dependency groups that have an environment of their own, with their lock files."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    names = [name for name in declared if name.startswith(APART)]
    return {name: FOREIGN / f"{name.removeprefix(APART)}.txt" for name in names}


def digest(group: str | None = None) -> str:
    """Return the digest of every table that decides what is installed; with `group` of this one."""
    if group is not None:
        wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"][group]
        return hashlib.sha256(json.dumps(wanted).encode()).hexdigest()
    tables = []
    for folder in projects():
        declared = tomllib.loads((folder / "pyproject.toml").read_text())
        project = declared["project"]
        tables.append(
            [
                project["name"],
                project.get("dependencies", []),
                project.get("optional-dependencies", {}),
                declared.get("dependency-groups", {}),
            ]
        )
    return hashlib.sha256(json.dumps(tables, sort_keys=True).encode()).hexdigest()


def write(*options: str) -> None:
    """Write every lock file."""
    names = [
        tomllib.loads((folder / "pyproject.toml").read_text())["project"]["name"] for folder in projects()
    ]
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "wanted.in")
        wanted.write_text(
            "".join(f"-e {path}[all]\n" if path == ROOT else f"-e {path}\n" for path in projects())
        )
        excluded = [part for name in names for part in ("--no-emit-package", name)]
        _compile(LOCK, digest(), [str(wanted), *_group("dev"), *excluded, *options])
    for group, locked in groups().items():
        _compile(locked, digest(group), [*_group(group), *options])


def _group(name: str) -> tuple[str, str]:
    return "--group", f"{ROOT / 'pyproject.toml'}:{name}"


def _compile(lock: Path, tables: str, arguments: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "locked.txt")
        if lock.exists():
            written.write_text(lock.read_text())
        subprocess.run(
            [
                *(sys.executable, "-m", "uv", "pip", "compile", *arguments),
                *("--universal", "--python-version", OLDEST_PYTHON),
                *("--generate-hashes", "--no-header", "--no-annotate", "--quiet"),
                *("--output-file", str(written)),
            ],
            check=True,
            cwd=ROOT,
        )
        pinned = written.read_text().partition("\n# The following packages were excluded")[0]
    lock.parent.mkdir(exist_ok=True)
    lock.write_text(
        f"# {tables}\n# Written by `make lock`. Installed by scripts/setup.sh.\n{pinned.rstrip()}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    write(*(["--upgrade"] if parser.parse_args().upgrade else []))


if __name__ == "__main__":
    main()
