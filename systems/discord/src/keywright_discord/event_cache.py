"""Events applied to a cache, whatever its layout: in order, as many as possible at once.

Events that only write, or merge into what is there, share one read and one write; those that must
list keys first are applied by themselves. On a single server each write is one transaction, so an
event is applied whole or not at all. On a cluster it is one transaction a slot: a process that dies
in between leaves an event half applied, and applying it again, as a resumed session does,
completes it. Counting members is left out there: guild and member live in different slots, so a
member that was written half could not be told from one that was counted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from keywright import Call, atomic
from keywright.operations import Steps, bound_context, procedure
from keywright_discord.changes import (
    Change,
    CountMember,
    KeepGuilds,
    KeepMembers,
    Kind,
    Mode,
    Put,
    PutMembers,
    PutPresences,
    PutUsers,
    React,
    SyncThreads,
    Unreact,
    body_fields,
)
from keywright_discord.draft import Draft, Place
from keywright_discord.interpreter import Session, interpret
from keywright_discord.raw_json import PayloadError, absent, maybe_id, scalar, stored_fields, written

if TYPE_CHECKING:
    from keywright import Context

T = TypeVar("T")
D = TypeVar("D", bound=Draft)
Mark = Callable[[int], Call[Any]]

ALL_KINDS = frozenset(Kind)

# The kinds of changes that do not say it themselves. Those of none concern all that is kept.
KIND_OF: dict[type[Change], Kind] = {
    CountMember: Kind.GUILD,
    KeepMembers: Kind.MEMBER,
    PutMembers: Kind.MEMBER,
    PutPresences: Kind.PRESENCE,
    PutUsers: Kind.USER,
    SyncThreads: Kind.THREAD,
    React: Kind.REACTION,
    Unreact: Kind.REACTION,
}


class Refused(msgspec.Struct):
    """An event that was left out: its place among those given, and why."""

    place: int
    event: str
    reason: str


class EventCache(ABC, Generic[D]):
    """A cache as one session writes it. `kinds` says what to keep."""

    def __init__(self, session: Session | None = None, kinds: Iterable[Kind] = ALL_KINDS) -> None:
        self.session = session or Session()
        self.kinds = frozenset(kinds)
        self._concerned: frozenset[Kind | None] = self.kinds | {None}

    @procedure
    def apply(self, events: Sequence[tuple[str, bytes]], mark: Mark | None = None) -> Steps[list[Refused]]:
        """Apply gateway dispatches (`t`, JSON of `d`) in order; malformed ones are left out and told.

        `mark` makes the call that notes how far it got, given the place of an event. On a single server it is
        part of the transaction that applies the event, so it is right even if the caller dies; on a cluster
        it follows.
        """
        context = yield bound_context()
        refused: list[Refused] = []
        yield from self._write_all(self._interpreted(events, refused), context, mark)
        return refused

    @procedure
    def store(self, changes: Sequence[Change]) -> Steps[None]:
        """Apply changes that no gateway event carries; one that must list keys is applied by itself."""
        context = yield bound_context()
        yield from self._write_all(enumerate([each] for each in self._wanted(list(changes))), context)

    def _interpreted(
        self, events: Sequence[tuple[str, bytes]], refused: list[Refused]
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
            if any(self._must_list(change) for change in changes):
                yield from self._write(together, context, mark and mark(last))
                together = []
                yield from self._write(changes, context, mark and mark(place))
            else:
                together += changes
            last = place
        yield from self._write(together, context, mark and mark(last))

    def _wanted(self, changes: list[Change]) -> list[Change]:
        """What of an event's changes is kept; a guild that goes takes along whatever is kept of it."""
        return [change for change in changes if _kind_of(change) in self._concerned]

    def _write(self, changes: list[Change], context: Context, mark: Call[Any] | None = None) -> Steps[None]:
        if context.sharded:
            changes = [change for change in changes if not isinstance(change, CountMember)]
        if not changes:
            return
        draft = yield from self._begin(changes, context)
        for change in changes:
            yield from self._change(change, draft)
        calls = draft.calls()
        if calls and mark is not None and not context.sharded:
            yield atomic(*calls, mark, spread=True)
        elif calls:
            yield atomic(*calls, spread=True)
            if mark is not None:
                yield mark

    @abstractmethod
    def _must_list(self, change: Change) -> bool:
        """Whether a change lists keys of the database, which then must hold all that came before."""

    @abstractmethod
    def _begin(self, changes: list[Change], context: Context) -> Steps[D]:
        """A draft that knows what these changes must know."""

    @abstractmethod
    def _change(self, change: Change, draft: D) -> Steps[None]:
        """Apply one change to the draft."""


def count_member(change: CountMember, draft: Draft, guild: Place, member: Place) -> None:
    """Keep a guild's `member_count`, where it has one and the change is news to the cache."""
    known = draft.get(member) is not None
    body = stored_fields(draft.get(guild))
    if body is None or known == (change.by > 0):
        return
    counted = body.get("member_count")
    if counted is None or absent(counted):
        return
    total = scalar(counted, "guild.member_count")
    if type(total) is int:
        draft.put(guild, {"member_count": written(max(0, total + change.by))}, Mode.PATCH)


def left_guilds(change: KeepGuilds, known: Iterable[str]) -> list[str]:
    """The guilds of the session's shard that are known and not among those that it begins with."""
    gone = set(known) - set(change.guilds)
    return sorted(guild for guild in gone if (int(guild) >> 22) % change.shards == change.shard)


def parent_of(thread: Put) -> str | None:
    """The channel that a thread is in, where its put says so."""
    return maybe_id(body_fields(thread.data), "parent_id", "thread")


def unsynced(change: SyncThreads, parents: Mapping[str, str]) -> list[str]:
    """The threads that a synchronisation leaves out, of all threads with their parents."""
    synced = {put.ids[1] for put in change.puts}
    return [
        thread
        for thread, parent in parents.items()
        if thread not in synced and (change.channels is None or parent in change.channels)
    ]


def _kind_of(change: Change) -> Kind | None:
    kind: Kind | None = getattr(change, "kind", None)
    return kind or KIND_OF.get(type(change))
