"""What inference works on: sampled names, and the patterns that it finds in them."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from keywright.tools.infer.facts import Facts

__all__ = ["Observation", "Pattern", "Piece", "Slot"]


class Observation(NamedTuple):
    """A sampled name, the number of names that it stands for, and what the server says of it."""

    name: bytes
    weight: float
    facts: Facts | None = None


class Slot(NamedTuple):
    """A variable of a pattern: the texts that were seen.

    An `optional` one is left out in some names, together with the literal texts `before` and `after` it.
    """

    values: tuple[bytes, ...]
    before: bytes = b""
    after: bytes = b""
    optional: bool = False


Piece: TypeAlias = bytes | Slot


class Pattern(NamedTuple):
    """Literal texts and variables in order, and the names that led to it."""

    pieces: tuple[Piece, ...]
    observations: tuple[Observation, ...]

    @property
    def weight(self) -> float:
        return sum(each.weight for each in self.observations)
