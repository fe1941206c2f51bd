"""Waiting for another process without sleeping for a guessed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["wait_until"]

T = TypeVar("T")


def wait_until(probe: Callable[[], T | None], what: str, *, seconds: float = 30.0) -> T:
    """Call `probe` until it returns something true, and return that; fail with `what` when time is up."""
    deadline = time.monotonic() + seconds
    while not (found := probe()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(0.01)
    return found
