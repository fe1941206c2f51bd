"""Conditions on stored bytes, as data: a commit applies its writes only if all of them hold.

`conditions` has the same in terms of values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from keywright.keyspace.key import Key

__all__ = [
    "Check",
    "absent",
    "entry_exists",
    "equals",
    "exists",
    "field_equals",
    "has_member",
    "hash_is",
    "items_are",
    "members_are",
    "owned",
    "score_equals",
    "serialised_as",
]


class Check(NamedTuple):
    """One condition on one key, tested by the script that writes."""

    key: Key
    kind: str
    arguments: tuple[bytes | str | int, ...] = ()


def absent(key: Key) -> Check:
    """Require that the key does not exist."""
    return Check(key, "absent")


def exists(key: Key) -> Check:
    """Require that the key exists."""
    return Check(key, "exists")


def equals(key: Key, value: bytes | None) -> Check:
    """The string is exactly these bytes, or there is none."""
    return Check(key, "absent") if value is None else Check(key, "equals", (value,))


def field_equals(key: Key, field: bytes, value: bytes | None) -> Check:
    """Require that a field of the hash has exactly these bytes, or with None that it does not exist."""
    return Check(key, "field-absent", (field,)) if value is None else Check(key, "field", (field, value))


def owned(key: Key) -> Check:
    """Always holds; makes the commit the only one that works on this key, across slots too."""
    return Check(key, "any")


def has_member(key: Key, member: bytes, *, present: bool = True) -> Check:
    """Require that the set has a member, or with `present=False` that it does not."""
    return Check(key, "member" if present else "no-member", (member,))


def members_are(key: Key, members: Iterable[bytes]) -> Check:
    """The set holds exactly these members."""
    return Check(key, "members", tuple(members))


def score_equals(key: Key, member: bytes, score: bytes | None) -> Check:
    """The sorted set has the member with this score, written as ZSCORE replies, or does not have it."""
    return Check(key, "no-score", (member,)) if score is None else Check(key, "score", (member, score))


def items_are(key: Key, item: bytes, count: int) -> Check:
    """The list holds the item so many times."""
    return Check(key, "items", (item, count))


def entry_exists(key: Key, entry: bytes, *, present: bool = True) -> Check:
    """The stream has the entry of this id, or does not have it."""
    return Check(key, "entry" if present else "no-entry", (entry,))


def serialised_as(key: Key, digest: str) -> Check:
    """The serialisation of the key (DUMP) has this SHA-1, in hex. That of a set may change by itself."""
    return Check(key, "serialised", (digest,))


def hash_is(key: Key, members: Mapping[bytes, bytes]) -> Check:
    """The hash holds exactly these members."""
    return Check(key, "hash", tuple(x for pair in members.items() for x in pair))
