"""Operations as values: what to send, and how to read what comes back.

A call does nothing by itself. The engine asks it for its `rounds`: a generator that yields the wires of one
round trip and receives their replies, until it returns the value of the call. Most calls are one command, so
one round; `gather` merges the rounds of several calls, `atomic` makes one transaction of them, and a
`procedure` is a generator of calls for what must read before it writes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias, TypeVar

import msgspec

from keywright.errors import KeywrightError, SealError, StoredDataError
from keywright.keyspace.codecs import CodecError, Plaintext, SealRefused
from keywright.keyspace.wires import (
    PAUSE,
    REPLACE,
    REPLACED,
    TIME,
    TRANSACTION,
    TRANSACTION_ONCE,
    Arguments,
    CommandBatch,
    Effect,
    Operation,
    ReplacementBatch,
    Reply,
    Resting,
    Rounds,
    Transacted,
    Transaction,
    Waiting,
    Wire,
)

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.expiry import Expiry
    from keywright.keyspace.key import Key

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
P = ParamSpec("P")


class Call(Generic[T_co]):
    """An operation as a value: commands, and how to read their replies. A database runs it."""

    __slots__ = ()

    @property
    def one_round(self) -> bool:
        """Whether the call needs one round trip only, so that it can be part of a transaction."""
        return True

    def rounds(self, context: Context) -> Rounds[T_co]:
        """Return a generator of the round trips: it yields commands and receives their replies."""
        raise NotImplementedError

    def map(self, change: Callable[[T_co], U]) -> Call[U]:
        """Return the same call with its value passed through `change`."""
        return Mapped(self, change)

    def attempt(self) -> Call[T_co | KeywrightError]:
        """Return the same call with an error returned instead of raised."""
        return Attempt(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def plain_without_expiry(lower: Callable[P, T]) -> Callable[P, T]:
    """Mark a `lower` that does the same as that of `Command` if the key has no expiry."""
    lower.is_plain = True  # type: ignore[attr-defined]  # a function takes attributes
    return lower


def lowered(
    commands: Sequence[Command[Any]], context: Context, sorts: set[type[Command[Any]]]
) -> Sequence[Wire]:
    """Return the wires of commands of these sorts, as a batch if they need neither seals nor expiries."""
    if sorts == {Replacing}:
        writes: list[Command[Any]] = [command.write for command in commands]  # type: ignore[attr-defined]  # it has
        wires = lowered(writes, context, set(map(type, writes)))
        operation = writes[0].operation
        alike = operation.script is None and all(write.operation is operation for write in writes)
        if alike and type(wires) is CommandBatch:
            return ReplacementBatch(writes, wires.leads)
        return [replaced(wire) for wire in wires]
    kinds: set[type[Key]] = {command.key.__class__ for command in commands}
    if context.overrides or not (
        all(hasattr(sort.lower, "is_plain") for sort in sorts)
        and not any(kind._expiry or kind._field_expiry or kind._sealed for kind in kinds)
    ):
        return [command.lower(context) for command in commands]
    return CommandBatch(commands, {kind: context.prefixes[kind._space] for kind in kinds})


class Command(Call[T], msgspec.Struct, gc=False, eq=False):
    """One command on one key."""

    operation: Operation
    key: Key
    operands: Arguments
    decode: Callable[[Reply], T]

    @property
    def other_keys(self) -> tuple[Key, ...]:
        """The keys that the command touches beside its own."""
        return ()

    @plain_without_expiry
    def lower(self, context: Context) -> Wire:
        """Return the command for a context: with prefix, version, seals and expiry."""
        key = self.key
        name = context.prefixes[key._space] + key._name
        operands = context.seal(key, self.operands) if key._sealed else self.operands
        return Wire((self.operation.verb, name, *operands), name, self.operation, key.__class__)

    def read(self, reply: Reply, context: Context) -> T:
        """Return the value of a reply. Raise the error in its place, or StoredDataError if malformed."""
        if isinstance(reply, KeywrightError):
            raise reply
        try:
            if self.key._sealed:
                reply = context.placed(type(self.key), context.name(self.key), reply)
            return self.decode(reply)
        except CodecError as error:
            raise undecodable(self.key, context, error) from error

    def rounds(self, context: Context) -> Rounds[T]:
        replies = yield [self.lower(context)]
        return self.read(replies[0], context)

    @staticmethod
    def merged(commands: Sequence[Command[Any]], context: Context) -> Rounds[list[Any]] | None:
        """Return rounds that do the same with fewer commands, as MGET for GETs, or None."""
        return None

    def __repr__(self) -> str:
        hidden = self.operands and (self.key._secret or self.key.hides)
        shown = "…" if hidden else " ".join(_shown(operand) for operand in self.operands)
        return f"<{self.operation.verb.decode()} {self.key!r} {shown}>".replace(" >", ">")


class Patient(Command[T]):
    """A command that may make the server wait."""

    def lower(self, context: Context) -> Wire:
        wire = Command.lower(self, context)
        return patient(wire)


class Refreshing(Command[T]):
    """A command on a key that is given its expiry, and those of its fields, in one transaction."""

    def expiry(self, context: Context) -> Expiry | None:
        """Return the expiry that the write gives the key."""
        return context.expiry_for(self.key)

    @plain_without_expiry
    def lower(self, context: Context) -> Wire:
        wire = Command.lower(self, context)
        key = self.key
        fields = key._field_expiry
        if fields is None and key._expiry is None and not context.overrides:
            return wire
        expiry = self.expiry(context)
        if expiry is None and fields is None:
            return wire
        commands = [wire.arguments]
        if fields is not None:
            commands += fields.following(self.key, self.operation.verb, self.operands, context)
        if expiry is not None:
            commands.append(expiry.command(wire.name, context))
        if len(commands) == 1:
            return wire
        return transaction(commands, wire.name, wire.operation, wire.source)

    def read(self, reply: Reply, context: Context) -> T:
        if type(reply) is Transacted:
            reply = reply[0]
        return super().read(reply, context)


class Replacing(Command[None]):
    """A repeatable write of a whole key that deletes what was there before, in one transaction."""

    write: Command[Any]

    @classmethod
    def by(cls, write: Command[Any]) -> Replacing:
        return cls(REPLACE, write.key, (), nothing, write)

    def lower(self, context: Context) -> Wire:
        return replaced(self.write.lower(context))

    def read(self, reply: Reply, context: Context) -> None:
        if isinstance(reply, KeywrightError):
            raise reply

    def __repr__(self) -> str:
        return f"<replace by {self.write!r}>"


class Sliding(Refreshing[T]):
    """A read that renews the expiry when the key's expiry slides."""

    def expiry(self, context: Context) -> Expiry | None:
        expiry = context.expiry_of(type(self.key))
        return expiry if expiry is not None and expiry.sliding else None


