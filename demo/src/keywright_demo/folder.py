"""The one folder that everything is kept in while it runs, removed however it ends."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keywright.testing import make_run_folder, remove_run_folder

__all__ = ["swept_folder"]

# The pipe ends with this process, even after SIGKILL; a part that is dying just then may still add a file.
_SWEEP = 'read -r _; until rm -rf -- "$1" 2>/dev/null; do sleep 0.1; done'


@contextmanager
def swept_folder() -> Iterator[Path]:
    """A new folder. A waiting shell removes it where this process is killed and cannot."""
    folder = make_run_folder()
    with subprocess.Popen(
        ["/bin/sh", "-c", _SWEEP, "sh", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is not for it
    ):
        try:
            yield folder
        finally:
            remove_run_folder(folder)
