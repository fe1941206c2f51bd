"""`python -m matrix [CELL…] [--workers N]`: run all cells or the named ones; renew docs/compatibility.md."""

from __future__ import annotations

import argparse
import sys

from matrix.cells import CELLS
from matrix.report import PAGE, page, read_results, write_results
from matrix.runs import ROOT, run

FOLDER = ROOT / "build" / "matrix"


def main() -> int:
    options = _options()
    FOLDER.mkdir(parents=True, exist_ok=True)
    results = read_results()
    failed = 0
    for cell in CELLS:
        if options.cells and cell.name not in options.cells:
            continue
        results[cell.name] = result = run(cell, FOLDER, workers=options.workers)
        failed += result.failed > 0 or not (result.date or result.reason.startswith("not available"))
        counts = f"{result.passed} passed, {result.failed} failed, {result.skipped} skipped"
        print(f"{cell.name}: {counts if result.date else result.reason}", flush=True)
        write_results(results)
        PAGE.write_text(page(results), encoding="utf-8")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    names = [cell.name for cell in CELLS]
    parser = argparse.ArgumentParser(prog="python -m matrix", description=__doc__)
    parser.add_argument("cells", nargs="*", metavar="CELL", choices=[[], *names], help=", ".join(names))
    parser.add_argument("--workers", type=int, default=2, help="processes of pytest; 0 for none")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
