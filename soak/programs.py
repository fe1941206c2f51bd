"""Child processes of a scenario: Python modules with a log, which may be killed, frozen and started again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path

from keywright.testing import death_with_parent, wait_until

__all__ = ["Program"]

READY_SECONDS = 90.0
STOP_SECONDS = 40.0
# No other variables are inherited: the address or token of a real service must not reach a load.
_INHERITED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "PYTHONPATH", "TMPDIR", "VIRTUAL_ENV")
_ROOT = Path(__file__).parents[1]


class Program:
    """`python -m MODULE` with arguments, variables, and the pattern of its log that means it is ready.

    `steady` programs serve for as long as they live, so their memory must not grow.
    """

    def __init__(
        self,
        name: str,
        module: str,
        *arguments: str,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        ready: str = r"^ready$",
        steady: bool = True,
    ) -> None:
        self.name = name
        self.log = folder / f"{name.replace(' ', '-')}.log"
        self.steady = steady
        self._command = [sys.executable, "-m", module, *arguments]
        self._environment = dict(environment or {})
        self._ready = re.compile(ready, re.MULTILINE)
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id, or None while it does not run."""
        return self._child.pid if self._child and self._child.poll() is None else None

    @property
    def exit_code(self) -> int | None:
        return self._child.poll() if self._child else None

    def start(self) -> re.Match[str]:
        """Start it, wait until its log matches, and return the match. Raise RuntimeError if it ends first."""
        begun = self.log.stat().st_size if self.log.exists() else 0
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        # Since 3.12 a preexec_fn warns when threads run.
        with self.log.open("ab") as log, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=_ROOT,
                env={**inherited, "PYTHONUNBUFFERED": "1", **self._environment},
                start_new_session=True,  # Ctrl-C reaches the runner only
                preexec_fn=death_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
            )
        return wait_until(lambda: self._found(begun), f"{self.name} is ready", seconds=READY_SECONDS)

    def stop(self, *, seconds: float = STOP_SECONDS) -> int | None:
        """Stop it with SIGTERM, or SIGKILL after `seconds`. Return the exit code, None if it did not run."""
        child = self._child
        if child is None:
            return None
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)
        try:
            return child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return child.wait()

    def kill(self) -> None:
        """Kill it with SIGKILL, and everything in its session."""
        self.signal(signal.SIGKILL)
        if self._child is not None:
            self._child.wait()

    def signal(self, number: signal.Signals) -> None:
        if self.pid is not None:
            os.killpg(self.pid, number)

    def pause(self) -> None:
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def tail(self, lines: int = 8) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-lines:])

    def _found(self, begun: int) -> re.Match[str] | None:
        ended = self.exit_code is not None  # before the log, so that the log is complete
        found = self._ready.search(self.log.read_bytes()[begun:].decode("utf-8", "replace"))
        if found is None and ended:
            raise RuntimeError(f"{self.name} ended with exit code {self.exit_code}:\n{self.tail()}")
        return found
