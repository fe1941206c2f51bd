"""`make bench`, or `python -m benchmarks [NAME…]`: run all benchmarks, or the named ones."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import BENCHMARKS, run
from benchmarks.lines import Line, Part, Run, save_lines
from benchmarks.measuring import Effort, Point, Result
from benchmarks.notation import figure, ratio, target
from benchmarks.page import FIGURES, ROOT, make
from benchmarks.placement import Placement


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    effort = Effort(options.quick, options.largest, options.rounds)
    names = options.names or [name for name, each in BENCHMARKS.items() if each.quick or not effort.quick]
    lines: list[Line] = []
    for line in run(names, effort, Placement[options.placement.upper()]):
        lines.append(line)
        print(shown(line), flush=True)
        if options.json and isinstance(line, Part):
            save_lines(lines, options.json)
    if options.page:
        save_lines(lines, FIGURES)
        make(FIGURES, ROOT)


def shown(line: Line) -> str:
    """Return one line for the terminal."""
    match line:
        case Run():
            return f"{line.day}, {line.commit}, {line.processor}, {line.cores} cores, {line.server}"
        case Part():
            load = f"load {line.load_before:.1f} to {line.load_after:.1f}"
            out = f", not installed: {', '.join(line.left_out)}" if line.left_out else ""
            failed = f", FAILED: {line.failed}" if line.failed else ""
            return f"-- {line.benchmark}: {line.seconds:.0f} s, {load}{out}{failed}"
        case Result():
            verdict = {True: "met", False: "NOT MET", None: ""}[line.met]
            sides = f"{figure(line.ours, line.unit)}, {line.peer} {figure(line.theirs, line.unit)}"
            return (
                f"{line.benchmark} {line.subject}: {sides}: {ratio(line)} {target(line)} {verdict}".rstrip()
            )
        case Point():
            return f"{line.growth} at {line.size:,}: {line.series} {figure(line.figure, line.unit)}"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Keywright next to its peers.")
    known = "; ".join(f"{name}: {each.about}" for name, each in BENCHMARKS.items())
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all if none. {known}")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and sizes, under two minutes")
    parser.add_argument("--rounds", type=int, metavar="N", help="at most so many rounds of each comparison")
    parser.add_argument("--largest", action="store_true", help="also a keyspace of ten million keys")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="save JSON lines, for `python -m benchmarks.page`"
    )
    parser.add_argument(
        "--page", action="store_true", help="save them in the repository and make docs/benchmarks.md"
    )
    parser.add_argument(
        "--placement",
        choices=[placement.name.lower() for placement in Placement],
        default="free",
        help="pin client and server to the same core or apart; latency and registry try all",
    )
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in BENCHMARKS:
            parser.error(f"there is no benchmark {name!r}: choose from {', '.join(BENCHMARKS)}")
    return options


if __name__ == "__main__":
    main(sys.argv[1:])
