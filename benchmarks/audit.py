"""`keywright audit` against `redis-cli --memkeys`, on a million keys: speed, memory, others' latency.

Both scan the same server in turns. The audit runs in a separate process, so that its memory can be measured.
Besides sizes, it matches every name, reads and decodes every value, and checks every declared expiry.
For strings `--memkeys` reads the memory of each; the audit reads one in sixteen and computes the rest.

    python -m benchmarks audit          # a million keys
    python -m benchmarks.audit 100000   # fewer, alone
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import perf_counter
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
import redis

from benchmarks.measuring import Figure, Result
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

KEYS = 1_000_000
ROUNDS = 3
FASTER = 3.0
MOST_MB = 200.0
PACED = 50_000
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


def measure(server: RedisServer, keys: int = KEYS) -> Iterator[Result]:
    with connect(server.url) as db:
        fill(db, keys)
    memkeys, audits = [], []
    for _ in range(ROUNDS):
        memkeys.append(_memkeys(server.url, keys))
        audits.append(_audited(server.url, None))
    rates = Figure.of([run.rate for run in audits])
    peer = "redis-cli --memkeys"
    yield Result("audit", "walk and check", "keys a second", rates, peer, Figure.of(memkeys), FASTER)
    resident = Figure.of([run.resident_mb for run in audits])
    bound = Figure(MOST_MB, MOST_MB, MOST_MB)
    yield Result("audit", "resident memory", "MB", resident, "the bound", bound, None)
    yield from _felt(server)


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


def _felt(server: RedisServer) -> Iterator[Result]:
    """Yield the GET latency of another client (p99): alone, during an audit, and with a rate limit."""
    alone = _p99(server, None)
    for subject, rate in (("beside an audit", None), (f"beside --max-rate {PACED}", PACED)):
        with _auditing(server.url, rate):
            felt = _p99(server, 2.0)
        yield Result("audit", f"p99 of a GET {subject}", "microseconds", felt, "alone", alone, None)


def _p99(server: RedisServer, seconds: float | None) -> Figure:
    rounds = []
    with redis.Redis.from_url(server.url) as client:
        for _ in range(3):
            taken = []
            end = perf_counter() + (seconds or 2.0) / 3
            while perf_counter() < end:
                begin = perf_counter()
                client.get("app:profile:n000000001")
                taken.append(perf_counter() - begin)
            rounds.append(sorted(taken)[int(len(taken) * 0.99)] * 1e6)
    return Figure.of(rounds)


@contextmanager
def _auditing(url: str, rate: int | None) -> Iterator[None]:
    """Run audits in another process, one after the other, until the block ends."""
    stop = threading.Event()

    def again() -> None:
        while not stop.is_set():
            process = subprocess.Popen(_command(url, rate), stdout=subprocess.DEVNULL)
            while process.poll() is None:
                if stop.wait(0.05):
                    process.terminate()
                    process.wait()

    thread = threading.Thread(target=again)
    thread.start()
    stop.wait(1.0)  # until it has started to scan
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _memkeys(url: str, keys: int) -> float:
    parts = urlsplit(url)
    where = ["-s", parts.path] if parts.scheme == "unix" else ["-p", str(parts.port)]
    start = perf_counter()
    subprocess.run(["redis-cli", *where, "--memkeys"], check=True, stdout=subprocess.DEVNULL)
    return keys / (perf_counter() - start)


def _audited(url: str, rate: int | None) -> Run:
    done = subprocess.run(_command(url, rate), check=True, capture_output=True)
    return Run(*json.loads(done.stdout))


def _command(url: str, rate: int | None) -> list[str]:
    return [sys.executable, "-m", "benchmarks.audit", "--walk", url, str(rate or 0)]


def _walk(url: str, rate: int) -> None:
    async def run() -> float:
        async with aconnect(url) as db:
            report = await audit(db, MODEL, AuditOptions(max_rate=rate or None))
            assert not report.failed, report.counts
            return report.tally.names / report.seconds

    walked = asyncio.run(run())
    # Not ru_maxrss: that includes the memory of the parent process.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak is not None
    print(json.dumps([walked, int(peak[1]) / 1024]))


def main() -> None:
    if sys.argv[1:2] == ["--walk"]:
        _walk(sys.argv[2], int(sys.argv[3]))
        return
    keys = int(sys.argv[1]) if len(sys.argv) > 1 else KEYS
    with RedisServer(options={"appendonly": "no"}) as server:
        for result in measure(server, keys):
            ours, theirs = result.ours.value, result.theirs.value
            print(f"{result.subject}: {ours:,.0f} {result.unit}", end=", ")
            print(f"{result.peer} {theirs:,.0f} ({result.ratio:.2f})")


if __name__ == "__main__":
    main()
