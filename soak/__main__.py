"""`python -m soak [--minutes N] [--only NAME…] [--report FILE]`: run the soak and print its tables."""

from __future__ import annotations

import argparse
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

from soak.report import page
from soak.runner import run_all
from soak.scenarios import SCENARIOS

MINUTES = 5.0
FOLDER = Path(__file__).parents[1] / "build" / "soak"


def main() -> int:
    options = _options()
    # In the background of a shell SIGINT is ignored, unless a handler is set.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    print(
        f"{len(options.only)} scenarios, {options.minutes:g} minutes of faults; logs in {options.folder}",
        flush=True,
    )
    try:
        results = run_all(options.only, options.minutes * 60, options.folder)
    except KeyboardInterrupt:
        print("interrupted; all servers and programs were ended", flush=True)
        return 130
    text = page(results, minutes=options.minutes, at=datetime.now(UTC))
    print(text[text.index("## The last run") :], flush=True)
    if options.report:
        options.report.write_text(text, "utf-8")
    return 0 if all(result.passed for result in results) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m soak", description="All systems under load and faults.")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="how long faults are injected (5)")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=SCENARIOS,
        default=list(SCENARIOS),
        metavar="NAME",
        help=f"some of: {', '.join(SCENARIOS)}",
    )
    parser.add_argument("--report", type=Path, help="write the page to this file, as docs/reliability.md")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where logs go; it is emptied first")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
