"""Write requirements-dev.txt: what `make test` installs, each file pinned by version and hash.

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
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-dev.txt"
OLDEST_PYTHON = "3.11"


def projects() -> list[Path]:
    """Return the folders of the packages that are installed from this repository."""
    return [ROOT, *sorted(path.parent for path in ROOT.glob("systems/*/pyproject.toml")), ROOT / "demo"]


def digest() -> str:
    """Return the digest of every table that decides what is installed."""
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
    names = [
        tomllib.loads((folder / "pyproject.toml").read_text())["project"]["name"] for folder in projects()
    ]
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "wanted.in")
        written = Path(folder, "locked.txt")
        wanted.write_text(
            "".join(f"-e {path}[all]\n" if path == ROOT else f"-e {path}\n" for path in projects())
        )
        if LOCK.exists():
            written.write_text(LOCK.read_text())
        subprocess.run(
            [
                *(sys.executable, "-m", "uv", "pip", "compile", str(wanted)),
                *(
                    "--group",
                    f"{ROOT / 'pyproject.toml'}:dev",
                    "--universal",
                    "--python-version",
                    OLDEST_PYTHON,
                ),
                *("--generate-hashes", "--no-header", "--no-annotate", "--quiet"),
                *(part for name in names for part in ("--no-emit-package", name)),
                *("--output-file", str(written), *options),
            ],
            check=True,
            cwd=ROOT,
        )
        pinned = written.read_text().partition("\n# The following packages were excluded")[0]
    LOCK.write_text(
        f"# {digest()}\n# Written by `make lock`. Installed by scripts/setup.sh.\n{pinned.rstrip()}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    write(*(["--upgrade"] if parser.parse_args().upgrade else []))


if __name__ == "__main__":
    main()
