"""`keywright up` as a process, for its tests: its output, its child processes and its folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from keywright.testing import descendants, is_running, wait_until

PATIENCE = 60.0


class RunningUp:
    """A running `keywright up`."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self.process = process
        self._output = output
        self._seen: set[int] = set()

    @property
    def output(self) -> str:
        return self._output.read_text("utf-8", "replace")

    def printed(self, pattern: str) -> re.Match[str]:
        """Wait until the output matches the pattern, and return the match."""

        def found() -> re.Match[str] | None:
            assert self.process.poll() is None or re.search(pattern, self.output), self.output
            return re.search(pattern, self.output)

        return wait_until(found, f"output like {pattern!r}", seconds=PATIENCE)

    def children(self) -> dict[int, str]:
        """Return the command lines of its child processes by id, and remember the ids."""
        found = {pid: _command(pid) for pid in descendants(self.process.pid)}
        self._seen |= found.keys()
        return found

    def child(self, name: str) -> int:
        """Wait for the child process whose command line contains this, and return its id."""

        def found() -> int | None:
            return next((pid for pid, command in self.children().items() if name in command), None)

        return wait_until(found, f"a process of {name}", seconds=PATIENCE)

    def folder(self) -> Path:
        """Return the folder in which its child processes run."""
        return Path(os.readlink(f"/proc/{self.child('-m keywright')}/cwd"))

    def signal(self, number: signal.Signals) -> None:
        self.children()
        self.process.send_signal(number)

    def ended(self) -> int:
        return self.process.wait(PATIENCE)

    def left_nothing(self, folder: Path) -> bool:
        return not folder.exists() and not any(is_running(pid) for pid in self._seen)


@contextmanager
def running_up(tmp_path: Path, *arguments: str, **environment: str) -> Iterator[RunningUp]:
    output = tmp_path / "output"
    with output.open("wb") as printed:
        process = started(printed, arguments, environment)
    try:
        yield RunningUp(process, output)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def started(
    printed: IO[bytes], arguments: tuple[str, ...], environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    """Start it in a new session."""
    return subprocess.Popen(
        [sys.executable, "-m", "keywright", "up", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=printed,
        stderr=subprocess.STDOUT,
        env={**os.environ, **environment},
        start_new_session=True,
    )


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""
