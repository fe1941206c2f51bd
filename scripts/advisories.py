"""Look up every locked package in the advisories of PyPI, with pip-audit.

    python scripts/advisories.py

Exit code 1 for a known vulnerability. pip-audit calls a package that it could not look up sound; this
script counts it as not audited, so that a machine without the database claims nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parents[1] / "requirements-dev.txt"
SECONDS = 120


def judged(dependencies: Iterable[Mapping[str, Any]]) -> tuple[list[str], bool]:
    """Return lines for pip-audit's answers, and whether no vulnerability is known."""
    audited = 0
    skipped = []
    found = []
    for each in dependencies:
        if "skip_reason" in each:
            skipped.append(each["name"])
            continue
        audited += 1
        for advisory in each["vulns"]:
            fixed = ", ".join(advisory["fix_versions"]) or "no release"
            found.append(f"{each['name']} {each['version']}: {advisory['id']}, fixed in {fixed}")
    if not audited:
        return ["advisories: not audited, because the database cannot be reached from this machine"], True
    lines = [f"advisories: {audited} packages audited, {len(found)} known vulnerabilities", *found]
    if skipped:
        lines.append(f"not audited: {', '.join(skipped)}")
    return lines, not found


def main() -> int:
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(LOCK)]
    options = ["--require-hashes", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=SECONDS, check=False)
    try:
        answers = json.loads(done.stdout)["dependencies"]
    except ValueError:
        reason = done.stderr.strip().rpartition("\n")[2]
        answers = []
        print(f"advisories: pip-audit ended with {done.returncode}: {reason[:200]}")
    lines, sound = judged(answers)
    print(*lines, sep="\n")
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
