"""The stream commands of the broker as calls that return raw replies, for throughput.

The operations of `Stream` decode each entry into its struct; a consumer of thousands of entries per second
needs only the id and the body.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from keywright import Call, Context, Entry, gather_list
from keywright.errors import KeywrightError, ServerRefusedError
from keywright.operations import (
    Command,
    Effect,
    Operation,
    Reply,
    Rounds,
    Script,
    Steps,
    Wire,
    as_is,
    bound_context,
    nothing,
    patient,
    procedure,
)
from keywright_messaging.redis_streams.schema import DeadLetters, EventStream, GivenUp

__all__ = [
    "Append",
    "PendingEntry",
    "RawEntry",
    "Receive",
    "acknowledge",
    "bury",
    "claim",
    "create_groups",
    "is_missing_group",
    "milliseconds",
    "oldest_pending",
    "others",
    "pending",
    "publish",
    "replay",
    "restamp",
]

RawEntry: TypeAlias = tuple[bytes, list[bytes]]
"""The id, and a list of fields and values in turn."""

_MILLISECOND = timedelta(milliseconds=1)

ADD = Operation("add", b"XADD", Effect.ONCE)
CONSUME = Operation("consume", b"XREADGROUP", Effect.ONCE)
ACKNOWLEDGE = Operation("acknowledge", b"XACK", Effect.REPEATABLE)
PENDING = Operation("pending", b"XPENDING", Effect.READ)
# Sent twice it would count two deliveries.
CLAIM = Operation("claim", b"XCLAIM", Effect.ONCE)
RESTAMP = Operation("restamp", b"XCLAIM", Effect.REPEATABLE)
# Sent twice it finds the entry settled and does nothing.
REPLAY = Script("keywright_messaging.redis_streams", "replay", Effect.REPEATABLE)
BURY = Script("keywright_messaging.redis_streams", "bury", Effect.REPEATABLE)


class PendingEntry(NamedTuple):
    """One delivered and unsettled entry, with its consumer and the number of its deliveries."""

    id: str
    consumer: str
    idle_ms: int
    deliveries: int


def publish(stream: EventStream, body: bytes) -> Call[str]:
    """Append one body and return its id."""
    return Command(ADD, stream, (b"*", b"data", body), bytes.decode)


class Append(Call[list[Reply]]):
    """Append bodies in order, in one batch. Each reply is an id or an error."""

    __slots__ = ("bodies", "stream")

    def __init__(self, stream: EventStream, bodies: Sequence[bytes]) -> None:
        self.stream = stream
        self.bodies = bodies

    def rounds(self, context: Context) -> Rounds[list[Reply]]:
        name = context.name(self.stream)
        return (
            yield [Wire((b"XADD", name, b"*", b"data", body), name, ADD, EventStream) for body in self.bodies]
        )


class Receive(Call[list[tuple[bytes, list[RawEntry]]]]):
    """Read new entries of streams in one slot, at most `count` of each; with `wait`, block for one."""

    __slots__ = ("consumer", "count", "group", "streams", "wait")

    def __init__(
        self,
        streams: Sequence[EventStream],
        group: str,
        consumer: str,
        count: int,
        wait: timedelta | None = None,
    ) -> None:
        self.streams = streams
        self.group = group
        self.consumer = consumer
        self.count = count
        self.wait = wait

    def rounds(self, context: Context) -> Rounds[list[tuple[bytes, list[RawEntry]]]]:
        names = [context.name(stream) for stream in self.streams]
        operation: Operation = CONSUME
        waiting: tuple[Any, ...] = ()
        if self.wait is not None:
            operation = CONSUME._replace(blocking=self.wait / timedelta(seconds=1))
            waiting = (b"BLOCK", milliseconds(self.wait))
        head = (b"XREADGROUP", b"GROUP", self.group, self.consumer, b"COUNT", self.count, *waiting)
        arguments = (*head, b"STREAMS", *names, *[b">"] * len(names))
        replies = yield [patient(Wire(arguments, names[0], operation, EventStream))]
        if isinstance(replies[0], KeywrightError):
            raise replies[0]
        return replies[0] or []


def acknowledge(stream: EventStream, group: str, ids: Sequence[str]) -> Call[int]:
    return Command(ACKNOWLEDGE, stream, (group, *ids), int)


def pending(
    stream: EventStream,
    group: str,
    *,
    after: str | None = None,
    count: int = 100,
    idle: timedelta | None = None,
    consumer: str | None = None,
) -> Call[list[PendingEntry]]:
    """Return unsettled entries in the order of their ids: those idle for this long, or of one consumer."""
    operands: list[Any] = [group]
    if idle is not None:
        operands += (b"IDLE", milliseconds(idle))
    operands += ("-" if after is None else f"({after}", b"+", count)
    if consumer is not None:
        operands.append(consumer)
    return Command(PENDING, stream, tuple(operands), _rows)


def oldest_pending(stream: EventStream, group: str) -> Call[str | None]:
    """Return the lowest id that is delivered and unsettled."""
    return Command(PENDING, stream, (group,), _lowest)


def claim(
    stream: EventStream,
    group: str,
    consumer: str,
    ids: Sequence[str],
    *,
    idle: timedelta = timedelta(0),
    deliveries: int | None = None,
) -> Call[list[RawEntry]]:
    """Take over and return entries that were idle for this long. Counts as a delivery.

    With `deliveries`, set the count to that instead.
    """
    counted: tuple[Any, ...] = () if deliveries is None else (b"RETRYCOUNT", deliveries)
    operands = (group, consumer, milliseconds(idle), *ids, *counted)
    return Command(CLAIM, stream, operands, _present)


def restamp(
    stream: EventStream,
    group: str,
    consumer: str,
    ids: Sequence[str],
    *,
    idle: timedelta = timedelta(0),
    deliveries: int | None = None,
) -> Call[None]:
    """Set the idle time of entries, without a delivery.

    Do nothing if the group is missing: a group that is created again delivers all its entries.
    """
    counted: tuple[Any, ...] = () if deliveries is None else (b"RETRYCOUNT", deliveries)
    operands = (group, consumer, 0, *ids, b"IDLE", milliseconds(idle), *counted, b"JUSTID")
    return Command(RESTAMP, stream, operands, nothing).attempt().map(_unless_group_is_missing)


@procedure
def bury(stream: EventStream, group: str, letter: GivenUp) -> Steps[None]:
    """Move an entry to the dead letters of its group.

    Atomic if both are in one slot. Otherwise it is added to the dead letters first and then acknowledged:
    a crash in between leaves it pending, so it is buried once more.
    """
    dead = DeadLetters(stream.event, group)
    context = yield bound_context()
    if context.one_slot([context.name(stream), context.name(dead)]):
        members = DeadLetters.declaration.encode_members(dead, letter)
        yield BURY.call([stream, dead], (group, letter.id, *chain(*members.items())), as_is)
    else:
        yield dead.add(letter)
        yield acknowledge(stream, group, [letter.id])


@procedure
def replay(stream: EventStream, group: str, letter: Entry[GivenUp]) -> Steps[int]:
    """Return a dead letter to its stream, for its group only. Return 1, or 0 if it was gone.

    Atomic if both are in one slot. Otherwise it is added to the stream first and then removed: a crash in
    between leaves it in both.
    """
    dead = DeadLetters(stream.event, group)
    context = yield bound_context()
    body = letter.value.data
    if context.one_slot([context.name(stream), context.name(dead)]):
        returned: int = yield REPLAY.call([dead, stream], (letter.id, body, group), int)
        return returned
    yield Command(ADD, stream, (b"*", b"data", body, b"only", group), bytes.decode)
    removed: int = yield dead.remove(letter.id)
    return removed


def others(entries: Sequence[RawEntry], group: str) -> list[str]:
    """Return the ids of the entries that are for another group only."""
    wanted = group.encode()
    return [
        identity.decode()
        for identity, fields in entries
        if len(fields) > 2
        and (only := dict(zip(fields[::2], fields[1::2], strict=False)).get(b"only"))
        and only != wanted
    ]


def create_groups(streams: Sequence[EventStream], group: str) -> Call[list[bool]]:
    """Create the group on every stream, from its first entry, and the streams that do not exist."""
    return gather_list([stream.create_group(group) for stream in streams])


def is_missing_group(error: KeywrightError) -> bool:
    """Return whether the stream or its group was deleted while it was read."""
    return isinstance(error, ServerRefusedError) and error.reply.startswith(("NOGROUP", "UNBLOCKED"))


def _unless_group_is_missing(outcome: KeywrightError | None) -> None:
    if outcome is not None and not is_missing_group(outcome):
        raise outcome


def milliseconds(duration: timedelta) -> int:
    return -(-duration // _MILLISECOND)


def _rows(reply: list[list[Any]]) -> list[PendingEntry]:
    return [
        PendingEntry(identity.decode(), consumer.decode("utf-8", "replace"), idle, deliveries)
        for identity, consumer, idle, deliveries in reply
    ]


def _lowest(reply: list[Any]) -> str | None:
    return None if reply[1] is None else str(reply[1], "ascii")


def _present(reply: list[Any]) -> list[RawEntry]:
    # An entry that was deleted while it was pending is null in Redis 6.2, and left out from 7.0 on.
    return [entry for entry in reply if entry is not None and entry[1] is not None]
