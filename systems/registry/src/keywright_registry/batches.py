"""`itertools.batched`, which Python 3.11 does not have, with the batch size of this system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

__all__ = ["BATCH_SIZE", "batched"]

T = TypeVar("T")

BATCH_SIZE = 300
"""Few enough for one SQL statement and for the deadline of one Redis call."""


def batched(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield the items in order, at most BATCH_SIZE at a time. The source may change meanwhile."""
    rest = iter(list(items))
    while batch := list(islice(rest, BATCH_SIZE)):
        yield batch
