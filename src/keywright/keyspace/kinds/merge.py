"""Batching of commands on single strings: GETs become MGET, SETs MSET or MSETEX, except on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from keywright.errors import CapabilityError, ServerRefusedError
from keywright.keyspace.call import Command
from keywright.keyspace.codecs import CodecError
from keywright.keyspace.composition import decoded
from keywright.keyspace.kinds.bulk import checked, mget
from keywright.keyspace.kinds.unset import UNSET, Unset
from keywright.keyspace.wires import Effect, Operation, Reply, Rounds, Sound, Wire

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.expiry import Expiry
    from keywright.keyspace.key import Key

SET_MANY = Operation("set_many", b"MSET", Effect.REPEATABLE)
SET_MANY_EXPIRING = Operation("set_many", b"MSETEX", Effect.REPEATABLE)
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


def common_expiry(kinds: Iterable[type[Key]], context: Context) -> Expiry | Unset | None:
    """Return the expiry with which one command can write keys of these kinds; UNSET if none can."""
    expiries = {context.expiry_of(kind) for kind in kinds}
    if len(expiries) > 1:
        return UNSET
    expiry = expiries.pop()
    if expiry is not None and expiry.optional:
        return None
    return expiry if expiry is None or (expiry.uniform and context.expiring_batches) else UNSET


def write_together(
    commands: Sequence[Command[Any]], context: Context, expiry: Expiry | None
) -> Rounds[list[Any]]:
    """Run many SETs without conditions. A batch of them is applied whole or not at all."""
    flat = [b""] * (2 * len(commands))
    flat[::2] = _names(commands, context)
    flat[1::2] = [value for (value,) in map(_operands, commands)]

    def one_by_one() -> list[Wire]:
        return [command.lower(context) for command in commands]

    yield from written(flat, commands[0].key.__class__, CHUNK, expiry, one_by_one, context)
    return decoded(commands, Sound([OK] * len(commands)))


def written(
    flat: list[bytes],
    source: type[Key],
    chunk: int,
    expiry: Expiry | None,
    one_by_one: Callable[[], list[Wire]],
    context: Context,
) -> Rounds[None]:
    """Write names and values, given alternately, in batches of pairs; `one_by_one` if MSETEX is denied."""
    parts = [flat[start : start + 2 * chunk] for start in range(0, len(flat), 2 * chunk)]
    if expiry is None:
        replies = yield [Wire((b"MSET", *part), part[0], SET_MANY, source) for part in parts]
    else:
        ending = expiry.arguments(context)
        replies = yield [
            Wire((b"MSETEX", len(part) // 2, *part, *ending), part[0], SET_MANY_EXPIRING, source)
            for part in parts
        ]
        if any(map(_is_denied, replies)):
            context.expiring_batches = False
            replies = yield one_by_one()
    for reply in replies:
        checked(reply)


def _is_denied(reply: Reply) -> bool:
    """Return whether rules, or an older server after a failover, refused a command, which changed nothing."""
    if isinstance(reply, ServerRefusedError):
        return reply.reply.startswith("NOPERM")
    return isinstance(reply, CapabilityError)


def _names(commands: Sequence[Command[Any]], context: Context) -> list[bytes]:
    spaces = {kind._space for kind in kinds_of(commands)}
    if len(spaces) > 1:
        return [context.name(command.key) for command in commands]
    lead = context.prefixes[spaces.pop()]
    return [lead + command.key._name for command in commands]
