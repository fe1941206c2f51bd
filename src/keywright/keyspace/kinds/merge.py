"""Batching of commands on single strings: GETs become MGET, SETs become MSET, except on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from keywright.keyspace.call import Command
from keywright.keyspace.codecs import CodecError
from keywright.keyspace.composition import decoded
from keywright.keyspace.kinds.bulk import checked, mget
from keywright.keyspace.wires import Effect, Operation, Rounds, Sound, Wire

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.key import Key

SET_MANY = Operation("set_many", b"MSET", Effect.REPEATABLE)
PRESENT = Operation("exists", b"EXISTS", Effect.READ)
OK = b"OK"
CHUNK = 512  # the server begins with the first while the next is packed

_key = attrgetter("key")
_operands = attrgetter("operands")


def kinds_of(commands: Sequence[Command[Any]]) -> set[type[Key]]:
    return set(map(type, map(_key, commands)))


def read_together(commands: Sequence[Command[Any]], context: Context) -> Rounds[list[Any]]:
    """Return the values of many GETs.

    MGET answers nil for a key of another type where GET refuses it. So if something is missing, one EXISTS
    asks whether it really is; only what exists after all is read by a command of its own.
    """
    names = _names(commands, context)
    source = commands[0].key.__class__
    replies = yield mget(names, source, CHUNK)
    found = Sound(chain.from_iterable(map(checked, replies)))
    if None in found:
        missing = [index for index, reply in enumerate(found) if reply is None]
        asked = (b"EXISTS", *[names[index] for index in missing])
        present = checked((yield [Wire(asked, names[missing[0]], PRESENT, source)])[0])
        if present:
            again = yield [commands[index].lower(context) for index in missing]
            for index, reply in zip(missing, again, strict=True):
                found[index] = checked(reply)
    try:
        return decoded(commands, found)
    except CodecError:  # sealed, or wrong: reading one by one opens it, or names it
        return [command.read(reply, context) for command, reply in zip(commands, found, strict=True)]


def write_together(commands: Sequence[Command[Any]], context: Context) -> Rounds[list[Any]]:
    """Run many SETs without conditions or expiry. A batch of them is applied whole or not at all."""
    flat = [b""] * (2 * len(commands))
    flat[::2] = _names(commands, context)
    flat[1::2] = [value for (value,) in map(_operands, commands)]
    replies = yield mset(flat, commands[0].key.__class__, CHUNK)
    for reply in replies:
        checked(reply)
    return decoded(commands, Sound([OK] * len(commands)))


def mset(flat: list[bytes], source: Any, chunk: int) -> list[Wire]:
    """Write names and values, given alternately, with MSET in batches of pairs."""
    size = 2 * chunk
    return [
        Wire((b"MSET", *flat[start : start + size]), flat[start], SET_MANY, source)
        for start in range(0, len(flat), size)
    ]


def _names(commands: Sequence[Command[Any]], context: Context) -> list[bytes]:
    spaces = {kind._space for kind in kinds_of(commands)}
    if len(spaces) > 1:
        return [context.name(command.key) for command in commands]
    lead = context.prefixes[spaces.pop()]
    return [lead + command.key._name for command in commands]
