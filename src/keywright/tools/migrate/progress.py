"""The progress of a migration, and its counts."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from keywright.tools import pace as pacing

__all__ = ["MigrationPacemaker", "MigrationProgress", "SweepCounts"]


class SweepCounts(msgspec.Struct):
    """The results for the keys of one template.

    `moved` keys had a former name, `upgraded` ones an older shape or codec; in a dry run they still have.
    `both` exist under the former and the present name with different content; `refused` were not upgraded.
    """

    moved: int = 0
    upgraded: int = 0
    both: int = 0
    refused: int = 0

    def add(self, other: SweepCounts) -> None:
        """Add the results of other keys of the template."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def done(self) -> int:
        """Return the number of keys that were moved or upgraded."""
        return self.moved + self.upgraded

    @property
    def left(self) -> int:
        """Return the number of keys that could not be migrated."""
        return self.both + self.refused


class MigrationProgress(pacing.WalkProgress, frozen=True):
    """The progress of a migration in names, or in pages of a conversion; `total` is counted at the start."""

    done: int
    left: int

    @property
    def words(self) -> str:
        return f"{self.done:,} done"


class MigrationPacemaker(pacing.Pacemaker):
    """The pacemaker of one migration, which reports progress a few times a second."""

    def __init__(self, pace: pacing.Pace, on_progress: Callable[[MigrationProgress], None] | None) -> None:
        super().__init__(pace)
        self._on_progress = on_progress

    def report(self, seen: int, total: int, done: int, left: int, *, final: bool = False) -> None:
        """Report the counts if it is time to, or if they are the last."""
        if self._on_progress is not None and (final or self.due()):
            self._on_progress(MigrationProgress(seen, max(seen, total), self.seconds, done, left))
