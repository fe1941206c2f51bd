"""Handlers of signals in an event loop."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

__all__ = ["STOP_SIGNALS", "on_signals"]

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

OnSignal = Callable[[signal.Signals], object]


@contextmanager
def on_signals(
    first: OnSignal, again: OnSignal | None = None, *, signals: Sequence[signal.Signals] = STOP_SIGNALS
) -> Iterator[None]:
    """Within the block, call `first` for the first of these signals, and `again` for every later one.

    Without `again` later signals have their default action: they end the process. In another thread than the
    main one, where Python cannot handle signals, do nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def receive(number: signal.Signals) -> None:
        for each in signals:
            if again is None:
                loop.remove_signal_handler(each)
            else:
                loop.add_signal_handler(each, again, each)
        first(number)

    for number in signals:
        loop.add_signal_handler(number, receive, number)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
