"""Conversions: the data of one layout written in another, page by page.

A conversion is idempotent: converting a page again has the same result. The source is unchanged. No program
may write the target until the conversion ends.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from keywright.engine import AsyncDatabase
from keywright.keyspace import Binding, Call, Keyspace
from keywright.tools.migrate.bookmark import Bookmark
from keywright.tools.migrate.page_sweep import SweepOptions
from keywright.tools.migrate.progress import MigrationPacemaker, MigrationProgress, SweepCounts
from keywright.tools.migrate.sweeper import SweepResult
from keywright.tools.pace import GENTLE, Pace

__all__ = ["Conversion", "ConversionPage", "ConversionRoute", "Sweep", "convert_all"]

Sweep: TypeAlias = Callable[
    [AsyncDatabase, SweepOptions, Path | None, Callable[[MigrationProgress], None]], Awaitable[SweepResult]
]
"""A migration of a model by its own code: options, the path of a configuration file or None, progress."""


ConversionPage: TypeAlias = tuple[str, Call[int]]
"""A part of the source: its name, and the call that writes it to the target and counts its entities.

Names order the pages. Pages of one name are converted again together by a conversion that goes on.
"""


class Conversion(Protocol):
    """A conversion from one layout to another."""

    source: tuple[Keyspace, ...]
    target: tuple[Keyspace, ...]
    left_out: tuple[str, ...]
    """What the target could hold and the source does not know, or the other way round, in words."""

    async def size(self, db: AsyncDatabase) -> int:
        """Return the approximate number of pages."""
        ...

    def pages(self, db: AsyncDatabase) -> AsyncIterator[ConversionPage]:
        """Yield the pages, by ascending name. Content is read only when a page is converted."""
        ...


class ConversionRoute(NamedTuple):
    """A conversion, and the bindings of both layouts under their prefixes."""

    conversion: Conversion
    bindings: tuple[Binding, ...]


async def convert_all(
    db: AsyncDatabase,
    conversion: Conversion,
    *,
    pace: Pace = GENTLE,
    bookmark: Bookmark | None = None,
    on_progress: Callable[[MigrationProgress], None] | None = None,
) -> int:
    """Write the whole target. Return the number of converted entities, which `pace` counts."""
    mark = bookmark or Bookmark("convert")
    counts = mark.saved.counts.setdefault("", SweepCounts())
    total, pacemaker = await conversion.size(db), MigrationPacemaker(pace, on_progress)
    at_work = mark.saved.page
    try:
        async for name, convert in conversion.pages(db):
            if mark.passed(name):
                continue
            if name != at_work:
                mark.at_page(at_work)
                at_work = name
            converted = await db.run(convert)
            counts.moved += converted
            mark.saved.seen += 1
            pacemaker.report(mark.saved.seen, total, counts.moved, 0)
            await pacemaker.wait(converted)
    finally:
        mark.save()
    mark.done()
    pacemaker.report(mark.saved.seen, mark.saved.seen, counts.moved, 0, final=True)
    return counts.moved
