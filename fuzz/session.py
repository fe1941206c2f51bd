"""One session of libFuzzer on one target, in a process of its own and bounded."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Session", "fuzz"]

ROOT = Path(__file__).parents[1]

# One input may cost this much at most; more is a fault, like an exception. The longest known takes 7 s of
# CPU: a header may announce 2**32 elements, and hiredis makes and frees a list of them. The machine may
# be busy.
SECONDS_FOR_ONE_INPUT = 60
MEGABYTES = 1024
LONGEST_INPUT = 16 * 1024
# Beyond the time given: imports, instrumentation and the seeds.
SECONDS_BESIDE = 300


@dataclass(frozen=True)
class Session:
    """What a session reported."""

    passed: bool
    output: str

    @property
    def inputs(self) -> int:
        """Return how many inputs were tried; 0 if it ended before the first."""
        counts = re.findall(r"number_of_executed_units: (\d+)", self.output)
        return int(counts[-1]) if counts else 0


def fuzz(module: str, seeds: Path, kept: Path, *, seconds: int = 0, runs: int = -1) -> Session:
    """Fuzz `one_input` of a module for a time or a number of runs. Inputs that reach new code are kept."""
    kept.mkdir(parents=True, exist_ok=True)
    options = {
        "max_total_time": seconds,
        "runs": runs,
        "timeout": SECONDS_FOR_ONE_INPUT,
        "rss_limit_mb": MEGABYTES,
        "max_len": LONGEST_INPUT,
        "print_final_stats": 1,
        "artifact_prefix": f"{kept}-",
    }
    done = subprocess.run(
        [
            *(sys.executable, "-m", "fuzz.process", module, str(kept), str(seeds)),
            *(f"-{option}={value}" for option, value in options.items()),
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=seconds + SECONDS_BESIDE,
    )
    lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    return Session(
        done.returncode == 0,
        "\n".join(line for line in lines if not line.startswith(("INFO: Instrumenting", "WARNING: Failed"))),
    )
