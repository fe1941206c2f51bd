"""The bounded scan of a request: SCAN for a short time from a cursor, which the next page continues."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from keywright.engine import AsyncDatabase
from keywright.engine.nodes import name_page
from keywright.errors import UsageError
from keywright.explorer.views import number_of

__all__ = ["Cursor", "Scanned", "as_glob", "is_glob", "scan"]

FEWEST, MOST = 64, 4096
"""The COUNT of one SCAN: low while all names match, since a page cannot be split; high while none does."""
SCAN_SECONDS = 0.04
MOST_STARS, LONGEST_PATTERN = 4, 1000
"""The server tries the places of all stars in each name."""


class Cursor(NamedTuple):
    """A place in a scan: the number of the node, the cursor of the server, and how many names were passed."""

    node: int = 0
    place: int = 0
    passed: int = 0

    @staticmethod
    def of(text: str) -> Cursor:
        parts = [number_of(part) for part in text.split("-")[:3]]
        return Cursor(*parts, *[0] * (3 - len(parts)))

    def __str__(self) -> str:
        return f"{self.node}-{self.place}-{self.passed}"


class Scanned(NamedTuple):
    """The names that were found, and the cursor of the rest; None at the end."""

    names: list[bytes]
    more: Cursor | None
    passed: int
    """How many names were passed since the start, about."""


async def scan(
    db: AsyncDatabase,
    pattern: bytes,
    wanted: Callable[[bytes], bool],
    cursor: Cursor,
    *,
    enough: int,
    seconds: float | None = None,
) -> Scanned:
    """Return names that match a pattern and are wanted: `enough` of them, or those of a short time."""
    names: list[bytes] = []
    node, place, passed = cursor
    count = FEWEST
    nodes = await db.nodes()
    until = time.monotonic() + (SCAN_SECONDS if seconds is None else seconds)
    while node < len(nodes) and len(names) < enough:
        place, page = await db.run(name_page(place, count, pattern=pattern), at=nodes[node])
        found = [name for name in page if wanted(name)]
        names += found
        passed += max(count, len(page))
        lacking = enough - len(names)
        count = min(MOST, max(FEWEST, count * lacking // len(found)) if found else count * 4)
        node += place == 0
        if time.monotonic() >= until:  # after a page at least, so that each visit gets further
            break
    more = None if node >= len(nodes) else Cursor(node, place, passed)
    return Scanned(list(dict.fromkeys(names)), more, passed)


def is_glob(text: str) -> bool:
    return any(char in text for char in "*?[")


def as_glob(text: str) -> str:
    """Return a pattern: the text itself if it is one, else all names that begin with it.

    Raise UsageError for one that would make the server work for long.
    """
    if text.count("*") > MOST_STARS or len(text) > LONGEST_PATTERN:
        raise UsageError(
            f"A pattern may have {MOST_STARS} stars and {LONGEST_PATTERN} characters. Use a shorter one."
        )
    return text if is_glob(text) else text.replace("\\", "\\\\") + "*"
