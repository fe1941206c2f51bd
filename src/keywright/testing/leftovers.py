"""Server processes that a test run would leave behind.

The list itself is kept by `keywright.engine.embedded`, which starts every server; this is what tests ask.
"""

from __future__ import annotations

from keywright.engine.embedded import living_pids

__all__ = ["assert_none_left", "started_pids"]


def started_pids() -> tuple[int, ...]:
    """The servers that this process started and that still run: embedded ones, test servers, sentinels."""
    return living_pids()


def assert_none_left() -> None:
    """Fail when a server that this process started still runs."""
    left = started_pids()
    if left:
        listing = ", ".join(str(pid) for pid in left)
        raise AssertionError(
            f"server processes were left running: {listing}. Close each server where it is started."
        )
