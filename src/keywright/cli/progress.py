"""Progress bars of long commands, on standard error and only on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from keywright.tools import pace as pacing

__all__ = ["Meter", "bar"]


def bar(*columns: ProgressColumn, console: Console) -> Progress:
    """Return a bar that disappears at its end, and is not shown without a terminal."""
    return Progress(*columns, console=console, transient=True, disable=not console.file.isatty())


class Meter:
    """The progress of a walk over keys."""

    def __init__(self) -> None:
        self._bar = bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task("", rate="", total=None)

    def show(self, progress: pacing.WalkProgress) -> None:
        self._bar.update(
            self._task,
            description=progress.words,
            completed=progress.seen,
            total=progress.total,
            rate=f"{progress.rate:,.0f}/s",
        )

    def __enter__(self) -> Meter:
        self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._bar.stop()
