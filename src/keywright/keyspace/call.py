"""Operations as values: what to send, and how to read what comes back.

A call does nothing by itself. The engine asks it for its `rounds`: a generator that yields the
wires of one round trip and receives their replies, until it returns the call's value. Most calls
are one command, so one round; `gather` merges the rounds of several calls, `atomic` makes one
transaction of them, and a `procedure` is a generator of calls for what must read before it writes.

A reply is what the server sent (bytes, int, list, None), or the KeywrightError that took its place.
"""

from __future__ import annotations

import contextlib
import enum
import operator
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, TypeAlias, TypeVar, overload

import msgspec

from keywright.errors import CrossSlotError, KeywrightError, SealError, StoredDataError, UsageError
from keywright.keyspace.codecs import CodecError, Plaintext, SealRefused
from keywright.keyspace.slots import slot_of

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.expiry import Expiry
    from keywright.keyspace.key import Key
    from keywright.keyspace.script import Script

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
P = ParamSpec("P")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")
T5 = TypeVar("T5")

Argument: TypeAlias = bytes | str | int
Arguments: TypeAlias = tuple[Any, ...]
Reply: TypeAlias = Any


class Effect(enum.Enum):
    """What sending a command twice would do; decides whether a lost connection may be retried."""

    READ = "reads"
    REPEATABLE = "writes, and writing again leaves the same state"
    ONCE = "must not be sent twice"


class Operation(NamedTuple):
    """One verb as the engine needs to know it; `blocking` is how many seconds the server may wait."""

    name: str
    verb: bytes
    effect: Effect
    script: Script | None = None
    blocking: float = 0.0


class Wire(msgspec.Struct, gc=False, eq=False, frozen=True):
    """One command with its bound names, ready to be packed; it has exactly one reply.

    Wires and commands are made once a call and thrown away, so both are structs: the cheapest objects
    there are, and not tracked by the garbage collector, since they cannot be part of a cycle.
    """

    arguments: Arguments
    name: bytes
    operation: Operation
    source: type[Key] | None

    def with_arguments(self, arguments: Arguments) -> Wire:
        return Wire(arguments, self.name, self.operation, self.source)


class Waiting(Wire, frozen=True):
    """A command that makes the server wait, `operation.blocking` seconds at most."""


class Resting(Wire, frozen=True):
    """No command at all: a pause of so many seconds."""


class Transaction(Wire, frozen=True):
    """Several commands between MULTI and EXEC; `arguments` holds those of each."""


Rounds: TypeAlias = Generator[list[Wire], list[Reply], T]

TRANSACTION = Operation("atomic", b"MULTI", Effect.REPEATABLE)
TRANSACTION_ONCE = Operation("atomic", b"MULTI", Effect.ONCE)
PAUSE = Operation("pause", b"", Effect.READ)


class Transacted(list[Reply]):
    """The replies of one MULTI … EXEC, in the order of its commands."""


class Sound(list[Reply]):
    """Replies among which there is neither an error nor a transaction."""


