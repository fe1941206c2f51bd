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

`plans` has the keys of the journal and the rules for intents that others left there. The protocol is checked
as a model, by tests/relations/journal_model.py: a step that is added here is added there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from keywright.errors import (
    ConflictError,
    ConnectionLostError,
    DeadlineError,
    EngineError,
    KeywrightError,
    OutcomeUnknownError,
    StoredDataError,
    UnderReplicatedError,
    UnfinishedCommitError,
    excerpt,
)
from keywright.keyspace.call import Call, Command, Pause, Procedure, Steps, as_is, bound_context, procedure
from keywright.keyspace.checks import Check
from keywright.keyspace.commits.plans import (
    CommitPart,
    Intent,
    Journal,
    Marker,
    known_spaces,
    planned,
    read_plan,
)
from keywright.keyspace.commits.work import COMMIT, COMMIT_AGAIN, Outcome, Work, bind, moving_keys, run_work
from keywright.keyspace.composition import gather, gather_list
from keywright.keyspace.field_expiry import FIELD_VERBS, required_of_server
from keywright.keyspace.key import Key
from keywright.keyspace.renames import moved
from keywright.keyspace.script import Script
from keywright.keyspace.wires import Effect, Operation, Rounds, Wire

if TYPE_CHECKING:
    from keywright.keyspace.context import Context

T = TypeVar("T")

GRACE = timedelta(seconds=5)
ATTEMPTS = 24
"""How often a commit is tried against other writers, before ConflictError is raised."""

GET = Operation("journal", b"HGET", Effect.READ)
# Sent once only: a copy that arrives after the intent was undone would bring it back, to be decided.
PUT = Operation("journal", b"HSETNX", Effect.ONCE)
DECIDE = Script("keywright.keyspace", "decide", Effect.REPEATABLE)
DECIDE_ONCE = Script("keywright.keyspace", "decide", Effect.ONCE)


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
    if context.field_expiry is not True:
        yield from required_of_server(_with_field_expiry(work), context)
    for attempt in range(ATTEMPTS):
        outcome = yield from _once(shown, work, context)
        if outcome.failed != BUSY:
            return outcome
        yield Pause(context.random.uniform(0, 0.004 * min(attempt + 1, 12)))
    raise ConflictError(shown, ATTEMPTS)


def _with_field_expiry(work: Work) -> list[tuple[bytes, type[Key]]]:
    """Return the names whose fields are given an expiry: in mid-script a server without it would refuse."""
    return [
        (work.names[index], work.kinds[index]) for index, (verb, *_) in work.writes if verb in FIELD_VERBS
    ]


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


class Unconfirmed(Call[T]):
    """A call whose writes count as done on the primary alone; those too few replicas confirmed are noted."""

    __slots__ = ("call", "noted")

    def __init__(self, call: Call[T], noted: list[UnderReplicatedError]) -> None:
        self.call = call
        self.noted = noted

    def rounds(self, context: Context) -> Rounds[T]:
        rounds = self.call.rounds(context)
        try:
            wires = next(rounds)
            while True:
                replies = yield wires
                self.noted += [reply for reply in replies if isinstance(reply, UnderReplicatedError)]
                wires = rounds.send(
                    [reply.reply if isinstance(reply, UnderReplicatedError) else reply for reply in replies]
                )
        except StopIteration as stop:
            value: T = stop.value
            return value


BUSY = -2


def _once(shown: str, work: Work, context: Context) -> Steps[Outcome]:
    if not context.sharded:
        return (yield from _in_one_script(work))
    if context.one_slot(work.names):
        return (yield from _in_one_slot(work, context))
    return (yield from _across_slots(shown, work, context))


def _in_one_script(work: Work) -> Steps[Outcome]:
    late: list[UnderReplicatedError] = []
    outcome: Outcome = yield Unconfirmed(run_work(COMMIT, work), late)
    if late and outcome.applied:  # a refusal wrote nothing, so there is nothing to replicate
        raise late[0]
    return outcome


def _in_one_slot(work: Work, context: Context) -> Steps[Outcome]:
    """Commit in one script, which also respects the markers of commits across slots."""
    checked = dict.fromkeys(index for index, _, _ in work.checks)
    markers = list(
        dict.fromkeys(
            Journal.of(work.kinds[index]._space, context).marker(work.names[index]) for index in checked
        )
    )
    names = [*work.names, *map(context.name, markers)]
    vacant = [(len(work.names) + i, "field-absent", [b"x"]) for i in range(len(markers))]
    outcome = yield from _in_one_script(Work(names, [*vacant, *work.checks], work.writes))
    if outcome.applied:
        return outcome
    if outcome.failed < len(markers):
        yield from settle_marker(markers[outcome.failed], context)
        return Outcome(applied=False, failed=BUSY, replies=[])
    return Outcome(applied=False, failed=outcome.failed - len(markers), replies=[])


