"""Stored times that are compared: by their bytes, since one moment can be written in many ways.

Earlier versions of the bot wrote other offsets and fractions than our codec does.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from keywright import Call, Value
from keywright.keyspace.kinds.value import GET
from keywright.operations import Check, Command, stored_equals

__all__ = ["Moment", "moment_in"]


class Moment(NamedTuple):
    """A time as it was read, and the check that it is still stored so."""

    time: datetime | None
    unchanged: Check


def moment_in(key: Value[datetime]) -> Call[Moment]:
    """The time under a key, for a commit that depends on it."""
    return Command(GET, key, (), lambda stored: Moment(key._decode(stored), stored_equals(key, stored)))
