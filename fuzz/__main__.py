"""`python -m fuzz [TARGET…] [--seconds N | --runs N]`: fuzz all targets, or the named ones, in turn.

Committed seeds are in fuzz/corpora/TARGET. Inputs that reach new code are kept in build/fuzz/TARGET for the
next run, and an input that fails in build/fuzz: add it to the seeds when the fault is mended.
"""

from __future__ import annotations

import argparse
import sys

from fuzz.session import ROOT, fuzz
from fuzz.targets import NAMES, SEEDS

KEPT = ROOT / "build" / "fuzz"


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz the parsers.")
    parser.add_argument("names", nargs="*", metavar="TARGET", help=", ".join(NAMES))
    bound = parser.add_mutually_exclusive_group()
    bound.add_argument("--seconds", type=int, default=60, help="for each target (60)")
    bound.add_argument("--runs", type=int, default=-1, help="for each target, instead of a time")
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"{min(unknown)} is not a target; the targets are {', '.join(NAMES)}")
    failed = False
    for name in options.names or NAMES:
        seconds = 0 if options.runs >= 0 else options.seconds
        session = fuzz(f"fuzz.targets.{name}", SEEDS / name, KEPT / name, seconds=seconds, runs=options.runs)
        print(f"{name}: {session.inputs:,} inputs, {'passed' if session.passed else 'FAILED'}", flush=True)
        if not session.passed:
            failed = True
            print(session.output[-6000:])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
