"""Compare-and-set over any number of keys: checks that must hold, then writes, all or nothing.

This module defines a commit and runs it as one script, on one server or in one slot of a cluster.
`journal` decides which way a commit goes and carries it across slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from keywright.errors import UsageError, WrongTypeError
from keywright.keyspace.call import Call, Command, Mapped, Prepared, Ready, inside
from keywright.keyspace.checks import Check
from keywright.keyspace.composition import Atomic, Gather
from keywright.keyspace.raw_commands import RawCommand
from keywright.keyspace.script import BoundScript, Script
from keywright.keyspace.wires import Arguments, Effect, Wire

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.key import Key

COMMIT = Script("keywright.keyspace", "commit", Effect.ONCE)
COMMIT_AGAIN = Script("keywright.keyspace", "commit", Effect.REPEATABLE)

# The server's Lua takes at most about 8,000 values in one unpack. Even, so that pairs stay together.
LARGEST_WRITE = 4000
SPLIT = frozenset(
    [b"SADD", b"SREM", b"HSET", b"HDEL", b"RPUSH", b"LPUSH", b"ZADD", b"ZREM", b"XDEL", b"XACK"]
)
ZADD_OPTIONS = frozenset([b"NX", b"XX", b"GT", b"LT", b"CH"])

# The type a command needs. Met in mid-script, a key of another type would leave half a commit.
NEEDS = {
    verb: kind
    for kind, verbs in {
        "set": (b"SADD", b"SREM", b"SPOP"),
        "hash": (b"HSET", b"HDEL", b"HSETNX", b"HINCRBY", b"HPEXPIRE", b"HPEXPIREAT", b"HPERSIST"),
        "zset": (
            b"ZADD",
            b"ZREM",
            b"ZINCRBY",
            b"ZREMRANGEBYSCORE",
            b"ZREMRANGEBYRANK",
            b"ZPOPMIN",
            b"ZPOPMAX",
        ),
        "list": (b"LPUSH", b"RPUSH", b"LPOP", b"RPOP", b"LSET", b"LREM", b"LTRIM", b"LINSERT"),
        "stream": (b"XADD", b"XDEL", b"XTRIM", b"XACK"),
        "string": (b"INCRBY", b"APPEND", b"GETEX", b"GETDEL", b"SET"),
    }.items()
    for verb in verbs
}
# Commands on keys of any type. With those above they are all that a commit may write: each has one key.
ANY_TYPE = (b"UNLINK", b"PEXPIRE", b"PEXPIREAT", b"PERSIST", b"TOUCH")


def is_writable(kind: type[Key] | None, verb: bytes) -> bool:
    """Return whether a commit may write this command to keys of a class."""
    return kind is not None and (verb in ANY_TYPE or NEEDS.get(verb) == kind.redis_type)


class Outcome(NamedTuple):
    """The result of a commit: its replies, or the number of the check that failed."""

    applied: bool
    failed: int
    replies: list[Any]

    def __bool__(self) -> bool:
        return self.applied


class Work(NamedTuple):
    """A commit with its names bound, as the script gets it and the journal keeps it."""

    names: list[bytes]
    checks: list[tuple[int, str, list[bytes]]]
    writes: list[tuple[int, list[bytes]]]
    later: Sequence[tuple[int, list[bytes]]] = ()  # not written yet, but it must be possible
    kinds: Sequence[type[Key]] = ()  # the classes of the names, where a commit is bound

    def arguments(self) -> tuple[Any, ...]:
        fits = [(index, "fits", [needed.encode()]) for index, needed in self.needs().items()]
        checks = [*self.checks, *fits]
        flat: list[Any] = [len(checks), len(self.writes)]
        for index, kind, arguments in checks:
            flat += (kind, index + 1, len(arguments), *arguments)
        for index, (verb, *arguments) in self.writes:
            flat += (verb, index + 1, len(arguments), *arguments)
        return tuple(flat)

    def needs(self) -> dict[int, str]:
        """Return the Redis type that each name must have, where it exists, for every write to succeed."""
        needed: dict[int, str] = {}
        replaced = set()
        for index, (verb, *arguments) in (*self.writes, *self.later):
            if verb in (b"UNLINK", b"SET") and b"GET" not in arguments[1:]:
                replaced.add(index)
            elif verb in NEEDS and index not in replaced:
                needed.setdefault(index, NEEDS[verb])
        return needed


def bind(context: Context, checks: Sequence[Check], writes: Sequence[Call[Any]]) -> Work:
    """Bind a commit to the names of its keys in one database. The names of the checks come first."""
    names: dict[bytes, int] = {}
    kinds: list[type[Key]] = []

    def number(name: bytes, kind: type[Key]) -> int:
        if name not in names:
            names[name] = len(names)
            kinds.append(kind)
        return names[name]

    bound_checks = [
        (
            number(context.name(check.key), type(check.key)),
            check.kind,
            list(map(_plain, check.arguments)),
        )
        for check in checks
    ]
    bound_writes: list[tuple[int, list[bytes]]] = []
    for write in writes:
        for wire in _wires(write, context):
            for verb, name, *arguments in map(_addressed, inside(wire)):
                if wire.source is None or not is_writable(wire.source, verb):
                    raise UsageError(
                        f"{write!r}: {verb.decode()} cannot be part of a commit on {name!r}. Use a command "
                        f"that writes one key of its type, or run it by itself."
                    )
                index = number(name, wire.source)
                bound_writes += [(index, [verb, *map(_plain, part)]) for part in _parts(verb, arguments)]
    return Work(list(names), bound_checks, bound_writes, kinds=kinds)


def _addressed(command: Arguments) -> Arguments:
    """Return a command with its key second: the script of an expiry is a command of commit.lua."""
    if command[0] != b"EVAL":
        return command
    _, _, _, name, ttl_ms = command
    return b"PEXPIRE", name, ttl_ms, b"NX"


def repeatable(context: Context, writes: Sequence[Call[Any]]) -> bool:
    """Return whether the writes are idempotent together."""
    wires = (wire for write in writes for wire in _wires(write, context))
    return all(wire.operation.effect is not Effect.ONCE for wire in wires)


def _wires(write: Call[Any], context: Context) -> list[Wire]:
    if isinstance(write, Command):
        if write.other_keys:
            raise UsageError(
                f"{write!r} writes several keys at once, so it cannot be part of a commit. Split it."
            )
        return [write.lower(context)]
    if isinstance(write, Mapped | Prepared):
        return _wires(write.call, context)
    if isinstance(write, Atomic | Gather):
        return [wire for call in write.calls for wire in _wires(call, context)]
    if isinstance(write, Ready):
        return []
    if isinstance(write, RawCommand):
        raise UsageError(
            f"{write!r} does not say which of its words is written, so it cannot be part of a commit. "
            f"Use a Command of one key, or run it by itself."
        )
    raise UsageError(f"{write!r} reads before it writes, so it cannot be part of a commit. Run it by itself.")


def moving_keys(checks: Sequence[Check], writes: Sequence[Call[Any]]) -> list[Key]:
    """Return the keys of a commit that may still have a former name."""
    keys = [check.key for check in checks]
    for write in writes:
        keys += _keys(write)
    return list(dict.fromkeys(key for key in keys if key._former))


def _keys(write: Call[Any]) -> list[Key]:
    if isinstance(write, Command):
        return [write.key]
    if isinstance(write, Mapped | Prepared):
        return _keys(write.call)
    if isinstance(write, Atomic | Gather):
        return [key for call in write.calls for key in _keys(call)]
    return []


def _parts(verb: bytes, arguments: list[Any]) -> list[list[Any]]:
    if len(arguments) <= LARGEST_WRITE:
        return [arguments]
    if verb not in SPLIT:
        # In mid-script it would fail after the writes before it.
        raise UsageError(
            f"{verb.decode()} with {len(arguments)} arguments is too large for a commit. Split it, or run it "
            f"by itself."
        )
    head = _head(verb, arguments)
    rest = arguments[len(head) :]
    return [[*head, *rest[start : start + LARGEST_WRITE]] for start in range(0, len(rest), LARGEST_WRITE)]


def _head(verb: bytes, arguments: list[Any]) -> list[Any]:
    """Return the beginning that all parts of a command share."""
    if verb == b"ZADD":
        return list(takewhile(ZADD_OPTIONS.__contains__, arguments))
    return arguments[:1] if verb == b"XACK" else []


def run_work(script: Script, work: Work) -> Call[Outcome]:
    """Run a commit as one script. On a cluster its names must share a slot."""

    def outcome(reply: list[Any]) -> Outcome:
        if reply[0] == 1:
            return Outcome(applied=True, failed=-1, replies=reply[1:])
        failed = reply[1] - 1
        if failed >= len(work.checks):
            index, needed = list(work.needs().items())[failed - len(work.checks)]
            raise WrongTypeError(work.names[index], "no template", f"a {needed}", "another Redis type")
        return Outcome(applied=False, failed=failed, replies=[])

    return BoundScript(script, work.names, work.arguments()).map(outcome)


def _plain(argument: Any) -> bytes:
    return argument if isinstance(argument, bytes) else str(argument).encode()
