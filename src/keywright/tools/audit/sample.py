"""Samples of the keys of a template, for the figures that are not read of every key.

A key is in the sample because of its name alone: one in sixteen by hash, and in any case the `LEAST` lowest
hashes of the template. So a sample does not depend on the order of a walk, or on how many processes share it,
and those of its parts can be merged.
"""

from __future__ import annotations

import heapq
import zlib
from bisect import insort
from collections.abc import Sequence
from operator import itemgetter

import msgspec

__all__ = ["EVERY", "LEAST", "Sample", "Sum", "rank_of"]

EVERY = 16
LEAST = 64
"""So many keys of each template are measured at least, whatever the sample is."""
RANKS = 1 << 32
BAR = RANKS // EVERY
_FACTOR = 0x9E3779B1


def rank_of(name: bytes) -> int:
    """Return a number that is random for a name, and not related to the hash that `--sample` goes by."""
    return zlib.crc32(name) * _FACTOR % RANKS


class Sum(msgspec.Struct):
    """The number of some values, their sum and the sum of their squares."""

    count: int = 0
    total: int = 0
    squares: int = 0

    def add(self, value: int) -> None:
        self.count += 1
        self.total += value
        self.squares += value * value

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0


class Sample(msgspec.Struct):
    """The values of the sampled keys of one template."""

    below: Sum = msgspec.field(default_factory=Sum)
    """Those with a rank below the bar: one in sixteen."""
    spare: list[tuple[int, int]] = []
    """The lowest others with their ranks, as long as those are too few."""

    def places(self, names: Sequence[bytes]) -> list[int]:
        """Return which of some names to measure: those that may be in the sample of the whole template."""
        ranks = list(map(rank_of, names))
        bar = BAR
        if self.below.count < LEAST:
            bar = max(bar, heapq.nsmallest(LEAST, ranks)[-1] + 1) if ranks else bar
        return [place for place, rank in enumerate(ranks) if rank < bar]

    def add(self, name: bytes, value: int) -> None:
        rank = rank_of(name)
        if rank < BAR:
            self.below.add(value)
        else:
            insort(self.spare, (rank, value))
        self._trim()

    def merge(self, other: Sample) -> None:
        for field in Sum.__struct_fields__:
            setattr(self.below, field, getattr(self.below, field) + getattr(other.below, field))
        self.spare = sorted([*self.spare, *other.spare], key=itemgetter(0))
        self._trim()

    def whole(self) -> Sum:
        """Return the sums over the sample."""
        found = Sum(self.below.count, self.below.total, self.below.squares)
        for _, value in self.spare:
            found.add(value)
        return found

    def _trim(self) -> None:
        del self.spare[max(0, LEAST - self.below.count) :]
