"""`keywright audit` against `redis-cli --memkeys`, on a million keys: speed, memory, others' latency.

Both scan the same server in turns. The audit runs in a separate process, so that its memory can be measured.
Besides sizes, it matches every name, reads and decodes every value, and checks every declared expiry.
For strings `--memkeys` reads the memory of each; the audit reads one in sixteen and computes the rest.

    python -m benchmarks audit            # a million keys
    python -m benchmarks audit --quick    # fewer
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import perf_counter, sleep
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
import redis

from benchmarks.measuring import FULL, Effort, Result, Target, at_least, at_most
from keywright import (
    Counter,
    Database,
    Id,
    Key,
    Keyspace,
    Map,
    Set,
    Value,
    aconnect,
    connect,
    expires_in,
    gather_list,
)
from keywright.testing import RedisServer
from keywright.tools.audit import AuditOptions, audit
from keywright.tools.model import Model
from keywright.tools.pace import FULL_SPEED, GENTLE, Pace

KEYS = 1_000_000
QUICK_KEYS = 50_000
ROUNDS = 3
PAGE = 1_000
MEMKEYS, SCAN = "redis-cli --memkeys", "SCAN alone"
TARGETS: dict[str, Target] = {MEMKEYS: at_least(4)}
MOST_MB = 200.0
FELT_ROUNDS, FELT_SECONDS = 9, 0.5
SETTLED_SECONDS = 0.5
"""By then an audit rests, if it does: it works without rests at first."""
CHUNK = 10_000

space = Keyspace("bench-audit", "The keys of a typical application.", prefix="app")


class Person(msgspec.Struct):
    name: str
    mail: str
    visits: int


class Visit(msgspec.Struct):
    page: str
    seconds: int


class Profile(Value[Person], key="profile:<person>", space=space):
    """A person, as JSON."""

    person: Id


class Session(Value[Visit], key="session:<session>", space=space, expiry=expires_in(timedelta(days=1))):
    """A visit, as JSON; expires after a day."""

    session: Id


class Hits(Counter, key="hits:<page>", space=space):
    """The number of views of a page."""

    page: Id


class Tags(Set[Id], key="tags:<person>", space=space):
    """The tags of a person."""

    person: Id


class Settings(Map[Id, str], key="settings:<person>", space=space):
    """The settings of a person."""

    person: Id


MODEL = Model("bench-audit", (space,))
SHARES: tuple[tuple[type[Key], int], ...] = (
    (Profile, 45),
    (Session, 25),
    (Hits, 20),
    (Tags, 5),
    (Settings, 5),
)


class Run(NamedTuple):
    """One audit: keys a second, and the peak resident memory in MB."""

    rate: float
    resident_mb: float


def measure(server: RedisServer, effort: Effort = FULL) -> Iterator[Result]:
    keys = effort.pick(KEYS, QUICK_KEYS)
    server.call("FLUSHALL")
    with connect(server.url) as db:
        fill(db, keys)
    others: dict[str, list[float]] = {MEMKEYS: [], SCAN: []}
    audits = []
    for _ in range(ROUNDS):
        others[MEMKEYS].append(keys / memkeys_seconds(server.url))
        audits.append(_audited(server.url, FULL_SPEED))
        others[SCAN].append(keys / scan_seconds(server.url))
    rates = [run.rate for run in audits]
    for peer, theirs in others.items():
        yield Result.of(
            "audit",
            f"walk and check {keys:,} keys",
            "keys_per_second",
            rates,
            peer,
            theirs,
            TARGETS.get(peer),
            limit=peer == SCAN,
        )
    resident = [run.resident_mb for run in audits]
    bound = f"{MOST_MB:.0f} MB"
    yield Result.of("audit", "resident memory", "megabytes", resident, bound, [MOST_MB], at_most(1))
    yield from _felt(server, effort)
    server.call("FLUSHALL")


def fill(db: Database, keys: int) -> None:
    """Write the keys, in batches of each class."""
    for kind, share in SHARES:
        count = keys * share // 100
        for start in range(0, count, CHUNK):
            _written(db, kind, range(start, min(start + CHUNK, count)))


def _written(db: Database, kind: type[Key], numbers: range) -> None:
    ids = [f"n{number:09}" for number in numbers]
    if kind is Profile:
        db.run(Profile.set_many((i, Person(f"name of {i}", f"{i}@example.org", 7)) for i in ids))
    elif kind is Session:
        db.run(Session.set_many((i, Visit(f"/page/{i}", 12)) for i in ids))
    elif kind is Hits:
        db.run(gather_list(Hits(i).set(12345) for i in ids))
    elif kind is Tags:
        db.run(gather_list(Tags(i).add("red", "green", "blue") for i in ids))
    else:
        db.run(gather_list(Settings(i).put_many({"theme": "dark", "language": "en"}) for i in ids))


def _felt(server: RedisServer, effort: Effort) -> Iterator[Result]:
    """Yield the GET latency of another client (p99): alone and beside audits, by their pace, in turns."""
    paces = {"at its default pace": GENTLE, "at full speed": FULL_SPEED}
    alone: list[float] = []
    beside: dict[str, list[float]] = {subject: [] for subject in paces}
    for _ in range(effort.rounds(FELT_ROUNDS)):
        alone.append(_p99(server))
        for subject, pace in paces.items():
            with _auditing(server.url, pace):
                beside[subject].append(_p99(server))
    for subject, felt in beside.items():
        named = f"p99 of a GET beside an audit {subject}"
        target = at_most(2) if paces[subject] is GENTLE else None
        yield Result.of("audit", named, "microseconds", felt, "alone", alone, target)


def _p99(server: RedisServer) -> float:
    taken = []
    with redis.Redis.from_url(server.url) as client:
        end = perf_counter() + FELT_SECONDS
        while perf_counter() < end:
            begin = perf_counter()
            client.get("app:profile:n000000001")
            taken.append(perf_counter() - begin)
    return sorted(taken)[int(len(taken) * 0.99)] * 1e6


@contextmanager
def _auditing(url: str, pace: Pace) -> Iterator[None]:
    """Run audits in another process, one after the other, until the block ends."""
    with subprocess.Popen(_command("--again", url, pace), stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), "it ended before its first audit"
            sleep(SETTLED_SECONDS)
            yield
        finally:
            process.terminate()


def memkeys_seconds(url: str) -> float:
    """Return the seconds of `redis-cli --memkeys`."""
    parts = urlsplit(url)
    where = ["-s", parts.path] if parts.scheme == "unix" else ["-p", str(parts.port)]
    start = perf_counter()
    subprocess.run(["redis-cli", *where, "--memkeys"], check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - start


def scan_seconds(url: str) -> float:
    """Return the seconds of reading all names and nothing else."""
    with redis.Redis.from_url(url) as client:
        start, cursor = perf_counter(), None
        while cursor != 0:
            cursor, _ = client.scan(cursor or 0, count=PAGE)
        return perf_counter() - start


def _audited(url: str, pace: Pace) -> Run:
    done = subprocess.run(_command("--walk", url, pace), check=True, capture_output=True)
    return Run(*json.loads(done.stdout))


def _command(what: str, url: str, pace: Pace) -> list[str]:
    options = ["--full-speed"] if pace.full_speed else []
    return [sys.executable, "-m", "benchmarks.audit", what, url, *options]


def _walk(url: str, pace: Pace) -> None:
    async def run() -> float:
        async with aconnect(url) as db:
            report = await audit(db, MODEL, AuditOptions(pace=pace))
            assert not report.failed, report.counts
            return report.tally.names / report.seconds

    walked = asyncio.run(run())
    # Not ru_maxrss: that includes the memory of the parent process.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak is not None
    print(json.dumps([walked, int(peak[1]) / 1024]))


def _walk_again(url: str, pace: Pace) -> None:
    async def run() -> None:
        async with aconnect(url) as db:
            print("connected", flush=True)
            while True:
                await audit(db, MODEL, AuditOptions(pace=pace))

    asyncio.run(run())


WORKS = {"--walk": _walk, "--again": _walk_again}


def main() -> None:
    assert sys.argv[1] in WORKS, "this is the process of one audit: run `python -m benchmarks audit`"
    WORKS[sys.argv[1]](sys.argv[2], FULL_SPEED if "--full-speed" in sys.argv else GENTLE)


if __name__ == "__main__":
    main()
