"""Reading a dump of a million small keys: framing, a full audit, and memory; beside programs in C.

Each run is in a process of its own, in turns with its peer. The keys are those of `benchmarks.audit`. The
peers do less: `redis-cli --memkeys` asks a live server for names, types and sizes; `redis-check-rdb` frames
the dump and decodes nothing, but computes the checksum.

    python -m benchmarks rdb            # a million keys
    python -m benchmarks rdb --quick    # fewer
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import redis

from benchmarks.audit import KEYS, MEMKEYS, MODEL, QUICK_KEYS, fill, memkeys_seconds
from benchmarks.measuring import FULL, Effort, Result, at_least, at_most
from keywright import connect
from keywright.testing import RedisServer
from keywright.tools.audit import audit
from keywright.tools.rdb import DumpDatabase
from keywright.tools.rdb.files import open_dump
from keywright.tools.rdb.frames import Frames

ROUNDS = 3
FRAMED, AUDITED = 400_000.0, 150_000.0
MOST_MB = 100.0


class Run(NamedTuple):
    """One run: keys a second by the clock and by the processor, and the peak resident memory in MB."""

    rate: float
    by_processor: float
    resident_mb: float


def measure(server: RedisServer, effort: Effort = FULL) -> Iterator[Result]:
    keys = effort.pick(KEYS, QUICK_KEYS)
    server.call("FLUSHALL")
    with connect(server.url) as db:
        fill(db, keys)
    with tempfile.TemporaryDirectory() as folder:
        dump = saved(server.url, Path(folder, "dump.rdb"))
        checks, frames, audits, live = [], [], [], []
        for _ in range(ROUNDS):
            checks.append(_checked(dump, keys))
            frames.append(_in_process("frame", dump))
            live.append(keys / memkeys_seconds(server.url))
            audits.append(_in_process("audit", dump))
    framed, found, busy = (
        [run.rate for run in frames],
        [run.rate for run in audits],
        [run.by_processor for run in audits],
    )
    check = "redis-check-rdb"
    for subject, ours, peer, theirs, target in (
        ("framing", framed, check, checks, None),
        ("framing", framed, f"{FRAMED:,.0f} a second", [FRAMED] * ROUNDS, at_least(1)),
        ("audit", found, MEMKEYS, live, None),
        ("audit", found, f"{AUDITED:,.0f} a second", [AUDITED] * ROUNDS, at_least(1)),
        ("audit by processor time", busy, f"{AUDITED:,.0f} a second", [AUDITED] * ROUNDS, at_least(1)),
    ):
        named = f"{subject} of a dump of {keys:,} keys"
        yield Result.of("rdb", named, "keys_per_second", ours, peer, theirs, target)
    resident = [run.resident_mb for run in audits]
    bound, most = f"{MOST_MB:.0f} MB", [MOST_MB] * ROUNDS
    yield Result.of("rdb", "resident memory of an audit", "megabytes", resident, bound, most, at_most(1))


def saved(url: str, path: Path) -> Path:
    with redis.Redis.from_url(url) as client:
        client.save()
        options: dict[str, Any] = {**client.config_get("dir"), **client.config_get("dbfilename")}
    shutil.copy(Path(options["dir"], options["dbfilename"]), path)
    return path


def _checked(dump: Path, keys: int) -> float:
    start = perf_counter()
    subprocess.run(["redis-check-rdb", str(dump)], check=True, stdout=subprocess.DEVNULL)
    return keys / (perf_counter() - start)


def _in_process(what: str, dump: Path) -> Run:
    command = [sys.executable, "-m", "benchmarks.rdb", f"--{what}", str(dump)]
    return Run(*json.loads(subprocess.run(command, check=True, capture_output=True).stdout))


def _frame(dump: Path) -> int:
    return sum(map(len, Frames(open_dump(dump)).pages(0, 0)))


async def _audit(dump: Path) -> int:
    async with DumpDatabase(dump) as db:
        report = await audit(db, MODEL)
    assert not report.failed, report.counts
    return report.tally.names


def main() -> None:
    assert sys.argv[1] in ("--frame", "--audit"), "this is a process of `python -m benchmarks rdb`"
    start, busy = perf_counter(), process_time()
    path = Path(sys.argv[2])
    keys = _frame(path) if sys.argv[1] == "--frame" else asyncio.run(_audit(path))
    taken = perf_counter() - start, process_time() - busy
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak is not None
    print(json.dumps([keys / taken[0], keys / taken[1], int(peak[1]) / 1024]))


if __name__ == "__main__":
    main()