def _across_slots(shown: str, work: Work, context: Context) -> Steps[Outcome]:
    parts, intent, plan = planned(work, context)
    late: list[UnderReplicatedError] = []
    try:
        yield Unconfirmed(Command(PUT, intent.home, (intent.id, b"P" + plan), as_is), late)
        prepared: list[Outcome] = yield Unconfirmed(
            gather_list(_prepare(part, intent, context) for part in parts), late
        )
    except (ConnectionLostError, DeadlineError):
        raise  # a node is away, so undoing would fail too: the next commit that meets the markers does it
    except KeywrightError as error:
        yield from undo(parts, intent, context)
        if isinstance(error, OutcomeUnknownError):
            return Outcome(applied=False, failed=BUSY, replies=[])
        raise
    if late:
        yield from undo(parts, intent, context)
        raise UnderReplicatedError(late[0].wanted, late[0].confirmed, applied=False)
    if not all(prepared):
        yield from undo(parts, intent, context)
        return (yield from _refusal(parts, prepared, context))
    if (yield from _commit_intent(intent, late)) != b"C":
        yield from undo(parts, intent, context)
        return Outcome(applied=False, failed=BUSY, replies=[])
    try:
        yield from finish(parts, intent, context, late)
    except UnderReplicatedError:
        raise
    except KeywrightError as error:
        raise UnfinishedCommitError(shown, error) from error
    return Outcome(applied=True, failed=-1, replies=[])


def _commit_intent(intent: Intent, late: list[UnderReplicatedError]) -> Steps[bytes]:
    """Decide an intent. Return the state it has then. Raise OutcomeUnknownError if that cannot be known."""
    decide: Call[bytes] = DECIDE_ONCE.call([intent.home], (intent.id, b"P", b"C"), as_is)
    call = Unconfirmed(decide, late)
    try:
        state: bytes = yield call
    except OutcomeUnknownError as doubt:
        try:
            stored = yield Command(GET, intent.home, (intent.id,), as_is)
            state = stored[:1] if stored else b""
            if state == b"P":
                state = yield call
        except EngineError:
            raise doubt from None  # the first may have arrived
        if not state:
            raise  # once it is gone nothing shows whether it was committed and finished, or aborted
    return state


def _refusal(parts: list[CommitPart], prepared: list[Outcome], context: Context) -> Steps[Outcome]:
    busy = [p.marker for p, o in zip(parts, prepared, strict=True) if not o and p.exclusive and o.failed == 0]
    for marker in busy:
        yield from settle_marker(marker, context)
    return Outcome(applied=False, failed=BUSY if busy else 0, replies=[])


def _prepare(part: CommitPart, intent: Intent, context: Context) -> Call[Outcome]:
    """Test the checks and leave the marker. The marker's own check comes first, as number 0.

    Sent once only: a copy that arrives after the intent was applied would have it applied again.
    """
    field, value = part.field(intent)
    vacant = [(0, "field-vacant", [field, value])] if part.exclusive else []
    checks = [*vacant, *((index + 1, kind, arguments) for index, kind, arguments in part.checks)]
    later = [(index + 1, arguments) for index, arguments in part.writes]
    names = [context.name(part.marker), *part.names]
    return run_work(COMMIT, Work(names, checks, [(0, [b"HSET", field, value])], later))


def _apply(part: CommitPart, intent: Intent, context: Context) -> Call[Outcome]:
    writes = [(index + 1, arguments) for index, arguments in part.writes]
    return _where_marked(part, intent, writes, context)


def _release(part: CommitPart, intent: Intent, context: Context) -> Call[Outcome]:
    return _where_marked(part, intent, [], context)


def _where_marked(
    part: CommitPart, intent: Intent, writes: list[tuple[int, list[bytes]]], context: Context
) -> Call[Outcome]:
    """Write, and remove the marker, if the marker is still there."""
    field, value = part.field(intent)
    names = [context.name(part.marker), *part.names]
    work = Work(names, [(0, "field", [field, value])], [*writes, (0, [b"HDEL", field])])
    return run_work(COMMIT_AGAIN, work)


