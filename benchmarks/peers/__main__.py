"""`python -m benchmarks.peers [NAME…]`: run the tasks with all clients, or with the named ones."""

from __future__ import annotations

import argparse
import asyncio
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

import redis

from benchmarks.peers.tasks import FAULTS, ROUNDS, Facts, facts
from keywright.testing import RedisServer

CLIENTS = ("keywright", "redis_py", "coredis", "glide", "redis_om", "walrus")
HEADER = (
    "client",
    "same value",
    "expiry",
    "relation",
    "cuts that break them",
    "races that break it",
    "INCR, reply lost",
    "CPU, write 1,000",
    "CPU, read 1,000",
    "renamed field",
    "faults found",
)


def row(name: str, packages: Sequence[str], found: Facts) -> tuple[str, ...]:
    versions = ", ".join(f"{package} {_version(package)}" for package in packages)
    return (
        versions or name,
        "yes" if found.same else "no",
        f"{found.seconds_left} s",
        "yes" if found.related else "no",
        f"{found.immortal} and {found.halves} of {found.cuts}",
        f"{found.races} of {ROUNDS}",
        found.lost_reply,
        f"{found.write_ms:.1f} ms",
        f"{found.read_ms:.1f} ms",
        "yes" if found.renamed else "no",
        "by hand" if found.found is None else f"{len(found.found)} of {len(FAULTS)}",
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from a folder that is not installed
        return "of this checkout"


def served_by(server: RedisServer) -> str:
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        info = client.info("server")
    return f"{info.get('server_name', 'redis')} {info.get('valkey_version', info['redis_version'])}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*CLIENTS, []], help="the clients; all if none is named")
    names = parser.parse_args().names or CLIENTS
    print("|", " | ".join(HEADER), "|")
    print("|---" * len(HEADER) + "|")
    with RedisServer(tcp=True) as server:
        for name in names:
            program = import_module(f"benchmarks.peers.with_{name}")
            found = asyncio.run(facts(program, server.tcp_url))
            print("|", " | ".join(row(name, program.PACKAGES, found)), "|", flush=True)
            if found.false_alarms or (found.found is not None and len(found.found) < len(FAULTS)):
                missed = [fault for fault in FAULTS if fault not in (found.found or ())]
                print(f"  {name}: not found: {missed}; false alarms: {list(found.false_alarms)}")
        print(f"\n{served_by(server)}, Python {platform.python_version()}, {datetime.now(UTC):%Y-%m-%d}")


if __name__ == "__main__":
    main()
