"""Threads that start together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def race(count: int, work: Callable[[int], T]) -> list[T]:
    """Run `work` with 0, 1, … in as many threads, released at once. Return their results."""
    start = threading.Barrier(count)

    def released(number: int) -> T:
        start.wait(10)
        return work(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(released, range(count)))
