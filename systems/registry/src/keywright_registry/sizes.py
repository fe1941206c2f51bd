"""The size of a top-level repository with all below it: cached when it was measured, and only then.

The registry caches 0 after a query that failed, which hides for five minutes that it timed out. Here a
failure caches nothing, and a time-out is remembered by itself for a day.
"""

from __future__ import annotations

from keywright import Call, gather
from keywright.errors import UsageError
from keywright_registry.schema import SizeTimeout, SizeWithDescendants
from keywright_registry.transactions import Outside

__all__ = ["KnownSize", "known_size", "remember_size", "remember_time_out"]

KnownSize = int | TimeoutError | None
"""Bytes; a TimeoutError when measuring took too long of late; None when it is to be measured."""


def known_size(path: str) -> Call[KnownSize]:
    """What is known of the size; a size that is there counts more than an earlier time-out."""
    _require_top_level(path)
    asked = gather(SizeWithDescendants.of(path).get(), SizeTimeout.of(path).exists())
    return asked.map(lambda found: _known(path, *found))


def remember_size(path: str, size: int) -> Call[bool]:
    """Cache a size that was measured, for five minutes."""
    _require_top_level(path)
    return Outside(SizeWithDescendants.of(path).set(size))


def remember_time_out(path: str) -> Call[bool]:
    """Remember for a day that measuring takes too long, so that an estimate is used."""
    _require_top_level(path)
    return Outside(SizeTimeout.of(path).set(value=True))


def _known(path: str, size: int | None, timed_out: bool) -> KnownSize:
    if size is None and timed_out:
        return TimeoutError(f"measuring {path!r} timed out before. Use an estimate.")
    return size


def _require_top_level(path: str) -> None:
    if "/" in path:
        raise UsageError(
            f"{path!r} is below another repository: sizes with descendants are kept for top-level ones only. "
            f"Ask for {path.partition('/')[0]!r}, or for the repository's own size."
        )
