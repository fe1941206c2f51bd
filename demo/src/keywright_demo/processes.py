"""The child processes of the demo: one with its log, and groups that start and stop in order."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from keywright.errors import KeywrightError
from keywright.testing import death_with_parent
from keywright.tools.http import LOOPBACK, listening

__all__ = ["ChildProcess", "ProcessFailedError", "ProcessGroup", "ProcessSpec", "Workspace", "free_port"]

READY_SECONDS = 45.0
STOP_SECONDS = 5.0
_TAIL_LINES = 12
_POLL_SECONDS = 0.05
# No other variables are inherited: the token or address of a real service must not reach a sample.
_INHERITED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "PYTHONPATH", "TMPDIR", "TZ", "VIRTUAL_ENV")


class ProcessFailedError(KeywrightError):
    """A process did not start, or ended early. The message quotes the end of its log."""

    exit_code = 1

    def __init__(self, process: str, what: str, tail: str) -> None:
        self.process = process
        self.what = what
        super().__init__(
            f"the {process} {what}. Its log ends with:\n{tail}\n"
            f"Fix the error in the log; --logs FOLDER keeps the whole log, --without MODEL omits the model."
        )


@dataclass(frozen=True)
class ProcessSpec:
    """A module to run, with arguments and variables, and the pattern of the log that means it is ready."""

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    ready: str = r"^ready$"


class ChildProcess:
    """One process of the demo. The kernel kills it when this process ends, however it ends."""

    def __init__(self, spec: ProcessSpec, folder: Path, logs: Path) -> None:
        self.name = spec.name
        self.spec = spec
        self.log = logs / f"{spec.name.replace(' ', '-')}.log"
        self.is_ready = False
        self._folder = folder
        self._child: asyncio.subprocess.Process | None = None

    @property
    def exit_code(self) -> int | None:
        """The exit code; None before the start and while it runs."""
        return self._child.returncode if self._child else None

    @property
    def is_up(self) -> bool:
        return self.is_ready and self.exit_code is None

    async def start(self) -> re.Match[str]:
        """Start it, wait until its log matches the pattern, and return the match."""
        command = [sys.executable, "-m", self.spec.module, *self.spec.arguments]
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        # Since 3.12 a preexec_fn warns if there are threads.
        with self.log.open("wb") as log, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self._child = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env={**inherited, "PYTHONUNBUFFERED": "1", **self.spec.environment},
                start_new_session=True,  # Ctrl-C reaches only us: we stop the processes in order
                preexec_fn=death_with_parent(signal.SIGKILL),
            )
        found = await self._until_ready()
        self.is_ready = True
        return found

    async def stop(self) -> None:
        """Stop it with SIGTERM, or with SIGKILL after `STOP_SECONDS`."""
        child = self._child
        if child is None or child.returncode is not None:
            return
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(child.wait(), STOP_SECONDS)
        except TimeoutError:
            self.kill()
            await child.wait()

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def failure(self, what: str) -> ProcessFailedError:
        """Return an error that quotes the end of the log."""
        lines = self._logged().splitlines()[-_TAIL_LINES:]
        tail = "\n".join(f"    {line}" for line in lines) or "    (nothing)"
        return ProcessFailedError(self.name, what, tail)

    async def _until_ready(self) -> re.Match[str]:
        ready, deadline = re.compile(self.spec.ready, re.MULTILINE), time.monotonic() + READY_SECONDS
        while True:
            # Read before the log, so that the log is complete if the process has ended.
            code = self.exit_code
            if found := ready.search(self._logged()):
                return found
            if code is not None:
                raise self.failure(f"ended at the start with exit code {code}")
            if time.monotonic() > deadline:
                raise self.failure(f"was not ready within {READY_SECONDS:g} s")
            await asyncio.sleep(_POLL_SECONDS)

    def _signal(self, number: signal.Signals) -> None:
        if self._child is not None and self._child.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, number)

    def _logged(self) -> str:
        return self.log.read_text("utf-8", "replace")


@dataclass(frozen=True)
class Workspace:
    """The folders, the Redis server and the broker that all processes share."""

    folder: Path
    logs: Path
    redis: str
    broker: str

    @property
    def environment(self) -> dict[str, str]:
        # Not as arguments, where every user of the machine could read a password.
        return {"REDIS_URL": self.redis, "BROKER_URL": self.broker}


class ProcessGroup:
    """The processes of one model, started one after another and stopped in reverse order."""

    def __init__(self, name: str, workspace: Workspace) -> None:
        self.name = name
        self.workspace = workspace
        self.processes: list[ChildProcess] = []
        self.addresses: dict[str, str] = {}
        """Addresses that processes printed, by name."""
        self.served: list[tuple[str, str]] = []
        """Addresses for people, and what is there."""

    async def start(
        self,
        name: str,
        module: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        ready: str = r"^ready$",
    ) -> re.Match[str]:
        """Start a process and wait until it is ready. Raise ProcessFailedError if it fails."""
        variables = {**self.workspace.environment, **(environment or {})}
        spec = ProcessSpec(name, module, arguments, variables, ready)
        process = ChildProcess(spec, self.workspace.folder, self.workspace.logs)
        self.processes.append(process)
        return await process.start()

    async def stop(self) -> None:
        for process in reversed(self.processes):
            await process.stop()

    def kill(self) -> None:
        for process in self.processes:
            process.kill()


def free_port(wanted: int = 0) -> int:
    """Return a free loopback port: the wanted one, or any. Raise UsageError if the wanted one is in use."""
    with listening(LOOPBACK, wanted, remedy="Choose another --port.") as probe:
        return int(probe.getsockname()[1])
