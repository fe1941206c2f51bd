"""Recovery: finish or undo the commits across slots that some process left behind."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from keywright.errors import IntentError, KeywrightError, ServerRefusedError, UsageError
from keywright.keyspace.call import Call, Command, Plain, Procedure, Steps, bound_context
from keywright.keyspace.commits.journal import GRACE, Labelled, settle
from keywright.keyspace.commits.plans import SHARDS, Intent, Journal, known_spaces, read_plan
from keywright.keyspace.commits.work import COMMIT, Work, run_work
from keywright.keyspace.composition import gather_list
from keywright.keyspace.space import Keyspace
from keywright.keyspace.wires import Effect, Operation, Reply

if TYPE_CHECKING:
    from keywright.keyspace.context import Context

__all__ = ["Abandoned", "Recovered", "abandoned", "discard_intent", "recover"]

ALL = Operation("journal", b"HGETALL", Effect.READ)
COUNT = Operation("journal", b"HLEN", Effect.READ)
# The journal that all keyspaces shared in 0.1.0.
FORMER_SHARDS = tuple(f"keywright:intents:{shard}".encode() for shard in SHARDS)


class Recovered(NamedTuple):
    """The result of a recovery: commits it finished, ones it undid, ones too young to judge.

    `set_aside` has an error for every intent that may not be carried out. These stay as they are until an
    operator removes them.
    """

    finished: int
    undone: int
    waiting: int
    set_aside: tuple[IntentError, ...] = ()


class Abandoned(NamedTuple):
    """A commit in the journal: its id, its state letter, and why it is set aside, if it is."""

    intent: str
    state: str
    fault: IntentError | None


def recover(*spaces: Keyspace, grace: timedelta = GRACE) -> Call[Recovered]:
    """Finish or undo every commit of these keyspaces that some process left behind. Safe at any time.

    Without an argument these are the keyspaces that the database was opened with or has used. A commit over
    several keyspaces is recovered if the database uses all of them.
    Undecided intents younger than `grace` are left alone: their process may still be at work. One that
    fails does not stop the others; its error is raised at the end.
    On a single server there is never anything to do, and nothing is sent.
    """
    return Labelled(Procedure(partial(_recovered, spaces, grace), "recover"), "recover")


def _recovered(spaces: tuple[Keyspace, ...], grace: timedelta) -> Steps[Recovered]:
    context = yield bound_context()
    if not context.sharded:
        return Recovered(0, 0, 0)
    set_aside = yield from _of_another_version()
    results: list[str] = []
    failure: KeywrightError | None = None
    for intent, stored in (yield from _stored(spaces, context)):
        try:
            results.append((yield from settle(intent, stored, grace, context)))
        except IntentError as error:
            set_aside.append(error)
        except KeywrightError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    finished, undone, waiting = (results.count(word) for word in ("finished", "undone", "waiting"))
    return Recovered(finished, undone, waiting, tuple(set_aside))


def abandoned(*spaces: Keyspace) -> Call[list[Abandoned]]:
    """Return what `recover` would find, without a change."""
    return Labelled(Procedure(partial(_abandoned, spaces), "abandoned"), "recover")


def _abandoned(spaces: tuple[Keyspace, ...]) -> Steps[list[Abandoned]]:
    context = yield bound_context()
    if not context.sharded:
        return []
    former = yield from _of_another_version()
    found = yield from _stored(spaces, context)
    return [
        *(Abandoned("", "", error) for error in former),
        *(
            Abandoned(_shown(intent), stored[:1].decode("latin-1"), _fault(intent, stored, context))
            for intent, stored in found
        ),
    ]


def discard_intent(space: Keyspace, intent: str) -> Call[bool]:
    """Remove an intent that is set aside, and with it the meaning of its markers. Return False if it is gone.

    Its commit may have been applied in part: audit the keyspace afterwards. Raise UsageError for an intent
    that is not set aside, since `recover` settles it.
    """
    return Labelled(Procedure(partial(_discarded, space, intent), "discard intent"), "recover")


def _discarded(space: Keyspace, wanted: str) -> Steps[bool]:
    context = yield bound_context()
    for intent, stored in (yield from _stored((space,), context)):
        if _shown(intent) != wanted:
            continue
        if _fault(intent, stored, context) is None:
            raise UsageError(f"the intent {wanted} is not set aside. Run recover(), which settles it.")
        name = context.name(intent.home)
        unchanged = [(0, "field", [intent.id, stored])]
        return bool((yield run_work(COMMIT, Work([name], unchanged, [(0, [b"HDEL", intent.id])]))))
    return False


def _stored(spaces: tuple[Keyspace, ...], context: Context) -> Steps[list[tuple[Intent, bytes]]]:
    """Return every intent in the journals of some keyspaces, or of all that the database uses."""
    journals = dict.fromkeys(Journal.of(space, context) for space in spaces) or known_spaces(context)
    if not journals:
        raise UsageError(
            "this database was opened without keyspaces and has used none, so it has no journal to recover. "
            "Pass the keyspaces: recover(shop)."
        )
    shards = list(chain.from_iterable(journal.shards() for journal in journals))
    pages = yield gather_list(Command(ALL, shard, (), _pairs) for shard in shards)
    return [
        (Intent(intent, shard), stored)
        for shard, page in zip(shards, pages, strict=True)
        for intent, stored in page.items()
    ]


def _shown(intent: Intent) -> str:
    return intent.id.decode("utf-8", "backslashreplace")


def _fault(intent: Intent, stored: bytes, context: Context) -> IntentError | None:
    try:
        read_plan(intent, stored, context)
    except IntentError as error:
        return error
    return None


def _of_another_version() -> Steps[list[IntentError]]:
    """Return what is left in the journal that all keyspaces shared, as far as this user may read it."""
    counts = yield gather_list(Plain(COUNT, (name,), name).attempt() for name in FORMER_SHARDS)
    for error in counts:
        if isinstance(error, KeywrightError) and not isinstance(error, ServerRefusedError):
            raise error
    return [
        IntentError(name, "intents:<shard>", b"", f"{count} intents of Keywright 0.1.0")
        for name, count in zip(FORMER_SHARDS, counts, strict=True)
        if isinstance(count, int) and count
    ]


def _pairs(reply: Reply) -> dict[bytes, Any]:
    flat = iter(reply)
    return dict(zip(flat, flat, strict=True))
