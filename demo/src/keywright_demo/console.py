"""What a person sees of it: lines, and below them one that changes, where there is a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from keywright_demo.metrics import Figures

__all__ = ["Teller", "status_line"]

PLAIN_SECONDS = 5.0
"""Between two status lines where each stays."""


class Teller:
    """Prints. On a terminal the status line stays below everything else, elsewhere it comes now and then."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._live: Live | None = None
        self._next_plain = 0.0
        self._state: object = None

    @contextmanager
    def live(self) -> Iterator[None]:
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, auto_refresh=False, transient=True) as self._live:
            yield
        self._live = None

    def say(self, text: str, style: str = "") -> None:
        # As Text, so that nothing in it is taken for markup.
        self._console.print(Text(text, style))

    def status(self, line: str, state: object = None) -> None:
        """The line as it is now; where lines stay, one whose `state` is another is not held back."""
        if self._live is not None:
            self._live.update(Text(line, "dim", no_wrap=True, overflow="ellipsis"), refresh=True)
        elif time.monotonic() >= self._next_plain or state != self._state:
            self._next_plain = time.monotonic() + PLAIN_SECONDS
            self._state = state
            self.say(line)


def status_line(figures: Figures, up: int, starting: Iterable[str], down: Iterable[str]) -> str:
    """Return one line: events, keys and memory, how many parts are up and which are not."""
    parts = [
        _figure(figures.events_a_second, "{:.1f} events/s"),
        _figure(figures.handled, "{:,} handled"),
        _figure(figures.keys, "{:,} keys"),
        _figure(None if figures.memory_bytes is None else figures.memory_bytes / 1e6, "{:.1f} MB"),
        f"{up} {'part' if up == 1 else 'parts'} up",
        *(f"{label}: {', '.join(names)}" for label, names in _groups(starting, down)),
    ]
    return " · ".join(part for part in parts if part)


def _figure(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def _groups(starting: Iterable[str], down: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    for label, names in (("starting", list(starting)), ("DOWN", list(down))):
        if names:
            yield label, names
