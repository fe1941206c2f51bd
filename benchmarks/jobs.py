"""`keywright audit --jobs`: keys a second of 1, 2 and 4 processes, on a server, a cluster and a dump.

Each audit goes at full speed in a process of its own, in turns with the other numbers of jobs, and includes
the start of its workers. Servers and processes share the cores of one machine, so this shows what sharing
costs, and what it brings as far as there are cores. The names that one process shares out, by its own
processor time, say how many workers it can feed.

    python -m benchmarks jobs            # a million keys
    python -m benchmarks jobs --quick    # fewer
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

from benchmarks.audit import MODEL, fill, space
from benchmarks.masters import masters
from benchmarks.measuring import FULL, Effort, Result
from benchmarks.rdb import saved
from keywright import connect
from keywright.testing import RedisServer
from keywright.tools.audit import AuditOptions, audit
from keywright.tools.jobs import JobPlan
from keywright.tools.pace import FULL_SPEED
from keywright.tools.sources import DUMP, opened_source

KEYS, QUICK_KEYS = 1_000_000, 20_000
ROUNDS = 3
JOBS = (1, 2, 4)


class Run(NamedTuple):
    """One audit: keys a second, by the clock and by the processor time of the first process."""

    rate: float
    shared: float


def measure(effort: Effort = FULL) -> Iterator[Result]:
    keys = effort.pick(KEYS, QUICK_KEYS)
    for place, opened in (("a server", _server), ("a cluster of 3 masters", _cluster), ("a dump", _dump)):
        with opened(keys) as source:
            runs: dict[int, list[Run]] = {jobs: [] for jobs in JOBS}
            for _ in range(effort.rounds(ROUNDS)):
                for jobs in JOBS:
                    runs[jobs].append(_in_process(source, jobs))
        alone = [run.rate for run in runs[1]]
        for jobs in JOBS[1:]:
            rates = [run.rate for run in runs[jobs]]
            subject = f"audit of {keys:,} keys on {place}, {jobs} jobs"
            yield Result.of("jobs", subject, "keys_per_second", rates, "one job", alone)
        shared = [run.shared for run in runs[2]]
        subject = f"names of {place} that one process shares out, by its processor time"
        yield Result.of("jobs", subject, "keys_per_second", shared, "one job audits", alone)


@contextmanager
def _server(keys: int) -> Iterator[str]:
    with RedisServer(options={"appendonly": "no"}) as server:
        _filled(server.url, keys)
        yield server.url


@contextmanager
def _cluster(keys: int) -> Iterator[str]:
    with masters(3) as url:
        _filled(url, keys)
        yield url


@contextmanager
def _dump(keys: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "dump.rdb")
        with _server(keys) as url:
            saved(url, path)
        yield f"{DUMP}{path}"


def _filled(url: str, keys: int) -> None:
    with connect(url) as db:
        fill(db, keys)


def _in_process(source: str, jobs: int) -> Run:
    command = [sys.executable, "-m", "benchmarks.jobs", source, str(jobs)]
    return Run(*json.loads(subprocess.run(command, check=True, capture_output=True).stdout))


async def _audit(source: str, jobs: int) -> int:
    plan = None if jobs == 1 else JobPlan(jobs, "benchmarks.audit:space", source)
    async with opened_source(source, space.bind()) as db:
        report = await audit(db, MODEL, AuditOptions(pace=FULL_SPEED), plan=plan)
    assert not report.failed, report.counts
    return report.tally.names


def main() -> None:
    assert len(sys.argv) == 3, "this is a process of `python -m benchmarks jobs`"
    start, busy = perf_counter(), process_time()
    keys = asyncio.run(_audit(sys.argv[1], int(sys.argv[2])))
    taken = perf_counter() - start, process_time() - busy
    print(json.dumps([keys / taken[0], keys / taken[1]]))


if __name__ == "__main__":
    main()
