"""DueQueue: a delay queue whose members are claimed by moving their time forward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from keywright.errors import DeclarationError, UsageError
from keywright.keyspace.call import Call, Command, Steps, bound_context, procedure, server_ms
from keywright.keyspace.codecs import Codec
from keywright.keyspace.kinds.hold import hold_ms
from keywright.keyspace.kinds.sorted_set import COUNT, SortedSet
from keywright.keyspace.misuse import explained
from keywright.keyspace.script import Script
from keywright.keyspace.wires import Effect, Reply

if TYPE_CHECKING:
    pass

M = TypeVar("M")
T = TypeVar("T")

CLAIM_DUE = Script("keywright.keyspace", "claim_due", Effect.ONCE)
# Sent twice it would leave the same state, but answer that the claim had run out.
SETTLE_DUE = Script("keywright.keyspace", "settle_due", Effect.ONCE)


class Claimed(NamedTuple, Generic[M]):
    """A claimed member, and the end of its hold: no other claimer gets it before."""

    member: M
    until: datetime


class DueQueue(SortedSet[M, datetime], Generic[M]):
    """Members with the time they are due; "now" is the server's, unless the database was given a clock.

    A claim hides a member by moving its time to the end of the hold: a worker that dies does nothing,
    and the member is due again then. Every claim gives a later time than the one before, so a time
    names one claim, and `finish` and `reschedule` do nothing once the member was claimed again.
    Scheduling a member that is claimed overrides the claim. Work is done at least once: make it
    repeatable, or guard it with a Claim.
    """

    kind: ClassVar[str] = "due queue"

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        codecs = super()._declare()
        if cls._expiry is not None:
            raise DeclarationError(
                cls.__name__, "a queue that expires loses its members", "Drop expiry=; finish() members."
            )
        if cls._codec.sealed:
            raise DeclarationError(
                cls.__name__, "a sealed member never equals itself", "Queue an id and seal what it names."
            )
        return codecs

    def schedule(self, member: M, at: datetime, *, keep_earlier: bool = False) -> Call[bool]:
        """Make a member due at a time, which replaces its former time. Return whether anything changed.

        With `keep_earlier` a member that is due earlier stays so.
        """
        return self.add(member, at, when="less" if keep_earlier else None)

    @explained
    def schedule_many(self, times: Mapping[M, datetime], *, keep_earlier: bool = False) -> Call[int]:
        """Schedule members in one command. Return how many changed."""
        return self.add_many(times, when="less" if keep_earlier else None)

    @explained
    def claim_due(self, limit: int, hold: timedelta) -> Call[list[Claimed[M]]]:
        """Take up to `limit` members that are due, longest due first, and hide them for `hold`.

        One script: two claimers never get the same member. Where a reply is lost the members come back
        when the hold ends; so do the others of a batch in which one member does not decode.
        """
        if limit < 1:
            raise UsageError(f"limit must be at least 1, got {limit}. Pass how many to claim.")
        held = hold_ms(hold)
        return self._at_now(lambda now: CLAIM_DUE.call([self], (now, held, limit), self._read_claimed))

    @explained
    def finish(self, claimed: Claimed[M]) -> Call[bool]:
        """Remove a member. Return False, and leave it, if it was claimed or scheduled again meanwhile."""
        return self._settle(claimed, b"")

    @explained
    def reschedule(self, claimed: Claimed[M], at: datetime) -> Call[bool]:
        """Make a member due again at a time. Return False, and change nothing, if the claim is over.

        A worker that needs longer moves the end of its hold so, and goes on with `Claimed(member, at)`.
        """
        return self._settle(claimed, self._written(at))

    @procedure
    def due_count(self) -> Steps[int]:
        """Return how many members are due now, by the clock of the server."""
        context = yield bound_context()
        now = context.now_ms() if context.injected_clock else (yield server_ms(context.name(self)))
        count: int = yield Command(COUNT, self, (b"-inf", now), int)
        return count

    def next_due(self) -> Call[datetime | None]:
        """Return when the next member is due, perhaps in the past; None if the queue is empty."""
        return self.range(0, 0).map(lambda found: found[0][1] if found else None)

    def _settle(self, claimed: Claimed[M], then: int | float | bytes) -> Call[bool]:
        operands = (self._encode(claimed.member), self._written(claimed.until), then)
        return SETTLE_DUE.call([self], operands, bool)

    @procedure
    def _at_now(self, call: Callable[[int | bytes], Call[T]]) -> Steps[T]:
        context = yield bound_context()
        value: T = yield call(context.now_ms() if context.injected_clock else b"")
        return value

    def _read_claimed(self, reply: Reply) -> list[Claimed[M]]:
        until: datetime = self._score.read(float(reply[0]))
        return [Claimed(self._codec.decode(member), until) for member in reply[1:]]
