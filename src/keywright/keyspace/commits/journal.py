"""Commits, and the two-phase journal that carries one across the slots of a cluster.

No server can write two slots atomically, so a commit whose keys live in several goes like this:

1. its plan is written to the journal, as an intent in state P (preparing);
2. in every slot one script tests that slot's checks and leaves a marker beside its keys;
3. the intent moves from P to C (committed), or to A (aborted): this one write decides;
4. in every slot one script applies the writes and removes the marker, in that order of nothing
   or both, so that a process which wakes up late finds no marker and changes nothing;
5. the intent is dropped.

A process that dies before 3 leaves markers that undo to nothing; after 3, writes that anyone can
finish. `recover` does so for every intent, and so does any commit or relation read that meets a
marker. A marker whose intent is gone means nothing and is removed when met. Readers of single keys
may see one side before the other between 3 and 5; that window is what a cluster costs.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeVar

import msgspec

from keywright.errors import (
    ConflictError,
    ConnectionLostError,
    DeadlineError,
    KeywrightError,
    OutcomeUnknownError,
)
from keywright.keyspace.alphabets import Hex, TagText
from keywright.keyspace.call import Call, Command, Pause, Procedure, Steps, as_is, bound_context, procedure
from keywright.keyspace.checks import Check
from keywright.keyspace.codecs import Codec, Raw
from keywright.keyspace.commits.work import COMMIT, COMMIT_AGAIN, Outcome, Work, bind, moving_keys, run_work
from keywright.keyspace.composition import gather, gather_list
from keywright.keyspace.key import Key
from keywright.keyspace.renames import moved
from keywright.keyspace.script import Script
from keywright.keyspace.slots import hash_tag
from keywright.keyspace.space import Keyspace
from keywright.keyspace.wires import Effect, Operation, Reply, Rounds, Wire

if TYPE_CHECKING:
    from keywright.keyspace.context import Context

T = TypeVar("T")

GRACE = timedelta(seconds=5)
ATTEMPTS = 24
SHARDS = tuple("0123456789abcdef")

journal = Keyspace(
    "keywright", "The journal of commits that reach across the slots of a cluster.", prefix="keywright"
)

GET = Operation("journal", b"HGET", Effect.READ)
ALL = Operation("journal", b"HGETALL", Effect.READ)
# Never over an intent that is there: a copy that arrives late must not make a decided one undecided.
PUT = Operation("journal", b"HSETNX", Effect.REPEATABLE)
DECIDE = Script("keywright.keyspace", "decide", Effect.REPEATABLE)
DECIDE_ONCE = Script("keywright.keyspace", "decide", Effect.ONCE)


class Intents(Key, key="intents:<shard>", space=journal):
    """The intents that are under way, by id: a state letter (P, C, A) and the plan in MessagePack."""

    redis_type: ClassVar[str] = "hash"
    kind: ClassVar[str] = "map"
    shard: Annotated[str, Hex(1)]

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        return (Raw(),)

    @classmethod
    def holding(cls, intent: bytes) -> Intents:
        return cls(intent[:1].decode())


class Marker(Key, key="held:{<tag>}", space=journal):
    """The intents at work on the keys of one hash tag: field `x` for the only one, ids for shared ones."""

    redis_type: ClassVar[str] = "hash"
    kind: ClassVar[str] = "map"
    tag: Annotated[str, TagText()]

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        return (Raw(),)


class CommitPart(msgspec.Struct, array_like=True, frozen=True):
    """The part of a commit on the keys of one hash tag."""

    names: list[bytes]
    checks: list[tuple[int, str, list[bytes]]]
    writes: list[tuple[int, list[bytes]]]

    @property
    def exclusive(self) -> bool:
        return bool(self.checks)

    @property
    def marker(self) -> Marker:
        return Marker(hash_tag(self.names[0]).decode())


class CommitPlan(msgspec.Struct, array_like=True, frozen=True):
    """A commit as the journal keeps it, with the time it was begun."""

    at_ms: int
    parts: list[CommitPart]


_read_plan = msgspec.msgpack.Decoder(CommitPlan).decode
_write_plan = msgspec.msgpack.encode


def commit(
    label: str, checks: Sequence[Check], writes: Sequence[Call[Any]], *, subject: object = None
) -> Call[Outcome]:
    """Apply the writes if every check holds, all or nothing, in one round trip where one script can do it.

    Observers see the label with every command of the commit, so it must be a constant. An entity is
    named by the `subject`, which only errors show.
    """
    shown = label if subject is None else f"{label} {subject}"
    return Labelled(Procedure(partial(_committed, shown, checks, writes), shown), label)


def _committed(shown: str, checks: Sequence[Check], writes: Sequence[Call[Any]]) -> Steps[Outcome]:
    context = yield bound_context()
    for key in moving_keys(checks, writes):
        yield moved(key)
    work = bind(context, checks, writes)
    for attempt in range(ATTEMPTS):
        outcome = yield from _once(work, context)
        if outcome.failed != BUSY:
            return outcome
        yield Pause(context.random.uniform(0, 0.004 * min(attempt + 1, 12)))
    raise ConflictError(shown, ATTEMPTS)


class Labelled(Call[T]):
    """A call whose commands carry a label for observers: `decide Home ↔ Residents`."""

    __slots__ = ("call", "label")

    def __init__(self, call: Call[T], label: str) -> None:
        self.call = call
        self.label = label

    @property
    def one_round(self) -> bool:
        return self.call.one_round

    def rounds(self, context: Context) -> Rounds[T]:
        rounds = self.call.rounds(context)
        try:
            wires = next(rounds)
            while True:
                wires = rounds.send((yield [_labelled(wire, self.label) for wire in wires]))
        except StopIteration as stop:
            value: T = stop.value
            return value

    def __repr__(self) -> str:
        return repr(self.call)


def _labelled(wire: Wire, label: str) -> Wire:
    return type(wire)(wire.arguments, wire.name, _operation(wire.operation, label), wire.source)


@lru_cache(1024)
def _operation(operation: Operation, label: str) -> Operation:
    return operation._replace(name=f"{operation.name} {label}")


BUSY = -2


def _once(work: Work, context: Context) -> Steps[Outcome]:
    if not context.sharded:
        alone: Outcome = yield run_work(COMMIT, work)
        return alone
    if context.one_slot(work.names):
        return (yield from _in_one_slot(work, context))
    return (yield from _across_slots(work, context))


def _in_one_slot(work: Work, context: Context) -> Steps[Outcome]:
    """Commit in one script, which also respects the markers of commits across slots."""
    checked = {hash_tag(work.names[index]) for index, _, _ in work.checks}
    markers = [Marker(tag.decode()) for tag in checked]
    names = [*work.names, *map(context.name, markers)]
    vacant = [(len(work.names) + i, "field-absent", [b"x"]) for i in range(len(markers))]
    outcome: Outcome = yield run_work(COMMIT, Work(names, [*vacant, *work.checks], work.writes))
    if outcome.applied:
        return outcome
    if outcome.failed < len(markers):
        yield from _settle_marker(markers[outcome.failed], context)
        return Outcome(applied=False, failed=BUSY, replies=[])
    return Outcome(applied=False, failed=outcome.failed - len(markers), replies=[])


def _across_slots(work: Work, context: Context) -> Steps[Outcome]:
    intent = secrets.token_hex(12).encode()
    parts = _split(work)
    plan = _write_plan(CommitPlan(context.now_ms(), parts))
    intents = Intents.holding(intent)
    yield Command(PUT, intents, (intent, b"P" + plan), as_is)
    try:
        prepared: list[Outcome] = yield gather_list(_prepare(part, intent, context) for part in parts)
    except (ConnectionLostError, DeadlineError):
        raise  # a node is away, so undoing would fail too: the next commit that meets the markers does it
    except KeywrightError as error:
        yield from _undo(parts, intent, context)
        if isinstance(error, OutcomeUnknownError):
            return Outcome(applied=False, failed=BUSY, replies=[])
        raise
    if not all(prepared):
        yield from _undo(parts, intent, context)
        return (yield from _refusal(parts, prepared, context))
    if (yield from _commit_intent(intent)) != b"C":
        yield from _undo(parts, intent, context)
        return Outcome(applied=False, failed=BUSY, replies=[])
    yield from _finish(parts, intent, context)
    return Outcome(applied=True, failed=-1, replies=[])


def _commit_intent(intent: bytes) -> Steps[bytes]:
    """Decide an intent. Return the state it has then."""
    intents = Intents.holding(intent)
    call: Call[bytes] = DECIDE_ONCE.call([intents], (intent, b"P", b"C"), as_is)
    state: bytes
    try:
        state = yield call
    except OutcomeUnknownError:
        # Once it is gone nothing shows whether it was committed and finished, or aborted.
        if (yield Command(GET, intents, (intent,), as_is)) is None:
            raise
        state = yield call
    return state


def _refusal(parts: list[CommitPart], prepared: list[Outcome], context: Context) -> Steps[Outcome]:
    busy = [p.marker for p, o in zip(parts, prepared, strict=True) if not o and p.exclusive and o.failed == 0]
    for marker in busy:
        yield from _settle_marker(marker, context)
    return Outcome(applied=False, failed=BUSY if busy else 0, replies=[])


def _split(work: Work) -> list[CommitPart]:
    tags: dict[bytes, list[int]] = {}
    for index, name in enumerate(work.names):
        tags.setdefault(hash_tag(name), []).append(index)
    return [_part_of(work, indexes) for indexes in tags.values()]


def _part_of(work: Work, indexes: list[int]) -> CommitPart:
    place = {index: number for number, index in enumerate(indexes)}
    return CommitPart(
        [work.names[index] for index in indexes],
        [(place[i], kind, arguments) for i, kind, arguments in work.checks if i in place],
        [(place[i], arguments) for i, arguments in work.writes if i in place],
    )


def _prepare(part: CommitPart, intent: bytes, context: Context) -> Call[Outcome]:
    """Test the checks and leave the marker. The marker's own check comes first, as number 0.

    Sent once only: a copy that arrives after the intent was applied would have it applied again.
    """
    field, value = _held(part, intent)
    vacant = [(0, "field-vacant", [field, value])] if part.exclusive else []
    checks = [*vacant, *((index + 1, kind, arguments) for index, kind, arguments in part.checks)]
    later = [(index + 1, arguments) for index, arguments in part.writes]
    names = [context.name(part.marker), *part.names]
    return run_work(COMMIT, Work(names, checks, [(0, [b"HSET", field, value])], later))


def _apply(part: CommitPart, intent: bytes, context: Context) -> Call[Outcome]:
    field, value = _held(part, intent)
    writes = [(index + 1, arguments) for index, arguments in part.writes]
    mine = [(0, "field", [field, value])]
    return _on_part(part, mine, [*writes, (0, [b"HDEL", field])], context)


def _release(part: CommitPart, intent: bytes, context: Context) -> Call[Outcome]:
    field, value = _held(part, intent)
    mine = [(0, "field", [field, value])]
    return _on_part(part, mine, [(0, [b"HDEL", field])], context)


def _on_part(
    part: CommitPart,
    checks: list[tuple[int, str, list[bytes]]],
    writes: list[tuple[int, list[bytes]]],
    context: Context,
) -> Call[Outcome]:
    names = [context.name(part.marker), *part.names]
    return run_work(COMMIT_AGAIN, Work(names, checks, writes))


def _held(part: CommitPart, intent: bytes) -> tuple[bytes, bytes]:
    return (b"x", intent) if part.exclusive else (intent, b"s")


def _finish(parts: list[CommitPart], intent: bytes, context: Context) -> Steps[None]:
    """Apply a committed intent. The exclusive parts go last: their keys guard what the others write."""
    shared = [part for part in parts if not part.exclusive]
    yield gather_list(_apply(part, intent, context) for part in shared)
    yield gather_list(_apply(part, intent, context) for part in parts if part.exclusive)
    yield _decide(intent, b"C", b"")


def _undo(parts: list[CommitPart], intent: bytes, context: Context) -> Steps[bool]:
    """Abort an intent, remove its markers, then drop it. Return False if it was committed after all."""
    if (yield _decide(intent, b"P", b"A")) == b"C":
        return False
    yield gather_list(_release(part, intent, context) for part in parts)
    yield _decide(intent, b"A", b"")
    return True


def _decide(intent: bytes, state: bytes, then: bytes) -> Call[bytes]:
    return DECIDE.call([Intents.holding(intent)], (intent, state, then), as_is)


def _settle_marker(marker: Marker, context: Context) -> Steps[None]:
    """Finish, undo or clear the intent of a marker, unless it is young and undecided."""
    intent = yield Command(GET, marker, (b"x",), as_is)
    if intent is None:
        return
    stored = yield Command(GET, Intents.holding(intent), (intent,), as_is)
    if stored is None:
        name = context.name(marker)
        work = Work([name], [(0, "field", [b"x", intent])], [(0, [b"HDEL", b"x"])])
        yield run_work(COMMIT_AGAIN, work)
    else:
        yield from _settle(intent, stored, GRACE, context)


def _settle(intent: bytes, stored: bytes, grace: timedelta, context: Context) -> Steps[str]:
    plan = _read_plan(stored[1:])
    if stored[:1] == b"C":
        yield from _finish(plan.parts, intent, context)
        return "finished"
    if stored[:1] == b"P" and context.now_ms() - plan.at_ms < grace / timedelta(milliseconds=1):
        return "waiting"
    if (yield from _undo(plan.parts, intent, context)):
        return "undone"
    yield from _finish(plan.parts, intent, context)
    return "finished"


class Recovered(NamedTuple):
    """The result of a recovery: commits it finished, ones it undid, and ones too young to judge."""

    finished: int
    undone: int
    waiting: int


def recover(grace: timedelta = GRACE) -> Call[Recovered]:
    """Finish or undo every commit that some process left behind. Safe to run anywhere, at any time.

    Undecided intents younger than `grace` are left alone: their process may still be at work. One that
    fails does not stop the others; its error is raised at the end.
    On a single server there is never anything to do.
    """
    return Labelled(Procedure(partial(_recovered, grace), "recover"), "recover")


def _recovered(grace: timedelta) -> Steps[Recovered]:
    context = yield bound_context()
    pages = yield gather_list(Command(ALL, Intents(shard), (), _pairs) for shard in SHARDS)
    results = []
    failure: KeywrightError | None = None
    for intent, stored in (item for page in pages for item in page.items()):
        try:
            results.append((yield from _settle(intent, stored, grace, context)))
        except KeywrightError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return Recovered(*(results.count(word) for word in ("finished", "undone", "waiting")))


@procedure
def settled(key: Key, read: Call[T]) -> Steps[T]:
    """Return a read that first finishes a committed intent on the key, where the database has slots."""
    context = yield bound_context()
    if not context.sharded:
        value: T = yield read
        return value
    marker = Marker(hash_tag(context.name(key)).decode())
    for _ in range(ATTEMPTS):
        value, holder = yield gather(read, Command(GET, marker, (b"x",), as_is))
        if holder is None:
            return value
        yield from _settle_marker(marker, context)
        stored = yield Command(GET, Intents.holding(holder), (holder,), as_is)
        if stored is not None and stored[:1] == b"P":
            return value  # undecided: the stored value still holds
    raise ConflictError(f"reading {key!r}", ATTEMPTS)


def _pairs(reply: Reply) -> dict[bytes, bytes]:
    flat = iter(reply)
    return dict(zip(flat, flat, strict=True))
