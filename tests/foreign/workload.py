"""The frame of a workload: it goes on until its standard input is closed, and for two minutes at most."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["URL", "announce", "program", "turns", "until", "worker"]

URL = os.environ.get("FOREIGN_REDIS_URL", "redis://127.0.0.1:1")
"""Of the private server; workers inherit it."""

SECONDS = 120
TURNS = 5000
PACE = 0.02
"""Of a turn in seconds: a producer at full speed would only make the audits longer."""
STOP_SECONDS = 15


def turns() -> Iterator[int]:
    """Yield the numbers of the turns of a producer, at most fifty a second, until it is to stop."""
    deadline = time.monotonic() + SECONDS
    for turn in range(TURNS):
        if time.monotonic() > deadline or select.select([sys.stdin], [], [], 0)[0]:
            return
        yield turn
        time.sleep(PACE)


def until(probe: Callable[[], object], what: str) -> None:
    """Wait for a condition of the project's own data. Fail with `what` after two minutes."""
    deadline = time.monotonic() + SECONDS
    while not probe():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {SECONDS} s: {what}")
        time.sleep(0.005)


def announce() -> None:
    """Report that every type of job was processed once, so that an audit sees every type of key."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()


@contextmanager
def worker(*command: str) -> Iterator[None]:
    """Run a worker of the project as a process, and ask it to end with SIGTERM."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, stderr=sys.stderr) as process:
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def program(name: str) -> str:
    """Return the path of a command that is installed beside this Python."""
    return str(Path(sys.executable).with_name(name))
