"""A stratified sample of a stream of key names, in memory that does not grow with the stream.

Names that look alike are one stratum: of each the number is counted, and a random sample is kept. So a
template of ten keys is seen beside one of ten million.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["LONGEST_NAME", "NameSample", "Sampled"]

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


class _Stratum:
    __slots__ = ("count", "kept")

    def __init__(self) -> None:
        self.count = 0
        self.kept: list[bytes] = []


class NameSample:
    """The names of a stream, counted and sampled."""

    def __init__(self) -> None:
        self.count = 0
        self.too_long = 0
        self._strata: dict[bytes, _Stratum] = {}
        self._coarse: dict[bytes, _Stratum] = {}
        self._names = 0
        self._bytes = 0
        self._random = random.Random(18)

    @property
    def is_complete(self) -> bool:
        """Whether every name of the stream was kept."""
        return self.count == self._names

    def add(self, name: bytes) -> bool:
        """Count a name. Return whether it is kept."""
        self.count += 1
        if len(name) > LONGEST_NAME:
            self.too_long += 1
            return False
        key = _IDS.sub(b"#", name)
        stratum = self._strata.get(key)
        if stratum is None:
            stratum = self._new_stratum(key)
        stratum.count += 1
        kept = stratum.kept
        room = self._names < MOST_NAMES and self._bytes < MOST_BYTES
        if not kept or (len(kept) < PER_STRATUM and room):
            kept.append(name)
            self._names += 1
            self._bytes += len(name)
            return True
        place = int(self._random.random() * stratum.count)
        if place >= len(kept):
            return False
        self._bytes += len(name) - len(kept[place])
        kept[place] = name
        return True

    def __iter__(self) -> Iterator[Sampled]:
        for stratum in (*self._strata.values(), *self._coarse.values()):
            for name in stratum.kept:
                yield Sampled(name, stratum.count / len(stratum.kept))

    def _new_stratum(self, key: bytes) -> _Stratum:
        if len(self._strata) < STRATA:
            return self._strata.setdefault(key, _Stratum())
        family = _FAMILY.match(key)
        coarse = (family[0] if family else b"") + _TEXT.sub(b"a", key)[:200]
        if coarse not in self._coarse and len(self._coarse) >= COARSE_STRATA:
            coarse = b""
        return self._coarse.setdefault(coarse, _Stratum())
