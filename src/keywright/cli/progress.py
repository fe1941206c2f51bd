"""Progress bars of long commands, on standard error and only on a terminal; none with --quiet."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from keywright.cli.terminal import manner, rich_console
from keywright.tools import pace as pacing

__all__ = ["Meter", "bar"]

PATIENCE_SECONDS = 0.5
"""What is done sooner needs no bar."""


def bar(*columns: ProgressColumn, console: Console) -> Progress:
    """Return a bar that disappears at its end, and is not shown without a terminal."""
    return Progress(
        *columns,
        console=console,
        transient=True,
        # Else what is printed meanwhile to a file would go to the terminal.
        redirect_stdout=sys.stdout.isatty(),
        disable=manner.quiet or not console.file.isatty(),
    )


class Meter:
    """The progress of a walk over keys: how many, how fast, and the time that remains."""

    def __init__(self) -> None:
        self._bar = bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=rich_console(sys.stderr),
        )
        self._task = self._bar.add_task("", rate="", total=None)
        self._started = time.monotonic()

    def show(self, progress: pacing.WalkProgress) -> None:
        if not self._bar.live.is_started and time.monotonic() - self._started > PATIENCE_SECONDS:
            self._bar.start()
        self._bar.update(
            self._task,
            description=progress.words,
            completed=progress.seen,
            total=progress.total,
            rate=f"{progress.rate:,.0f}/s",
        )

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *exc: object) -> None:
        self._bar.stop()