def finish(
    parts: list[CommitPart], intent: Intent, context: Context, late: Sequence[UnderReplicatedError] = ()
) -> Steps[None]:
    """Apply a committed intent. The exclusive parts go last: their keys guard what the others write.

    Raise UnderReplicatedError if too few replicas confirmed it, or an earlier step in `late`. The intent
    stays then, so that what a failover loses can be applied again.
    """
    noted = [*late]
    shared = [part for part in parts if not part.exclusive]
    yield Unconfirmed(gather_list(_apply(part, intent, context) for part in shared), noted)
    exclusive = [part for part in parts if part.exclusive]
    yield Unconfirmed(gather_list(_apply(part, intent, context) for part in exclusive), noted)
    if noted:
        raise UnderReplicatedError(noted[0].wanted, noted[0].confirmed)
    # All is applied: an intent that stays because its node went away is dropped by the next recovery.
    yield _decide(intent, b"C", b"").attempt()


def undo(parts: list[CommitPart], intent: Intent, context: Context) -> Steps[bool]:
    """Abort an intent, remove its markers, then drop it. Return False if it was committed after all.

    What a failover loses of it is undone by the process that meets it next, so replicas need not confirm.
    """
    if (yield Unconfirmed(_decide(intent, b"P", b"A"), [])) == b"C":
        return False
    yield Unconfirmed(gather_list(_release(part, intent, context) for part in parts), [])
    yield Unconfirmed(_decide(intent, b"A", b""), [])
    return True


def _decide(intent: Intent, state: bytes, then: bytes) -> Call[bytes]:
    return DECIDE.call([intent.home], (intent.id, state, then), as_is)


def settle_marker(marker: Marker, context: Context) -> Steps[None]:
    """Finish, undo or clear the intent of a marker, unless it is young and undecided.

    One in the journal of a keyspace that this database does not use is left to others. Raise IntentError if
    the intent may not be carried out.
    """
    held = yield Command(GET, marker, (b"x",), as_is)
    if held is None:
        return
    intent = Intent.held(held)
    if intent is None:
        raise StoredDataError(
            context.name(marker), type(marker)._template.source, "the name of an intent", excerpt(held)
        )
    if intent.home.journal not in known_spaces(context):
        return
    stored = yield Command(GET, intent.home, (intent.id,), as_is)
    if stored is None:
        name = context.name(marker)
        work = Work([name], [(0, "field", [b"x", held])], [(0, [b"HDEL", b"x"])])
        yield run_work(COMMIT_AGAIN, work)
    else:
        yield from settle(intent, stored, GRACE, context)


def settle(intent: Intent, stored: bytes, grace: timedelta, context: Context) -> Steps[str]:
    """Finish or undo a stored intent. Return which, or that it is waiting. Raise IntentError if refused."""
    plan = read_plan(intent, stored, context)
    if stored[:1] == b"C":
        yield from finish(plan.parts, intent, context)
        return "finished"
    # A clock that is far ahead of ours is as wrong as one that is behind: both are taken for dead.
    age_ms = abs(context.now_ms() - plan.at_ms)
    if stored[:1] == b"P" and age_ms < grace / timedelta(milliseconds=1):
        return "waiting"
    if (yield from undo(plan.parts, intent, context)):
        return "undone"
    yield from finish(plan.parts, intent, context)
    return "finished"


@procedure
def settled(key: Key, read: Call[T]) -> Steps[T]:
    """Return a read that first finishes a committed intent on the key, where the database has slots."""
    context = yield bound_context()
    if not context.sharded:
        value: T = yield read
        return value
    marker = Journal.of(key._space, context).marker(context.name(key))
    for attempt in range(ATTEMPTS):
        # The marker first: read the other way round, a commit that is applied in between goes unnoticed.
        held, value = yield gather(Command(GET, marker, (b"x",), as_is), read)
        if held is None:
            return value
        yield from settle_marker(marker, context)
        intent = Intent.held(held)
        if intent is not None and intent.home.journal in known_spaces(context):
            stored = yield Command(GET, intent.home, (intent.id,), as_is)
            if stored is not None and stored[:1] == b"P":
                return value  # undecided: the stored value still holds
        else:
            yield Pause(context.random.uniform(0, 0.004 * min(attempt + 1, 12)))
    raise ConflictError(f"reading {key!r}", ATTEMPTS)
