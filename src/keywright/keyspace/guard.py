"""Compare-and-set over any number of keys: checks that must hold, then writes, all or nothing.

This module says what a commit is and runs it as one script, which one server, or one slot of a
cluster, can do. `journal` decides which way a commit goes and carries it across slots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from keywright.errors import UsageError
from keywright.keyspace.call import Call, Command, Effect, Wire, inside
from keywright.keyspace.script import BoundScript, Script

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.key import Key

COMMIT = Script("keywright.keyspace", "commit", Effect.ONCE)
COMMIT_AGAIN = Script("keywright.keyspace", "commit", Effect.REPEATABLE)

# The server's Lua takes at most about 8,000 values in one unpack.
LARGEST_WRITE = 4000


class Check(NamedTuple):
    """One condition on one key, tested by the script that writes."""

    key: Key
    kind: str
    arguments: tuple[bytes | str | int, ...] = ()


def absent(key: Key) -> Check:
    return Check(key, "absent")


def exists(key: Key) -> Check:
    return Check(key, "exists")


def equals(key: Key, value: bytes | None) -> Check:
    """The string is exactly these bytes, or there is none."""
    return Check(key, "absent") if value is None else Check(key, "equals", (value,))


def field_equals(key: Key, field: bytes, value: bytes | None) -> Check:
    return Check(key, "field-absent", (field,)) if value is None else Check(key, "field", (field, value))


def field_vacant(key: Key, field: bytes, value: bytes) -> Check:
    """The field is absent, or holds this value already."""
    return Check(key, "field-vacant", (field, value))


def owned(key: Key) -> Check:
    """Always holds; makes the commit the only one that works on this key, across slots too."""
    return Check(key, "any")


def has_member(key: Key, member: bytes, *, present: bool = True) -> Check:
    return Check(key, "member" if present else "no-member", (member,))


def hash_is(key: Key, members: Mapping[bytes, bytes]) -> Check:
    """The hash holds exactly these members."""
    return Check(key, "hash", tuple(x for pair in members.items() for x in pair))


class Outcome(NamedTuple):
    """Whether a commit was applied; if not, the number of the check that failed; else its replies."""

    applied: bool
    failed: int
    replies: list[Any]

    def __bool__(self) -> bool:
        return self.applied


class Work(NamedTuple):
    """A commit with its names bound: what the script is given, and what the journal keeps."""

    names: list[bytes]
    checks: list[tuple[int, str, list[bytes]]]
    writes: list[tuple[int, list[bytes]]]

    def arguments(self) -> tuple[Any, ...]:
        flat: list[Any] = [len(self.checks), len(self.writes)]
        for index, kind, arguments in self.checks:
            flat += (kind, index + 1, len(arguments), *arguments)
        for index, (verb, *arguments) in self.writes:
            flat += (verb, index + 1, len(arguments), *arguments)
        return tuple(flat)


def bind(context: Context, checks: Sequence[Check], writes: Sequence[Call[Any]]) -> Work:
    """Give a commit its names in one database."""
    names: dict[bytes, int] = {}
    bound_checks = [
        (
            names.setdefault(context.name(check.key), len(names)),
            check.kind,
            list(map(_plain, check.arguments)),
        )
        for check in checks
    ]
    bound_writes: list[tuple[int, list[bytes]]] = []
    for write in writes:
        for wire in _wires(write, context):
            for verb, name, *arguments in inside(wire):
                index = names.setdefault(name, len(names))
                bound_writes += [(index, [verb, *map(_plain, part)]) for part in _parts(verb, arguments)]
    return Work(list(names), bound_checks, bound_writes)


def _wires(write: Call[Any], context: Context) -> list[Wire]:
    if isinstance(write, Command):
        return [write.lower(context)]
    raise UsageError(
        f"{write!r} is not a single command, so it cannot be part of a commit. Run it by itself."
    )


def _parts(verb: bytes, arguments: list[Any]) -> list[list[Any]]:
    if len(arguments) <= LARGEST_WRITE or verb not in (b"SADD", b"SREM", b"HSET", b"HDEL", b"RPUSH"):
        return [arguments]
    return [arguments[start : start + LARGEST_WRITE] for start in range(0, len(arguments), LARGEST_WRITE)]


def run_work(script: Script, work: Work) -> Call[Outcome]:
    """The commit as one script; its names must share a slot on a cluster."""
    return BoundScript(script, work.names, work.arguments()).map(_outcome)


def _outcome(reply: list[Any]) -> Outcome:
    if reply[0] == 1:
        return Outcome(applied=True, failed=-1, replies=reply[1:])
    return Outcome(applied=False, failed=reply[1] - 1, replies=[])


def _plain(argument: Any) -> bytes:
    return argument if isinstance(argument, bytes) else str(argument).encode()
