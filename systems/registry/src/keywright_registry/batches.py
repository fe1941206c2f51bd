"""Much, a little at a time: no statement is too long, and no operation on Redis misses its deadline."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import TypeVar

__all__ = ["portions"]

T = TypeVar("T")

PORTION = 300


def portions(items: Collection[T]) -> Iterator[list[T]]:
    """All items in their order, as many at a time as are well done at once; a copy, so they may change."""
    rest = iter(list(items))
    while portion := list(islice(rest, PORTION)):
        yield portion
