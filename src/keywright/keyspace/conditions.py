"""Checks of a commit in terms of values: what a key must hold for the writes to be applied.

Each compares the bytes that the codec writes for a value. `stored_…` compare with bytes that were read, for
values that another program may have written in another form, and for sealed values, which have other bytes
each time they are written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from keywright.errors import UsageError
from keywright.keyspace import checks
from keywright.keyspace.checks import Check

if TYPE_CHECKING:
    from keywright.keyspace.key import Key
    from keywright.keyspace.kinds.map import Map
    from keywright.keyspace.kinds.record import Record
    from keywright.keyspace.kinds.set import Set
    from keywright.keyspace.kinds.value import Value

__all__ = ["equals", "field_equals", "has_member", "members_are", "record_equals"]

T = TypeVar("T")
F = TypeVar("F")
V = TypeVar("V")
M = TypeVar("M")


def equals(key: Value[T], value: T | None) -> Check:
    """Check that the key holds this value, or does not exist for None."""
    return checks.equals(key, None if value is None else _comparable(key).encode(value))


def record_equals(key: Record[T], value: T | None) -> Check:
    """Check that the record is exactly this, or does not exist for None."""
    if value is None:
        return checks.absent(key)
    return checks.hash_is(key, _comparable(key).encode_members(key, value))


def field_equals(key: Map[F, V], field: F, value: V | None) -> Check:
    """Check that a field of the map has this value, or does not exist for None."""
    declared = _comparable(key)
    stored = None if value is None else declared.encode(value)
    return checks.field_equals(key, declared.encode_field(field), stored)


def has_member(key: Set[M], member: M, *, present: bool = True) -> Check:
    """Check that the set has the member, or does not have it."""
    return checks.has_member(key, _comparable(key).encode(member), present=present)


def members_are(key: Set[M], members: Iterable[M]) -> Check:
    """Check that the set holds exactly these members."""
    return checks.members_are(key, map(_comparable(key).encode, members))


def _comparable(key: Key) -> Any:
    declared = key.declaration
    if declared.sealed:
        raise UsageError(
            f"{declared.template.source!r} is sealed, so its bytes differ each time it is written. "
            f"Check the bytes that were read, with stored_equals()."
        )
    return declared
