"""Print the version of every distribution, or set it.

    python -m scripts.version                 # prints the version
    python -m scripts.version 0.2.0           # sets it, and dates the changelog

`[project] version` of the root's pyproject.toml is the version. The other distributions repeat it, and pin
each other to it: a source distribution is built from its own folder, so it cannot read a file of the root.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from datetime import UTC, date, datetime
from pathlib import Path

from packaging.version import InvalidVersion, Version
from scripts.lock import ROOT, projects

CHANGELOG = "CHANGELOG.md"
DECLARED = re.compile(r'(?m)^version = "([^"]+)"$')
PINNED = re.compile(r'("keywright[\w-]*(?:\[[\w,-]+\])?==)([^"]+)(")')
UNRELEASED = "## [Unreleased]\n"


def current(root: Path = ROOT) -> Version:
    """Return the version that the root declares."""
    return Version(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])


def change(root: Path, wanted: Version, today: date) -> list[Path]:
    """Set the version everywhere and date the changelog. Return the changed files, or raise ValueError."""
    if wanted <= current(root):
        raise ValueError(f"{wanted} is not later than {current(root)}, the present version.")
    changelog = root / CHANGELOG
    changed = {changelog: _released(changelog.read_text(), wanted, today)}
    for folder in projects(root):
        file = folder / "pyproject.toml"
        text, declared = DECLARED.subn(f'version = "{wanted}"', file.read_text())
        if declared != 1:
            raise ValueError(f"{file.relative_to(root)} declares {declared} versions, expected one.")
        changed[file] = PINNED.sub(rf"\g<1>{wanted}\g<3>", text)
    for file, text in changed.items():
        file.write_text(text)
    return list(changed)


def _released(text: str, wanted: Version, today: date) -> str:
    before, heading, after = text.partition(UNRELEASED)
    if not heading:
        raise ValueError(f"{CHANGELOG} has no heading {UNRELEASED.strip()!r}: add it.")
    if not after.partition("\n## [")[0].strip():
        raise ValueError(
            f"{CHANGELOG} has nothing under {UNRELEASED.strip()!r}: there is nothing to release."
        )
    return f"{before}{heading}\n## [{wanted}] - {today.isoformat()}\n{after}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("version", nargs="?", help="the version to set, as in PEP 440")
    wanted = parser.parse_args().version
    if wanted is None:
        print(current())
        return 0
    try:
        changed = change(ROOT, Version(wanted), datetime.now(UTC).date())
    except (InvalidVersion, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(*(file.relative_to(ROOT) for file in changed), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
