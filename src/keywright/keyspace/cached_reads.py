"""Which reads may be answered from the memory of the client: declared classes, and commands of one key.

The engine keeps the replies and learns of changes; this module only says what may be kept, and for how long.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from keywright.errors import DeclarationError
from keywright.keyspace.wires import Effect, Wire

if TYPE_CHECKING:
    from keywright.keyspace.key import Key

__all__ = ["Cached", "is_cacheable", "longest_seconds", "names_written", "required", "writes_unnamed"]

Cached: TypeAlias = bool | timedelta
"""Whether reads of a class are cached, or how long at most."""

# The others say who may do what: a lease, a claim or a queue that is read late has changed hands by then.
KINDS = frozenset(
    [
        *["bitmap", "counter", "geo", "hyperloglog", "list", "map", "record", "set", "value"],
        "bit fields",
        "sorted set",
    ]
)
# Commands of one key whose reply follows from its value alone: no cursors, samples, times or other keys.
READS = frozenset(
    b"BITCOUNT BITFIELD_RO BITPOS EXISTS GEODIST GEOHASH GEOPOS GEOSEARCH GET GETBIT GETRANGE HEXISTS HGET "
    b"HGETALL HKEYS HLEN HMGET HSTRLEN HVALS LINDEX LLEN LPOS LRANGE PFCOUNT SCARD SISMEMBER SMEMBERS "
    b"SMISMEMBER STRLEN TYPE ZCARD ZCOUNT ZLEXCOUNT ZMSCORE ZRANGE ZRANGEBYSCORE ZRANK ZREVRANGE "
    b"ZREVRANGEBYSCORE ZREVRANK ZSCORE".split()
)
_OF_ANY_KEYS = frozenset([b"EXISTS", b"PFCOUNT"])
# Commands that change keys without naming them.
_UNNAMED = frozenset([b"EVAL", b"EVALSHA", b"FCALL", b"FLUSHALL", b"FLUSHDB", b"SWAPDB"])


def required(cls: type[Key], cached: Cached) -> Cached:
    """Return what a class declares. Raise DeclarationError if its reads cannot be cached."""
    if cached is False:
        return False
    if cached is not True and (not isinstance(cached, timedelta) or cached <= timedelta()):
        raise DeclarationError(
            cls.__name__, f"cached={cached!r} is not a time", "Write cached=True, or a timedelta above 0."
        )
    if cls.kind not in KINDS:
        raise DeclarationError(
            cls.__name__,
            f"a {cls.kind} says who may do what, so a late answer is wrong",
            "Leave cached out.",
        )
    if cls._expiry is not None and cls._expiry.sliding:
        raise DeclarationError(
            cls.__name__,
            "reads renew its expiry, so they cannot be answered from a cache",
            "Count its expiry since the last write, or leave cached out.",
        )
    if cls._field_expiry is not None:
        raise DeclarationError(
            cls.__name__,
            "its fields expire one by one, of which no client is notified in time",
            "Leave cached out.",
        )
    return cached


def longest_seconds(cached: Cached) -> float:
    """Return how long a reply is kept at most, as far as the declaration says."""
    return cached.total_seconds() if isinstance(cached, timedelta) else math.inf


def is_cacheable(wire: Wire) -> bool:
    """Return whether the reply to a command follows from the value of its key alone."""
    arguments = wire.arguments
    verb = arguments[0]
    return (
        verb in READS
        and wire.operation.effect is Effect.READ
        and type(wire) is Wire
        and arguments[1] == wire.name
        and (len(arguments) == 2 or verb not in _OF_ANY_KEYS)
    )


def names_written(wires: Iterable[Wire], prefixes: tuple[bytes, ...]) -> list[bytes]:
    """Return the arguments of writes that may be names of keys with one of these prefixes.

    A value that looks like a name costs one more read.
    """
    found: list[bytes] = []
    for wire in wires:
        if wire.operation.effect is not Effect.READ:
            _add_names(wire.arguments, prefixes, found)
    return found


def writes_unnamed(wires: Iterable[Wire]) -> bool:
    """Return whether a command among the wires may change keys that it does not name."""
    return any(
        not wire.name and wire.operation.effect is not Effect.READ and wire.operation.verb.upper() in _UNNAMED
        for wire in wires
    )


def _add_names(arguments: Iterable[object], prefixes: tuple[bytes, ...], found: list[bytes]) -> None:
    for argument in arguments:
        if isinstance(argument, bytes):
            if argument.startswith(prefixes):
                found.append(bytes(argument))
        elif isinstance(argument, tuple):
            _add_names(argument, prefixes, found)
        elif isinstance(argument, str) and (name := argument.encode()).startswith(prefixes):
            found.append(name)
