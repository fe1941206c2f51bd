"""The output of `keywright up`: lines, and on a terminal a status line below them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from keywright.cli import printable
from keywright_demo.metrics import Figures

__all__ = ["StatusConsole", "status_line"]

PLAIN_SECONDS = 5.0
"""Between two status lines that are not on a terminal."""


class StatusConsole:
    """Prints lines and a status line, which on a terminal stays below all others."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._live: Live | None = None
        self._next_plain = 0.0
        self._state: object = None

    @contextmanager
    def live(self) -> Iterator[None]:
        """Keep the status line below all others within the block, if this is a terminal."""
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, auto_refresh=False, transient=True) as self._live:
            yield
        self._live = None

    def print(self, text: str, style: str = "") -> None:
        # As Text, so that brackets in it are not markup.
        self._console.print(Text("\n".join(map(printable, text.split("\n"))), style))

    def status(self, line: str, state: object = None) -> None:
        """Show the status line. Outside a terminal print it every few seconds, or if `state` changed."""
        if self._live is not None:
            self._live.update(Text(line, "dim", no_wrap=True, overflow="ellipsis"), refresh=True)
        elif time.monotonic() >= self._next_plain or state != self._state:
            self._next_plain = time.monotonic() + PLAIN_SECONDS
            self._state = state
            self.print(line)


def status_line(figures: Figures, up: int, starting: Iterable[str], down: Iterable[str]) -> str:
    """Return one line: events, keys and memory, the number of running processes, and the names of others."""
    parts = [
        _figure(figures.events_a_second, "{:.1f} events/s"),
        _figure(figures.handled, "{:,} handled"),
        _figure(figures.keys, "{:,} keys"),
        _figure(None if figures.memory_bytes is None else figures.memory_bytes / 1e6, "{:.1f} MB"),
        f"{up} {'process' if up == 1 else 'processes'} up",
        _listed("starting", starting),
        _listed("DOWN", down),
    ]
    return " · ".join(part for part in parts if part)


def _figure(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def _listed(label: str, names: Iterable[str]) -> str:
    listed = ", ".join(names)
    return f"{label}: {listed}" if listed else ""