class Call(Generic[T_co]):
    """What to send and how to read the answer. Sends nothing until a database runs it."""

    __slots__ = ()

    @property
    def one_round(self) -> bool:
        """Whether one round trip is enough, so that it can be part of a transaction."""
        return True

    def rounds(self, context: Context) -> Rounds[T_co]:
        raise NotImplementedError

    def map(self, change: Callable[[T_co], U]) -> Call[U]:
        """The same call, with its value passed through `change`."""
        return Mapped(self, change)

    def attempt(self) -> Call[T_co | KeywrightError]:
        """The same call, with a failure returned instead of raised."""
        return Attempt(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class Command(Call[T], msgspec.Struct, gc=False, eq=False):
    """One command on one key."""

    operation: Operation
    key: Key
    operands: Arguments
    decode: Callable[[Reply], T]

    @property
    def other_keys(self) -> tuple[Key, ...]:
        """The keys it touches beside its own."""
        return ()

    def lower(self, context: Context) -> Wire:
        key = self.key
        name = context.prefixes[key._space] + key._name
        operands = context.seal(key, self.operands) if key._sealed else self.operands
        return Wire((self.operation.verb, name, *operands), name, self.operation, key.__class__)

    def read(self, reply: Reply, context: Context) -> T:
        """The value in a reply; raises what the reply says went wrong."""
        if isinstance(reply, KeywrightError):
            raise reply
        try:
            if self.key._sealed:
                reply = context.unseal(self.key, reply)
            return self.decode(reply)
        except CodecError as error:
            raise undecodable(self.key, context, error) from error

    def rounds(self, context: Context) -> Rounds[T]:
        replies = yield [self.lower(context)]
        return self.read(replies[0], context)

    @staticmethod
    def merged(commands: Sequence[Command[Any]], context: Context) -> Rounds[list[Any]] | None:
        """What does the same as many of these with fewer commands; None where nothing does."""
        return None

    def __repr__(self) -> str:
        shown = " ".join(_shown(operand) for operand in self.operands) if not self.key._secret else "…"
        return f"<{self.operation.verb.decode()} {self.key!r} {shown}>".replace(" >", ">")


class Patient(Command[T]):
    """A command that may make the server wait."""

    def lower(self, context: Context) -> Wire:
        wire = Command.lower(self, context)
        return patient(wire)


def patient(wire: Wire) -> Wire:
    """A wire that says so when its operation waits."""
    if not wire.operation.blocking:
        return wire
    return Waiting(wire.arguments, wire.name, wire.operation, wire.source)


class Refreshing(Command[T]):
    """A command on a key whose expiry must be renewed with it, in one transaction."""

    def expiry(self, context: Context) -> Expiry | None:
        return context.expiry_of(type(self.key))

    def lower(self, context: Context) -> Wire:
        wire = Command.lower(self, context)
        expiry = self.expiry(context)
        if expiry is None:
            return wire
        return transaction(
            [wire.arguments, expiry.command(wire.name, context)], wire.name, wire.operation, wire.source
        )

    def read(self, reply: Reply, context: Context) -> T:
        if type(reply) is Transacted:
            reply = reply[0]
        return super().read(reply, context)


class Sliding(Refreshing[T]):
    """A read that renews the expiry when the key's expiry slides."""

    def expiry(self, context: Context) -> Expiry | None:
        expiry = context.expiry_of(type(self.key))
        return expiry if expiry is not None and expiry.sliding else None


class Plain(Call[Reply]):
    """A command that belongs to no declared key (PING, CLUSTER SLOTS, …); `name` routes it."""

    __slots__ = ("wire",)

    def __init__(self, operation: Operation, operands: Arguments = (), name: bytes = b"") -> None:
        self.wire = Wire((operation.verb, *operands), name, operation, None)

    def rounds(self, context: Context) -> Rounds[Reply]:
        replies = yield [self.wire]
        if isinstance(replies[0], KeywrightError):
            raise replies[0]
        return replies[0]


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
    """A call that another must precede. As part of a transaction it follows what preceded the transaction."""

    __slots__ = ("call", "first")

    def __init__(self, first: Call[Any], call: Call[T]) -> None:
        self.first = first
        self.call = call

    @property
    def one_round(self) -> bool:
        return self.call.one_round

    def rounds(self, context: Context) -> Rounds[T]:
        if not context.in_transaction:
            yield from self.first.rounds(context)
        return (yield from self.call.rounds(context))

    def __repr__(self) -> str:
        return repr(self.call)


def preparations(calls: Iterable[Call[Any]]) -> Iterable[Call[Any]]:
    """What must precede these calls, however deep inside them."""
    for call in calls:
        if isinstance(call, Prepared):
            yield call.first
        if isinstance(call, Prepared | Mapped | Attempt):
            yield from preparations([call.call])
        elif isinstance(call, Gather | Atomic):
            yield from preparations(call.calls)


class Gather(Call[Any]):
    """Several calls in the round trips of the longest one; all run to their end, then errors are raised."""

    __slots__ = ("calls", "shape")

    def __init__(self, calls: Sequence[Call[Any]], shape: Callable[[Iterable[Any]], Any]) -> None:
        self.calls = calls
        self.shape = shape

    @property
    def one_round(self) -> bool:
        return all(call.one_round for call in self.calls)

    def rounds(self, context: Context) -> Rounds[Any]:
        if all(issubclass(kind, Command) for kind in set(map(type, self.calls))):
            return (yield from self._one_round(context))
        return (yield from _in_step([call.rounds(context) for call in self.calls], self.shape))

    def _one_round(self, context: Context) -> Rounds[Any]:
        commands: Sequence[Command[Any]] = self.calls  # type: ignore[assignment]  # checked by rounds
        merged = _merged(commands, context)
        if merged is not None:
            return self.shape((yield from merged))
        replies = yield [command.lower(context) for command in commands]
        if type(replies) is Sound:
            try:
                return self.shape(decoded(commands, replies))
            except CodecError:
                pass  # sealed, or wrong: reading one by one opens it, or names it
        return self.shape(
            [command.read(reply, context) for command, reply in zip(commands, replies, strict=True)]
        )

    def __repr__(self) -> str:
        return f"gather({', '.join(map(repr, self.calls))})"


MERGED_FROM = 32  # below it one command each is as fast, and simpler to watch


def _merged(commands: Sequence[Command[Any]], context: Context) -> Rounds[list[Any]] | None:
    if len(commands) < MERGED_FROM or not context.merging or len(set(map(type, commands))) > 1:
        return None
    return commands[0].merged(commands, context)


def decoded(commands: Sequence[Command[Any]], replies: Sound) -> list[Any]:
    """The values of sound replies; where all have one decoder with a quick form, without a call each."""
    decoders = set(map(_decoder, commands))
    quick = getattr(decoders.pop(), "quick", None) if len(decoders) == 1 else None
    if quick is not None:
        with contextlib.suppress(Exception):  # something is missing, or wrong
            return list(map(quick, replies))
    return [command.decode(reply) for command, reply in zip(commands, replies, strict=True)]


_decoder = operator.attrgetter("decode")


def _in_step(tracks: list[Rounds[Any]], shape: Callable[[Iterable[Any]], Any]) -> Rounds[Any]:
    results: list[Any] = [None] * len(tracks)
    failure: KeywrightError | None = None
    inbox: dict[int, list[Reply] | None] = dict.fromkeys(range(len(tracks)))
    while inbox:
        wires: list[Wire] = []
        spans: list[tuple[int, int]] = []
        for index, replies in inbox.items():
            try:
                more = next(tracks[index]) if replies is None else tracks[index].send(replies)
            except StopIteration as stop:
                results[index] = stop.value
            except KeywrightError as error:
                failure = failure or error
            else:
                wires += more
                spans.append((index, len(more)))
        if not spans:
            break
        answers = yield wires
        inbox, start = {}, 0
        for index, count in spans:
            inbox[index] = answers[start : start + count]
            start += count
    if failure is not None:
        raise failure
    return shape(results)


class Atomic(Call[Any]):
    """One MULTI … EXEC: every command is applied, or none is."""

    __slots__ = ("calls", "spread")

    def __init__(self, calls: Sequence[Call[Any]], *, spread: bool) -> None:
        self.calls = calls
        self.spread = spread

    def rounds(self, context: Context) -> Rounds[Any]:
        for call in self.calls:
            if not call.one_round:
                raise UsageError(
                    f"{call!r} reads before it writes, so it needs several round trips and cannot be part of "
                    f"atomic(). Run it by itself: it keeps its own guarantees."
                )
        for first in preparations(self.calls):
            yield from first.rounds(context)
        literal = context.literal()
        tracks = [call.rounds(literal) for call in self.calls]
        planned = [next(track) for track in tracks]
        wires = [wire for wires in planned for wire in wires]
        if not wires:
            return tuple(_finish(track, []) for track in tracks)
        groups = _by_slot(wires) if context.sharded or not self.spread else [wires]
        if len(groups) > 1 and not self.spread:
            raise CrossSlotError([(group[0].name, slot_of(group[0].name)) for group in groups])
        answers = yield [_grouped(group) for group in groups]
        answer_of = dict(_ungrouped(groups, answers))
        replies = iter([answer_of[id(wire)] for wire in wires])
        return tuple(
            _finish(track, [next(replies) for _ in mine]) for track, mine in zip(tracks, planned, strict=True)
        )


def _finish(track: Rounds[Any], replies: list[Reply]) -> Any:
    try:
        track.send(replies)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("a call of one round asked for another")


def _by_slot(wires: list[Wire]) -> list[list[Wire]]:
    groups: dict[int, list[Wire]] = {}
    for wire in wires:
        groups.setdefault(slot_of(wire.name), []).append(wire)
    return list(groups.values())


def _grouped(wires: list[Wire]) -> Wire:
    inner: list[Arguments] = []
    for wire in wires:
        inner += inside(wire)
    once = any(wire.operation.effect is Effect.ONCE for wire in wires)
    operation = TRANSACTION_ONCE if once else TRANSACTION
    return Transaction(tuple(inner), wires[0].name, operation, wires[0].source)


def _ungrouped(groups: list[list[Wire]], answers: list[Reply]) -> Iterable[tuple[int, Reply]]:
    for group, answer in zip(groups, answers, strict=True):
        if isinstance(answer, KeywrightError):
            yield from ((id(wire), answer) for wire in group)
            continue
        start = 0
        for wire in group:
            count = len(inside(wire))
            nested = isinstance(wire, Transaction)
            yield id(wire), Transacted(answer[start : start + count]) if nested else answer[start]
            start += count


def inside(wire: Wire) -> list[Arguments]:
    """The commands a wire stands for: several for a transaction, with scripts sent whole."""
    if isinstance(wire, Transaction):
        return list(wire.arguments)
    if wire.operation.script is not None:
        # NOSCRIPT inside EXEC could not be repaired without running the rest twice.
        return [(b"EVAL", wire.operation.script.source, *wire.arguments[2:])]
    return [wire.arguments]


def transaction(
    commands: list[Arguments], name: bytes, operation: Operation, source: type[Key] | None
) -> Wire:
    outer = TRANSACTION_ONCE if operation.effect is Effect.ONCE else TRANSACTION
    return Transaction(tuple(commands), name, outer._replace(name=operation.name), source)


class Procedure(Call[T]):
    """A generator of calls: each is run, and its value sent back in. Errors are thrown in."""

    __slots__ = ("label", "steps")

    def __init__(self, steps: Callable[[Context], Generator[Call[Any], Any, T]], label: str) -> None:
        self.steps = steps
        self.label = label

    @property
    def one_round(self) -> bool:
        return False

    def rounds(self, context: Context) -> Rounds[T]:
        track = self.steps(context)
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


class Pause(Call[None]):
    """Lets time pass between two calls of a procedure; the engine decides how."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def rounds(self, context: Context) -> Rounds[None]:
        yield [Resting((self.seconds,), b"", PAUSE, None)]


class Ready(Call[T]):
    """A value that needs no round trip, where a call is expected."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def rounds(self, context: Context) -> Rounds[T]:
        yield []
        return self.value


@overload
def gather(a: Call[T1], b: Call[T2], /) -> Call[tuple[T1, T2]]: ...
@overload
def gather(a: Call[T1], b: Call[T2], c: Call[T3], /) -> Call[tuple[T1, T2, T3]]: ...
@overload
def gather(a: Call[T1], b: Call[T2], c: Call[T3], d: Call[T4], /) -> Call[tuple[T1, T2, T3, T4]]: ...
@overload
def gather(
    a: Call[T1], b: Call[T2], c: Call[T3], d: Call[T4], e: Call[T5], /
) -> Call[tuple[T1, T2, T3, T4, T5]]: ...
@overload
def gather(*calls: Call[T]) -> Call[tuple[T, ...]]: ...
def gather(*calls: Call[Any]) -> Call[Any]:
    """Several calls as one, in as few round trips as the longest of them needs.

    Not atomic: other clients may act in between. When one fails the others still run to their end,
    then the first error is raised; `call.attempt()` keeps the values of the others.
    """
    return Gather(calls, tuple)


def gather_list(calls: Iterable[Call[T]]) -> Call[list[T]]:
    """Like `gather`, for a list of calls of one type."""
    return Gather(list(calls), list)


@overload
def atomic(a: Call[T1], b: Call[T2], /, *, spread: bool = ...) -> Call[tuple[T1, T2]]: ...
@overload
def atomic(a: Call[T1], b: Call[T2], c: Call[T3], /, *, spread: bool = ...) -> Call[tuple[T1, T2, T3]]: ...
@overload
def atomic(
    a: Call[T1], b: Call[T2], c: Call[T3], d: Call[T4], /, *, spread: bool = ...
) -> Call[tuple[T1, T2, T3, T4]]: ...
@overload
def atomic(*calls: Call[T], spread: bool = ...) -> Call[tuple[T, ...]]: ...
def atomic(*calls: Call[Any], spread: bool = False) -> Call[Any]:
    """All of the calls or none of them, in one transaction.

    Their keys must live in one slot, on a single server too, so that the same code holds on a
    cluster; otherwise CrossSlotError is raised before anything is sent. With `spread=True` keys may
    live anywhere: one transaction on a single server, one transaction per slot on a cluster.
    """
    return Atomic(calls, spread=spread)


def procedure(
    steps: Callable[P, Callable[[Context], Generator[Call[Any], Any, T]]],
) -> Callable[P, Call[T]]:
    """Make a call of a function that returns a generator function over the context."""

    def build(*args: P.args, **kwargs: P.kwargs) -> Call[T]:
        return Procedure(steps(*args, **kwargs), steps.__name__)

    build.__name__ = steps.__name__
    build.__doc__ = steps.__doc__
    return build


def as_is(reply: Reply) -> Any:
    """A decoder for replies that are values already."""
    return reply


def nothing(reply: object) -> None:
    """A decoder for replies that say nothing."""
    del reply


def undecodable(key: Key, context: Context, error: CodecError) -> StoredDataError:
    kind = SealError if isinstance(error, SealRefused) else StoredDataError
    return kind(context.name(key), type(key)._template.source, error.expected, error.found)


def _shown(operand: object) -> str:
    if isinstance(operand, Plaintext):
        return "…"
    text = operand.decode("utf-8", "backslashreplace") if isinstance(operand, bytes) else str(operand)
    return text if len(text) <= 60 else f"{text[:60]}…"
