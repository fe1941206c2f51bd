"""A stratified sample of a stream of key names, in memory that does not grow with the stream.

Names that look alike are one stratum: of each the number is counted, and a sample is kept. So a template of
ten keys is seen beside one of ten million.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from keywright.tools.audit.sample import rank_of

__all__ = ["LONGEST_NAME", "NameSample", "SampleState", "Sampled"]

LONGEST_NAME = 1000
"""Longer names are counted, and not kept."""
STRATA = 20_000
COARSE_STRATA = 2_000
PER_STRATUM = 64
MOST_NAMES = 60_000
MOST_BYTES = 32 << 20

_IDS = re.compile(rb"[A-Za-z]{0,40}[0-9][0-9A-Za-z]*|[0-9A-Za-z_-]{20,}")
_TEXT = re.compile(rb"[^:/|.{}]+")
_FAMILY = re.compile(rb"[^:/|.{}\-]{1,24}")


class Sampled(NamedTuple):
    """A kept name, and how many names of the stream it stands for."""

    name: bytes
    weight: float


class _Stratum(msgspec.Struct):
    count: int = 0
    kept: list[tuple[int, bytes]] = []
    """The names of the lowest ranks, a heap: ranks are negative, so the first has the highest of them."""


class SampleState(msgspec.Struct):
    """A sample as plain data, which another one can take in."""

    count: int
    too_long: int
    strata: dict[bytes, _Stratum]
    coarse: dict[bytes, _Stratum]


class NameSample:
    """The names of a stream, counted and sampled.

    What is kept of a stratum goes by a hash of the name. So it does not depend on the order of the stream,
    and samples of its parts can be joined, up to the limits of all strata together: there the first are kept.
    """

    def __init__(self) -> None:
        self.count = 0
        self.too_long = 0
        self._strata: dict[bytes, _Stratum] = {}
        self._coarse: dict[bytes, _Stratum] = {}
        self._names = 0
        self._bytes = 0

    @property
    def is_complete(self) -> bool:
        """Whether every name of the stream was kept."""
        return self.count == self._names

    @property
    def state(self) -> SampleState:
        return SampleState(self.count, self.too_long, self._strata, self._coarse)

    def add(self, name: bytes) -> bool:
        """Count a name. Return whether it is kept, and was not before."""
        self.count += 1
        if len(name) > LONGEST_NAME:
            self.too_long += 1
            return False
        stratum = self._stratum(_IDS.sub(b"#", name))
        stratum.count += 1
        return self._keep(stratum, -rank_of(name), name)

    def join(self, state: SampleState) -> None:
        """Take in the sample of another part of the stream."""
        self.count += state.count
        self.too_long += state.too_long
        for key, other in state.strata.items():
            self._joined(self._stratum(key), other)
        for key, other in state.coarse.items():
            self._joined(self._coarse_stratum(key), other)

    def __iter__(self) -> Iterator[Sampled]:
        for strata in (self._strata, self._coarse):
            for _, stratum in sorted(strata.items()):
                for _, name in sorted(stratum.kept, reverse=True):
                    yield Sampled(name, stratum.count / len(stratum.kept))

    def _keep(self, stratum: _Stratum, rank: int, name: bytes) -> bool:
        kept, entry = stratum.kept, (rank, name)
        has_room = len(kept) < PER_STRATUM and self._names < MOST_NAMES and self._bytes < MOST_BYTES
        if kept and not has_room and entry < kept[0]:
            return False
        if entry in kept:  # SCAN may return a name twice
            stratum.count -= 1
            self.count -= 1
            return False
        if has_room or not kept:
            heapq.heappush(kept, entry)
            self._names += 1
        else:
            self._bytes -= len(heapq.heapreplace(kept, entry)[1])
        self._bytes += len(name)
        return True

    def _joined(self, stratum: _Stratum, other: _Stratum) -> None:
        stratum.count += other.count
        for rank, name in other.kept:
            self._keep(stratum, rank, name)

    def _stratum(self, key: bytes) -> _Stratum:
        stratum = self._strata.get(key)
        if stratum is not None:
            return stratum
        if len(self._strata) < STRATA:
            return self._strata.setdefault(key, _Stratum())
        family = _FAMILY.match(key)
        return self._coarse_stratum((family[0] if family else b"") + _TEXT.sub(b"a", key)[:200])

    def _coarse_stratum(self, key: bytes) -> _Stratum:
        if key not in self._coarse and len(self._coarse) >= COARSE_STRATA:
            key = b""
        return self._coarse.setdefault(key, _Stratum())
