"""A hash table on disk, from names or members to their places in a dump: eight bytes for each slot.

It is a temporary file without a name, mapped into memory, so its pages can be written back and dropped by the
system. A slot has a place and a part of the hash; whether the name is there is read from the dump itself.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat

__all__ = ["PlaceTable"]

PLACE_BITS = 42
LARGEST_FILE = 1 << PLACE_BITS
_PLACE = LARGEST_FILE - 1
LEAST_SLOTS = 1 << 12
LONGEST_RUN = 4096
"""Of used slots. Hashes are random, so a longer one has the same name again and again."""


class PlaceTable:
    """The places of names. Names are given twice if the table was made for too few of them."""

    def __init__(self, names: Callable[[], Iterable[tuple[bytes, int]]], expected: int) -> None:
        slots = LEAST_SLOTS
        while slots < expected * 5 // 3:
            slots *= 2
        while not self._fill(names(), slots):
            slots *= 4

    def places(self, name: bytes) -> Iterator[int]:
        """Yield the places that may be those of a name."""
        found = hash(name)
        mask, tag = self._mask, found >> PLACE_BITS & 0x3FFFFF
        slot = found & mask
        slots = self._slots
        while entry := slots[slot]:
            if entry >> PLACE_BITS == tag:
                yield entry & _PLACE
            slot = slot + 1 & mask

    def _free(self, slot: int) -> int:
        """Return the next slot that is free. Raise ValueError if it is far away."""
        slots, mask = self._slots, self._mask
        for _ in range(LONGEST_RUN):
            slot = slot + 1 & mask
            if not slots[slot]:
                return slot
        self.close()
        raise ValueError("the same name is there thousands of times")

    def close(self) -> None:
        self._slots.release()
        self._map.close()

    def _fill(self, names: Iterable[tuple[bytes, int]], size: int) -> bool:
        """Make a table of so many slots. Return False if there are too many names for it."""
        with tempfile.TemporaryFile(prefix="keywright-") as file:
            file.truncate(size * 8)
            self._map = mmap.mmap(file.fileno(), size * 8)
        self._slots = slots = memoryview(self._map).cast("Q")
        self._mask = mask = size - 1
        room = size * 3 // 4
        for (name, place), _ in zip(names, repeat(None, room), strict=False):
            found = hash(name)
            slot = found & mask
            if slots[slot]:
                slot = self._free(slot)
            slots[slot] = (found >> PLACE_BITS & 0x3FFFFF) << PLACE_BITS | place
            room -= 1
        if room:
            return True
        self.close()
        return False
