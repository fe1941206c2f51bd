"""The frame of a workload: it goes on until its standard input is closed, and for ten minutes at most."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["URL", "announce", "auntil", "kill_at", "program", "python_worker", "turns", "until", "worker"]

URL = os.environ.get("FOREIGN_REDIS_URL", "redis://127.0.0.1:1")
"""Of the private server; workers inherit it."""

SECONDS = 120
LONGEST = 600
TURNS = 30_000
PACE = 0.02
"""Of a turn in seconds: a producer at full speed would only make the audits longer."""
STOP_SECONDS = 15


def turns() -> Iterator[int]:
    """Yield the numbers of the turns of a producer, at most fifty a second, until it is to stop."""
    deadline = time.monotonic() + LONGEST
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


async def auntil(probe: Callable[[], Awaitable[object]]) -> None:
    """Wait as `until` does, for a condition that is asked for by a coroutine."""
    async with asyncio.timeout(SECONDS):
        while not await probe():  # noqa: ASYNC110  # there is no event: the condition is in Redis
            await asyncio.sleep(0.005)


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


def kill_at(probe: Callable[[], object], what: str, *command: str) -> None:
    """Run a worker and kill it with SIGKILL once a condition holds, so that it leaves what it was doing."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, stderr=sys.stderr) as process:
        try:
            until(lambda: probe() or process.poll() is not None, what)
            if process.poll() is not None:
                raise RuntimeError(f"the worker ended with {process.returncode} before {what}")
        finally:
            process.kill()


def python_worker(module: str, function: str) -> tuple[str, ...]:
    """Return the command that runs a function of a workload in a process of its own."""
    return (sys.executable, "-c", f"from {module} import {function}; {function}()")


def program(name: str) -> str:
    """Return the path of a command that is installed beside this Python."""
    return str(Path(sys.executable).with_name(name))
