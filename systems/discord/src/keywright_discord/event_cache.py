"""Events applied to a cache, whatever its layout: in order, in batches.

Events that only write, or merge into what is there, share one read and one write; an event that must
list keys first is applied alone. On a single server each write is one transaction, so an event is
applied whole or not at all. On a cluster it is one transaction per slot: a process that dies in
between leaves an event half applied, and applying it again, as a resumed session does, completes it.
A cluster does not count members: guild and member are in different slots, so after such a death the
cache could not tell whether a member was counted. So it cannot tell either whether a request of members
has returned all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import msgspec

from keywright import Call, Set, atomic
from keywright.errors import EngineError, KeywrightError
from keywright.operations import Steps, bound_context, procedure
from keywright_discord.changes import (
    Change,
    CountMember,
    KeepGuilds,
    KeepMembers,
    KeepPresences,
    Kind,
    Mode,
    Put,
    PutItem,
    PutItems,
    PutMembers,
    PutPresences,
    PutUsers,
    React,
    ReceiveChunk,
    SyncThreads,
    Unreact,
)
from keywright_discord.draft import Draft, Place
from keywright_discord.interpreter import BotSession, interpret
from keywright_discord.raw_json import (
    PayloadError,
    absent,
    body_fields,
    maybe_id,
    scalar,
    written,
)

if TYPE_CHECKING:
    from keywright import Context

T = TypeVar("T")
D = TypeVar("D", bound=Draft)
Event: TypeAlias = tuple[str, bytes]
"""A gateway dispatch: `t`, and the JSON of `d`."""
Mark: TypeAlias = Callable[[int], Call[Any]]
"""Makes the call that stores how far a batch is applied, from the position of its last applied event."""

WINDOW_EVENTS = 200
WINDOW_BYTES = 8 * 1024 * 1024
ALL_KINDS = frozenset(Kind)

# The kinds of the changes without a `kind` of their own. Those of neither concern all that is kept.
KIND_OF: dict[type[Change], Kind] = {
    CountMember: Kind.GUILD,
    KeepMembers: Kind.MEMBER,
    KeepPresences: Kind.PRESENCE,
    PutItem: Kind.GUILD,
    PutItems: Kind.GUILD,
    PutMembers: Kind.MEMBER,
    PutPresences: Kind.PRESENCE,
    PutUsers: Kind.USER,
    ReceiveChunk: Kind.MEMBER,
    SyncThreads: Kind.THREAD,
    React: Kind.REACTION,
    Unreact: Kind.REACTION,
}


class Refused(msgspec.Struct):
    """An event that was not applied: its position in the batch, and why."""

    place: int
    event: str
    reason: str


def next_window(events: Iterator[T], size: Callable[[T], int]) -> list[T]:
    """Take the next events to apply in one batch, bounded in number and in bytes; none at the end."""
    window: list[T] = []
    total = 0
    for each in events:
        window.append(each)
        total += size(each)
        if len(window) == WINDOW_EVENTS or total >= WINDOW_BYTES:
            break
    return window


class EventCache(ABC, Generic[D]):
    """A cache as one session writes it; `kinds` are the entities that it keeps."""

    def __init__(self, session: BotSession | None = None, kinds: Iterable[Kind] = ALL_KINDS) -> None:
        self.session = session or BotSession()
        self.kinds = frozenset(kinds)
        self._concerned: frozenset[Kind | None] = self.kinds | {None}

    @procedure
    def apply(self, events: Sequence[Event], mark: Mark | None = None) -> Steps[list[Refused]]:
        """Apply gateway dispatches in order. Return those that were refused: malformed, or in conflict with
        the type of a stored key.

        On a single server the call of `mark` is part of the transaction that applies the event, so it is
        right even if the caller dies; on a cluster it follows.
        """
        context = yield bound_context()
        refused: list[Refused] = []
        try:
            yield from self._write_all(self._interpreted(events, refused), context, mark)
        except EngineError:
            raise  # the server failed, not an event
        except KeywrightError as error:
            if len(events) == 1:
                return [Refused(0, events[0][0], str(error))]
        else:
            return refused
        # Which event it was is found by applying each alone. Applying an event twice leaves the same state.
        refused = []
        for place, event in enumerate(events):
            alone = yield self.apply([event], mark and _at(mark, place))
            refused += [Refused(place, each.event, each.reason) for each in alone]
        return refused

    @procedure
    def store(self, changes: Sequence[Change]) -> Steps[None]:
        """Apply changes that no gateway event carries; one that must list keys is applied alone."""
        context = yield bound_context()
        yield from self._write_all(enumerate([each] for each in self._wanted(list(changes))), context)

    def _interpreted(
        self, events: Sequence[Event], refused: list[Refused]
    ) -> Iterator[tuple[int, list[Change]]]:
        for place, (event, data) in enumerate(events):
            try:
                yield place, self._wanted(interpret(event, data, self.session))
            except PayloadError as error:
                refused.append(Refused(place, event, str(error)))

    def _write_all(
        self, groups: Iterable[tuple[int, list[Change]]], context: Context, mark: Mark | None = None
    ) -> Steps[None]:
        together: list[Change] = []
        last = 0
        for place, changes in groups:
            listing = [each for each in changes if type(each) is not Put and self._must_list(each)]
            if listing:
                yield from self._write(together, context, mark and mark(last))
                together = []
                yield from self._write(changes, context, mark and mark(place))
            else:
                together += changes
            last = place
        yield from self._write(together, context, mark and mark(last))

    def _wanted(self, changes: list[Change]) -> list[Change]:
        """Return the changes of kept entities; a removed guild takes along all that is kept of it."""
        if self.kinds == ALL_KINDS:
            return changes
        return [change for change in changes if _kind_of(change) in self._concerned]

    def _write(self, changes: list[Change], context: Context, mark: Call[Any] | None = None) -> Steps[None]:
        if context.sharded:
            changes = [change for change in changes if not isinstance(change, CountMember | ReceiveChunk)]
        if not changes:
            return
        draft = yield from self._begin(changes, context)
        for change in changes:
            steps = self._change(change, draft)
            if steps is not None:
                yield from steps
        calls = draft.calls()
        if calls and mark is not None and not context.sharded:
            yield atomic(*calls, mark, spread=True)
        elif calls:
            yield atomic(*calls, spread=True)
            if mark is not None:
                yield mark

    @abstractmethod
    def _must_list(self, change: Change) -> bool:
        """Return whether a change other than a put lists stored keys, so that all changes before it must be
        written."""

    @abstractmethod
    def _begin(self, changes: list[Change], context: Context) -> Steps[D]:
        """Return a draft with the stored documents and sets that these changes depend on."""

    @abstractmethod
    def _change(self, change: Change, draft: D) -> Steps[None] | None:
        """Apply one change to the draft. Return the steps of one that must read more, which apply it."""


def count_member(
    change: CountMember, draft: Draft, guild: Place, member: Place, departed: Sequence[Place]
) -> None:
    """Update the `member_count` of a guild that has one, unless the event is known to be a repeated one.

    A repeated addition is that of a stored member who joined at the same time. Most members are not stored,
    so a removal of an unknown one counts too; it is repeated if the user is among those who left last.
    """
    body = draft.fields(guild)
    counted = None if body is None else body.get("member_count")
    total = None if counted is None or absent(counted) else scalar(counted, "guild.member_count")
    if type(total) is not int:
        return
    stored = draft.fields(member)
    left = [place for place in departed if draft.get(place) is not None]
    if change.by > 0:
        for place in left:
            draft.drop(place)
        repeated = stored is not None and _same(stored.get("joined_at"), change.joined_at)
    else:
        repeated = stored is None and bool(left)
        draft.put(departed[0], b"1", Mode.REPLACE)
    if not repeated:
        draft.put(guild, {"member_count": written(max(0, total + change.by))}, Mode.PATCH)


def _same(stored: msgspec.Raw | None, given: bytes | None) -> bool:
    return stored is None or given is None or bytes(stored) == given


def complete_members(change: ReceiveChunk, draft: Draft, received: Set[Any], guild: Place) -> set[str] | None:
    """Note the members of a chunk. With the last one return all, if they are as many as the guild has."""
    people = set(change.people)
    if change.is_last and change.index > 0:
        people |= draft.listed(received)
    if change.index == 0 or change.is_last:
        draft.erase(received)
    if not change.is_last:
        draft.add(received, *change.people)
        return None
    counted = (draft.fields(guild) or {}).get("member_count")
    complete = counted is not None and scalar(counted, "guild.member_count") == len(people)
    return people if complete else None


def homes(changes: Iterable[Change]) -> list[str]:
    """Return the guilds of which the draft must know whether the bot is in them."""
    return sorted({change.only_in for change in changes if isinstance(change, Put) and change.only_in})


def left_guilds(change: KeepGuilds, known: Iterable[str]) -> list[str]:
    """Return the known guilds of the session's shard that are not among those that it begins with."""
    gone = set(known) - set(change.guilds)
    return sorted(guild for guild in gone if (int(guild) >> 22) % change.shards == change.shard)


def parent_of(thread: Put) -> str | None:
    """Return the parent channel of a thread, or None if its put has none."""
    return maybe_id(body_fields(thread.data), "parent_id", "thread")


def unsynced(change: SyncThreads, parents: Mapping[str, str]) -> list[str]:
    """Return the threads, given with their parents, that a synchronisation leaves out."""
    synced = {put.ids[1] for put in change.puts}
    return [
        thread
        for thread, parent in parents.items()
        if thread not in synced and (change.channels is None or parent in change.channels)
    ]


def _at(mark: Mark, place: int) -> Mark:
    return lambda _: mark(place)


def _kind_of(change: Change) -> Kind | None:
    if isinstance(change, Put):  # most changes
        return change.kind
    kind: Kind | None = getattr(change, "kind", None)
    return kind or KIND_OF.get(type(change))
