"""One part of what runs: a child process, its log, and how it is known to be ready."""

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

__all__ = ["Part", "PartFailedError", "PartProcess"]

READY_SECONDS = 45.0
STOP_SECONDS = 5.0
_TAIL_LINES = 12
_POLL_SECONDS = 0.05
# Nothing else of our environment: a real token, or the address of a real service, is not for a sample.
_INHERITED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "PYTHONPATH", "TMPDIR", "TZ", "VIRTUAL_ENV")


class PartFailedError(KeywrightError):
    """A part that did not start, or ended unasked; the end of its log is quoted."""

    exit_code = 1

    def __init__(self, part: str, what: str, tail: str) -> None:
        self.part = part
        self.what = what
        super().__init__(
            f"the {part} {what}. Its log ends with:\n{tail}\n"
            f"Correct what it names; --logs FOLDER keeps the whole log, --without MODEL leaves its model out."
        )


@dataclass(frozen=True)
class Part:
    """What to start: a module with arguments and variables; a line of its log says that it is ready."""

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    ready: str = r"^ready$"


class PartProcess:
    """A part that runs in a process of its own; the kernel ends it when ours ends, whatever ends ours."""

    def __init__(self, part: Part, folder: Path, logs: Path) -> None:
        self.name = part.name
        self.part = part
        self.log = logs / f"{part.name.replace(' ', '-')}.log"
        self.is_ready = False
        self._folder = folder
        self._child: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    @property
    def exit_code(self) -> int | None:
        """None while it runs, and before."""
        return self._child.returncode if self._child else None

    @property
    def is_up(self) -> bool:
        return self.is_ready and self.exit_code is None

    async def start(self) -> re.Match[str]:
        """Start it and wait until its log says that it is ready; return that line."""
        command = [sys.executable, "-m", self.part.module, *self.part.arguments]
        # Since 3.12 a preexec_fn warns when threads run.
        with self.log.open("wb") as log, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self._child = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=self._environment(),
                start_new_session=True,  # Ctrl-C is for us; the parts are stopped in order
                preexec_fn=death_with_parent(signal.SIGKILL),
            )
        found = await self._until_ready()
        self.is_ready = True
        return found

    async def stop(self) -> None:
        """End it in good order, or by force when that takes too long."""
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

    def failure(self, what: str) -> PartFailedError:
        return PartFailedError(self.name, what, self._tail())

    async def _until_ready(self) -> re.Match[str]:
        ready, deadline = re.compile(self.part.ready, re.MULTILINE), time.monotonic() + READY_SECONDS
        while True:
            # Asked before the log is read, so that all it wrote before its end is seen.
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

    def _environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return {**inherited, "PYTHONUNBUFFERED": "1", **self.part.environment}

    def _logged(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def _tail(self) -> str:
        lines = self._logged().splitlines()[-_TAIL_LINES:]
        return "\n".join(f"    {line}" for line in lines) or "    (nothing)"
