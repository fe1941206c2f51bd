"""Server processes that a test run would leave behind.

`keywright.engine.embedded` starts every server and keeps the list; this is the interface for tests.
"""

from __future__ import annotations

from keywright.engine.embedded import living_pids

__all__ = ["assert_none_left", "started_pids"]


def started_pids() -> tuple[int, ...]:
    """Return the ids of running servers that this process started: embedded, test servers, sentinels."""
    return living_pids()


def assert_none_left() -> None:
    """Fail if a server that this process started still runs."""
    left = started_pids()
    if left:
        listing = ", ".join(str(pid) for pid in left)
        raise AssertionError(
            f"server processes were left running: {listing}. Close each server where it is started."
        )
