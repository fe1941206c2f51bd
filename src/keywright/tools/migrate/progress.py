"""How far a migration is, and what became of what it met."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

__all__ = ["Counts", "Progress"]


class Counts(msgspec.Struct):
    """What became of the keys of one template.

    `moved` came from a former name, `upgraded` from an older shape or codec; in a dry run they would. `both`
    are under the former and the present name with different contents; `refused` could not be upgraded.
    """

    moved: int = 0
    upgraded: int = 0
    both: int = 0
    refused: int = 0

    @property
    def done(self) -> int:
        return self.moved + self.upgraded

    @property
    def left(self) -> int:
        return self.both + self.refused


class Progress(NamedTuple):
    """How far a migration is: names, or pages of a conversion, of how many there were at the beginning."""

    seen: int
    total: int
    done: int
    left: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.seen / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        return max(0, self.total - self.seen) / self.rate if self.rate else None
