"""SIGTERM and SIGINT stop a service cleanly; a second one ends the process."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from keywright.tools.http import on_signals

__all__ = ["stop_on_signals"]

log = logging.getLogger("keywright.service")


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Within the block the first SIGTERM or SIGINT calls `stop`; the next has its default action."""

    def receive(number: signal.Signals) -> None:
        log.info("stopping: %s", number.name)
        stop()

    with on_signals(receive):
        yield
