"""The folder of a run, which is removed however the run ends."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keywright.testing import make_run_folder, remove_run_folder

__all__ = ["swept_folder"]

# The pipe closes with this process, even after SIGKILL; a dying child may still add a file meanwhile.
_SWEEP = 'read -r _; until rm -rf -- "$1" 2>/dev/null; do sleep 0.1; done'


@contextmanager
def swept_folder() -> Iterator[Path]:
    """Yield a new folder. If this process is killed, a waiting shell removes it."""
    folder = make_run_folder()
    with subprocess.Popen(
        ["/bin/sh", "-c", _SWEEP, "sh", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C must not reach it
    ):
        try:
            yield folder
        finally:
            remove_run_folder(folder)
