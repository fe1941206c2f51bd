"""Processes of servers: starting one that ends with its parent, its folder, and the processes below it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from keywright.engine.embedded import (
    START_SECONDS,
    STOP_SECONDS,
    ServerProcess,
    death_with_parent,
    make_run_folder,
    quoted,
    remove_run_folder,
)

__all__ = [
    "START_SECONDS",
    "STOP_SECONDS",
    "ServerProcess",
    "death_with_parent",
    "descendants",
    "is_running",
    "make_run_folder",
    "quoted",
    "remove_run_folder",
]


def descendants(pid: int) -> list[int]:
    """Return the descendants of a process; none on systems without /proc."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children = [int(child) for child in (task / "children").read_text().split()]
            found += children + [below for child in children for below in descendants(child)]
    return found


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        # The state follows the name, which is in parentheses and may hold anything.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
