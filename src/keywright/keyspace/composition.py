"""Several calls as one: `gather` merges their rounds, `atomic` makes one transaction of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from keywright.errors import CrossSlotError, KeywrightError, UsageError
from keywright.keyspace.call import Attempt, Call, Command, Mapped, Prepared, inside, lowered
from keywright.keyspace.codecs import CodecError
from keywright.keyspace.misuse import raise_explained
from keywright.keyspace.slots import slot_of
from keywright.keyspace.wires import (
    TRANSACTION,
    TRANSACTION_ONCE,
    Arguments,
    CommandBatch,
    Decoded,
    Effect,
    Reply,
    Rounds,
    Sound,
    Transacted,
    Transaction,
    Wire,
    shared_decoder,
)

if TYPE_CHECKING:
    from keywright.keyspace.context import Context

T = TypeVar("T")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")
T5 = TypeVar("T5")


def preparations(calls: Iterable[Call[Any]]) -> Iterable[Call[Any]]:
    """Yield the calls that must precede these calls, at any depth."""
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
        sorts = set(map(type, self.calls))
        if all(issubclass(sort, Command) for sort in sorts):
            return (yield from self._one_round(context, sorts))
        return (yield from _in_step([call.rounds(context) for call in self.calls], self.shape))

    def _one_round(self, context: Context, sorts: set[type[Any]]) -> Rounds[Any]:
        commands: Sequence[Command[Any]] = self.calls  # type: ignore[assignment]  # checked by rounds
        if len(commands) >= MERGED_FROM and context.merging and len(sorts) == 1:
            merged = commands[0].merged(commands, context)
            if merged is not None:
                return self.shape((yield from merged))
        wires = lowered(commands, context, sorts)
        replies = yield wires
        if type(replies) is Decoded:
            return self.shape(replies)
        if type(replies) is Sound:
            try:
                return self.shape(decoded(commands, replies, wires))
            except CodecError:
                pass  # sealed, or wrong: reading one by one opens it, or names it
        return self.shape(
            [command.read(reply, context) for command, reply in zip(commands, replies, strict=True)]
        )

    def __repr__(self) -> str:
        return f"gather({', '.join(map(repr, self.calls))})"


MERGED_FROM = 32  # below it one command each is as fast, and simpler to watch


def decoded(
    commands: Sequence[Command[Any]], replies: Sound, wires: Sequence[Wire] | None = None
) -> list[Any]:
    """Return the values of replies without errors; one shared decoder is mapped over all of them."""
    many = wires.shared_decoder() if type(wires) is CommandBatch else shared_decoder(commands)
    if many is not None and len(commands) == len(replies):
        with contextlib.suppress(Exception):  # one by one it is found what is wrong
            return many(replies)
    return [command.decode(reply) for command, reply in zip(commands, replies, strict=True)]


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
    """Run several calls as one batch, in as few round trips as the longest of them needs.

    Not atomic: other clients may write in between. When one fails the others still run to their end,
    then the first error is raised; `call.attempt()` keeps the values of the others.
    """
    return Gather(calls, tuple)


def gather_list(calls: Iterable[Call[T]]) -> Call[list[T]]:
    """Run a list of calls of one type as one batch, like `gather`."""
    try:
        return Gather(list(calls), list)
    except TypeError as error:
        raise_explained(gather_list, (calls,), {}, error)


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
    """Run all of the calls or none of them, in one transaction.

    Their keys must live in one slot, on a single server too, so that the same code holds on a
    cluster; otherwise CrossSlotError is raised before anything is sent. With `spread=True` keys may
    live anywhere: one transaction on a single server, one transaction per slot on a cluster.
    """
    return Atomic(calls, spread=spread)
