"""The size of a top-level repository with its descendants: cached only after a successful query.

The registry caches 0 after a failed query, which hides a timeout for five minutes
(docs/resolutions.md#mistake-4). Here a failure caches nothing, and a timeout is remembered for a day in a key
of its own.
"""

from __future__ import annotations

from keywright import Call, gather
from keywright.errors import UsageError
from keywright_registry.schema import SizeTimeout, SizeWithDescendants
from keywright_registry.transactions import OutsideTransaction

__all__ = ["KnownSize", "known_size", "remember_size", "remember_timeout"]

KnownSize = int | TimeoutError | None
"""The size in bytes; a TimeoutError if a recent query timed out; None if a query is needed."""


def known_size(path: str) -> Call[KnownSize]:
    """Return the cached size; a size takes precedence over an earlier timeout."""
    _require_top_level(path)

    def known(found: tuple[int | None, bool]) -> KnownSize:
        size, timed_out = found
        if size is None and timed_out:
            return TimeoutError(f"the size query of {path!r} timed out before. Use an estimate.")
        return size

    return gather(SizeWithDescendants.of(path).get(), SizeTimeout.of(path).exists()).map(known)


def remember_size(path: str, size: int) -> Call[bool]:
    """Cache the result of a size query, for five minutes."""
    _require_top_level(path)
    return OutsideTransaction(SizeWithDescendants.of(path).set(size))


def remember_timeout(path: str) -> Call[bool]:
    """Remember for a day that the size query timed out, so that an estimate is used."""
    _require_top_level(path)
    return OutsideTransaction(SizeTimeout.of(path).set(value=True))


def _require_top_level(path: str) -> None:
    if "/" in path:
        raise UsageError(
            f"{path!r} is below another repository: sizes with descendants are kept for top-level ones only. "
            f"Ask for {path.partition('/')[0]!r}, or for the repository's own size."
        )
