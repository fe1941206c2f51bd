"""Print the line coverage of each distribution from slipcover's JSON, and fail below the floor.

    python scripts/coverage.py build/coverage.json [--floor]

The floors are whole per cents, less than two below what the tests reached when they were last set: a run
more or less must not decide. Raise them when coverage rises. The demo's processes are not measured.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

FLOORS = {
    "keywright": 96,
    "keywright_service": 98,
    "keywright_messaging": 96,
    "keywright_discord": 98,
    "keywright_openmod": 95,
    "keywright_registry": 97,
    "keywright_meetup": 97,
    "keywright_catalogue": 95,
    "keywright_demo": 65,
}


def main(path: str, *options: str) -> int:
    covered: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for name, file in json.loads(Path(path).read_text())["files"].items():
        package = name.partition("src/")[2].partition("/")[0]
        covered[package] += len(file["executed_lines"])
        lines[package] += len(file["executed_lines"]) + len(file["missing_lines"])
    low = []
    for package, floor in FLOORS.items():
        reached = 100 * covered[package] / max(lines[package], 1)
        sys.stdout.write(f"{package:20} {reached:5.1f} % of {lines[package]:6,} lines (floor {floor} %)\n")
        low += [package] if reached < floor else []
    if low and "--floor" in options:
        sys.stderr.write(f"coverage is below the floor: {', '.join(low)}. Test what was added.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
