"""A service of the command line in a process of its own, to be signalled and killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

THIS_CHECKOUT = (sys.executable, "-m", "keywright")


class ServiceProcess:
    """`keywright` with these arguments; the environment's own `DISCORD_` variables are kept from it."""

    def __init__(
        self, program: tuple[str, ...], arguments: tuple[str, ...], variables: Mapping[str, str], log: Path
    ) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DISCORD_")}
        with log.open("ab") as output:
            self._child = subprocess.Popen(
                [*program, *arguments],
                cwd=log.parent,
                env={**inherited, **variables},
                stdout=output,
                stderr=output,
            )

    def signal(self, number: signal.Signals) -> None:
        self._child.send_signal(number)

    async def ended(self) -> int:
        return await asyncio.to_thread(self._child.wait, 30)

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        self._child.terminate()
        return self._child.wait(30)

    def end(self) -> None:
        """Kill it with SIGKILL, unless it has ended."""
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait()


@contextmanager
def launched(
    *arguments: str, variables: Mapping[str, str], log: Path, program: tuple[str, ...] = THIS_CHECKOUT
) -> Iterator[ServiceProcess]:
    """Yield a process that does not outlive the block."""
    process = ServiceProcess(program, arguments, variables, log)
    try:
        yield process
    finally:
        process.end()
