"""Polling for a condition, instead of sleeping for a guessed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["wait_until"]

T = TypeVar("T")


def wait_until(probe: Callable[[], T | None], what: str, *, seconds: float = 30.0) -> T:
    """Poll `probe` until it returns something true, and return that. Fail with `what` at the deadline."""
    deadline = time.monotonic() + seconds
    while not (found := probe()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(0.01)
    return found