class Plain(Call[Reply]):
    """A command without a declared key (PING, CLUSTER SLOTS, …); `name` routes it."""

    __slots__ = ("wire",)

    def __init__(self, operation: Operation, operands: Arguments = (), name: bytes = b"") -> None:
        self.wire = Wire((operation.verb, *operands), name, operation, None)

    def rounds(self, context: Context) -> Rounds[Reply]:
        replies = yield [self.wire]
        if isinstance(replies[0], KeywrightError):
            raise replies[0]
        return replies[0]


def server_ms(name: bytes) -> Call[int]:
    """Return the time of the server that has a name, in epoch ms."""
    return Plain(TIME, (), name).map(lambda reply: int(reply[0]) * 1000 + int(reply[1]) // 1000)


class Mapped(Call[U]):
    __slots__ = ("call", "change")

    def __init__(self, call: Call[T], change: Callable[[T], U]) -> None:
        self.call: Call[Any] = call
        self.change: Callable[[Any], U] = change

    @property
    def one_round(self) -> bool:
        return self.call.one_round

    def rounds(self, context: Context) -> Rounds[U]:
        value = yield from self.call.rounds(context)
        return self.change(value)

    def __repr__(self) -> str:
        return f"{self.call!r}.map({getattr(self.change, '__name__', self.change)})"


class Attempt(Call[T | KeywrightError]):
    __slots__ = ("call",)

    def __init__(self, call: Call[T]) -> None:
        self.call = call

    @property
    def one_round(self) -> bool:
        return self.call.one_round

    def rounds(self, context: Context) -> Rounds[T | KeywrightError]:
        try:
            return (yield from self.call.rounds(context))
        except KeywrightError as error:
            return error


class Prepared(Call[T]):
    """A call on keys that another call must prepare.

    As part of a transaction it follows what preceded the transaction.
    """

    __slots__ = ("call", "first", "keys")

    def __init__(self, first: Call[Any], call: Call[T], keys: frozenset[Key]) -> None:
        self.first = first
        self.call = call
        self.keys = keys

    @property
    def one_round(self) -> bool:
        return self.call.one_round

    def rounds(self, context: Context) -> Rounds[T]:
        if not context.in_transaction:
            yield from self.first.rounds(context)
        return (yield from self.call.rounds(context))

    def __repr__(self) -> str:
        return repr(self.call)


class Ready(Call[T]):
    """A value that needs no round trip, where a call is expected."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def rounds(self, context: Context) -> Rounds[T]:
        yield []
        return self.value


def as_is(reply: Reply) -> Any:
    """Return the reply: a decoder for replies that are values already."""
    return reply


def nothing(reply: object) -> None:
    """Return None: a decoder for replies without information."""
    del reply


def undecodable(key: Key, context: Context, error: CodecError) -> StoredDataError:
    """Return the error for a value that does not decode; it quotes nothing of a key that hides its value."""
    if key.hides:
        error.withhold()
    kind = SealError if isinstance(error, SealRefused) else StoredDataError
    return kind(context.name(key), type(key)._template.source, error.expected, error.found)


def _shown(operand: object) -> str:
    if isinstance(operand, Plaintext):
        return "…"
    text = operand.decode("utf-8", "backslashreplace") if isinstance(operand, bytes) else str(operand)
    return text if len(text) <= 60 else f"{text[:60]}…"


def inside(wire: Wire) -> list[Arguments]:
    """Return the commands of a wire: several for a transaction, with scripts sent whole."""
    if isinstance(wire, Transaction):
        return list(wire.arguments)
    if wire.operation.script is not None:
        # NOSCRIPT inside EXEC could not be repaired without running the rest twice.
        return [(b"EVAL", wire.operation.script.source, *wire.arguments[2:])]
    return [wire.arguments]


def transaction(
    commands: list[Arguments], name: bytes, operation: Operation, source: type[Key] | None
) -> Wire:
    return Transaction(tuple(commands), name, _outer(operation), source)


@functools.lru_cache(256)
def _outer(operation: Operation) -> Operation:
    """Return the operation of a transaction around a command; telemetry counts it by the command's name."""
    outer = TRANSACTION_ONCE if operation.effect is Effect.ONCE else TRANSACTION
    return outer._replace(name=operation.name)


def patient(wire: Wire) -> Wire:
    """Return the wire, as a `Waiting` one if its operation blocks."""
    if not wire.operation.blocking:
        return wire
    return Waiting(wire.arguments, wire.name, wire.operation, wire.source)


def replaced(write: Wire) -> Wire:
    """Return the transaction that deletes a key, and writes it."""
    commands: tuple[Arguments, ...] = (REPLACE.verb, write.name), write.arguments
    if type(write) is not Wire or write.operation.script is not None:
        commands = commands[0], *inside(write)
    return Transaction(commands, write.name, REPLACED, write.source)


Steps: TypeAlias = Generator[Call[Any], Any, T]
"""The body of a procedure: yields calls, receives their values, returns the value of the procedure."""


class Procedure(Call[T]):
    """A generator of calls: each is run, and its value sent back in. Errors are thrown in."""

    __slots__ = ("begin", "label")

    def __init__(self, begin: Callable[[], Steps[T]], label: str) -> None:
        self.begin = begin
        self.label = label

    @property
    def one_round(self) -> bool:
        return False

    def rounds(self, context: Context) -> Rounds[T]:
        track = self.begin()
        try:
            call = next(track)
            while True:
                try:
                    value = yield from call.rounds(context)
                except KeywrightError as error:
                    call = track.throw(error)
                else:
                    call = track.send(value)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def __repr__(self) -> str:
        return f"<{self.label}>"


def procedure(steps: Callable[P, Steps[T]]) -> Callable[P, Call[T]]:
    """Make an operation of a generator function.

    The generator yields calls and receives their values; its return value is that of the operation. An error
    of a call is raised at its `yield`. Every run starts the generator from the beginning, so an operation can
    be run several times, also by a retry. Between two yields other clients may write: check what was read in
    the `commit` that depends on it.

        @procedure
        def promote(order: Order) -> Steps[bool]:
            details = yield order.get()
            if details is None:
                return False
            yield Queue().push(order.order)
            return True
    """
    label = steps.__name__.strip("_").replace("_", " ")

    @functools.wraps(steps)
    def build(*args: P.args, **kwargs: P.kwargs) -> Call[T]:
        return Procedure(functools.partial(steps, *args, **kwargs), label)

    return build


class _BoundContext(Call["Context"]):
    """The context of the database that runs the procedure; no round trip."""

    __slots__ = ()

    def rounds(self, context: Context) -> Rounds[Context]:
        return context
        yield  # the rounds of a call are a generator, here of no round


_BOUND = _BoundContext()


def bound_context() -> Call[Context]:
    """Return a call whose value is the context: prefixes, clock, random numbers, whether there are slots."""
    return _BOUND


class Pause(Call[None]):
    """Lets time pass between two calls of a procedure; the engine decides how."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def rounds(self, context: Context) -> Rounds[None]:
        yield [Resting((self.seconds,), b"", PAUSE, None)]
