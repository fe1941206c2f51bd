"""What a server says of one key: its type, its expiry and a bounded part of its value."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Facts"]


class Facts(NamedTuple):
    """The type of a key, its time to live, and texts of its value.

    `values` are the value of a string, the members of a set, list or sorted set, or the values of a hash or
    of stream entries; `fields` are the fields of each hash or entry, each with its value.
    """

    redis_type: str
    ttl_ms: int | None
    values: tuple[bytes, ...] = ()
    scores: tuple[bytes, ...] = ()
    fields: tuple[dict[bytes, bytes], ...] = ()
    groups: tuple[bytes, ...] = ()
    """The consumer groups of a stream."""
    size: int = 0
    """The number of members or bytes that the server has, not those that were read."""
