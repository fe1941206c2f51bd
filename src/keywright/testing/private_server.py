"""The base of the private servers of tests: a folder, a process, and an end with the test run."""

from __future__ import annotations

import atexit
import os
import signal
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from keywright.engine.embedded import START_SECONDS, ServerProcess, make_run_folder, remove_run_folder
from keywright.errors import UsageError

__all__ = ["PrivateServer"]

ProcessT = TypeVar("ProcessT", bound=ServerProcess)


class PrivateServer(ABC, Generic[ProcessT]):
    """A real server in a temporary folder. Its address and data survive stop() and even kill() until close().

    Only the process that started it ends it: in a forked copy close() does nothing.
    """

    start_seconds = START_SECONDS
    """How long it may take until it answers."""

    def __init__(self) -> None:
        self._owner = 0
        self._folder: Path | None = None
        self._process: ProcessT | None = None

    @property
    def pid(self) -> int | None:
        """Return the process id, or None while the server is down."""
        return self._process.pid if self._process else None

    @property
    def log(self) -> str:
        """Return the output of the server so far."""
        return self.started().log.read_text(encoding="utf-8", errors="replace")

    def start(self) -> Self:
        """Start the server with the data it had before. Do nothing if it runs."""
        if self._process is None:
            self._start_first()
        elif self.pid is None:
            self._process.start(seconds=self.start_seconds)
        return self

    def stop(self) -> None:
        """Stop the server gracefully, though clients are connected; start() brings it back."""
        if self._process:
            self._process.stop()

    def kill(self) -> None:
        """Crash the server with SIGKILL; start() brings it back."""
        if self._process:
            self._process.kill()

    def restart(self) -> None:
        """Stop and start again at the same address, with the same data."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze the process: connections stay open, nothing is answered."""
        self.started().signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume a frozen process. Do nothing if it is not frozen."""
        self.started().signal(signal.SIGCONT)

    def close(self) -> None:
        """Kill the server and remove its folder. It cannot be used afterwards. Idempotent."""
        if self._folder is None or self._owner != os.getpid():
            return
        self.kill()
        self.remove_folder(self._folder)
        self._folder = self._process = None
        atexit.unregister(self.close)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def make_process(self, folder: Path) -> ProcessT:
        """Return the process of a server in this folder, not started."""

    @abstractmethod
    def first_start(self, process: ProcessT, folder: Path) -> None:
        """Write the files that the server needs into its folder, and start it."""

    def remove_folder(self, folder: Path) -> None:
        """Remove the folder, and anything else that a killed server leaves."""
        remove_run_folder(folder)

    def _start_first(self) -> None:
        self._owner = os.getpid()
        self._folder = make_run_folder()
        atexit.register(self.close)
        self._process = self.make_process(self._folder)
        try:
            self.first_start(self._process, self._folder)
        except BaseException:
            self.close()
            raise

    def started(self) -> ProcessT:
        """Return the process. Raise UsageError if it was never started or is closed."""
        if self._process is None:
            raise UsageError(
                "this server was not started, or is closed. Call start(), or use it in a with block."
            )
        return self._process
