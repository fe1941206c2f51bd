"""Stored times that a commit depends on, compared by their bytes.

One moment can be written in many ways, and earlier versions of the bot wrote other offsets and fractions than
our codec does.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from keywright import Call, Value
from keywright.operations import Check, Command, Effect, Operation, Reply, stored_equals

__all__ = ["Moment", "moment_in"]

GET = Operation("get", b"GET", Effect.READ)


class Moment(NamedTuple):
    """A time as it was read, and the check that the same bytes are still stored."""

    time: datetime | None
    unchanged: Check


def moment_in(key: Value[datetime]) -> Call[Moment]:
    """Read the time under a key, for a commit that depends on it."""

    def moment(stored: Reply) -> Moment:
        time = None if stored is None else key.declaration.decode(stored)
        return Moment(time, stored_equals(key, stored))

    return Command(GET, key, (), moment)
