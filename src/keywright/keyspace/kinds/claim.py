"""Claim: work that one of several processes does, once."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from keywright.errors import UsageError
from keywright.keyspace.call import Call, Command, Steps, bound_context, nothing, procedure
from keywright.keyspace.checks import Check, equals
from keywright.keyspace.codecs import Codec, Text
from keywright.keyspace.commits.journal import commit
from keywright.keyspace.commits.work import bind
from keywright.keyspace.key import Key
from keywright.keyspace.kinds import hold as holding
from keywright.keyspace.kinds.value import GET, SET, Expiring
from keywright.keyspace.misuse import explained
from keywright.keyspace.storage import StringStorage

if TYPE_CHECKING:
    pass

HELD = b"claim:"


class ClaimState(enum.Enum):
    """The states of a claim."""

    FREE = "free"
    HELD = "held"
    DONE = "done"


class Claim(Key):
    """A string that is absent, `claim:<token>` while a process works on it, or a marker once it is done.

    A process that dies between `begin` and `finish` frees the claim when its hold runs out, so the work
    starts at least once and finishes once. The declared expiry is how long a done marker is kept; reads
    do not renew it. Work that must not be repeated goes into the `also` of `finish`.
    """

    redis_type: ClassVar[str] = "string"
    kind: ClassVar[str] = "claim"
    _storage = StringStorage

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        return (Text(),)

    @explained
    def begin(self, token: str, hold: timedelta) -> Call[bool]:
        """Begin, or renew the hold of the same token. Return False if it is done or another has it."""
        return holding.acquire(self, _stamp(token), hold)

    @explained
    def extend(self, token: str, hold: timedelta) -> Call[bool]:
        """Extend the hold to this long from now. Return False if it ran out: stop the work then."""
        return holding.extend(self, _stamp(token), hold)

    @explained
    def finish(self, token: str, marker: str | int = "done", *, also: Sequence[Call[Any]] = ()) -> Call[bool]:
        """Write the done marker, with the writes in `also` in the same step. Return whether we held it.

        If the hold ran out, nothing is written. On a cluster `also` must stay in the claim's slot: raise
        CrossSlotError before anything is sent otherwise.
        """
        return _finish(self, [self.held_by(token)], [self.done(marker), *also])

    def done(self, marker: str | int = "done") -> Call[None]:
        """Return the write of the done marker, for a commit that checks `held_by`.

        Across slots the journal may apply it late, over the claim of another who began meanwhile: that
        one's commit then fails, so the committed work is still done once.
        """
        return _mark(self, str(marker))

    @explained
    def release(self, token: str) -> Call[bool]:
        """Release the hold, so that another may begin at once. Return False if this token did not have it."""
        return holding.release(self, _stamp(token))

    def state(self) -> Call[ClaimState]:
        """Return whether the work is free, held by a process, or done."""
        return Command(GET, self, (), _state)

    @explained
    def held_by(self, token: str) -> Check:
        """Return a check for `commit`: its writes are applied only while this token has the hold."""
        return equals(self, _stamp(token))


@procedure
def _finish(claim: Claim, checks: Sequence[Check], writes: Sequence[Call[Any]]) -> Steps[bool]:
    context = yield bound_context()
    # The journal would apply the marker late, after another may have begun.
    context.require_one_slot(bind(context, checks, writes).names)
    return bool((yield commit(f"finish {type(claim).__name__}", checks, writes, subject=claim)))


def _mark(key: Claim, marker: str) -> Call[None]:
    stored = marker.encode()
    if stored.startswith(HELD):
        raise UsageError(
            f"a marker cannot begin with {HELD.decode()!r}, which marks a claim that is held. Choose another."
        )
    return Expiring(SET, key, (stored,), nothing)


def _stamp(token: str) -> bytes:
    return HELD + holding.token_bytes(token)


def _state(reply: bytes | None) -> ClaimState:
    if reply is None:
        return ClaimState.FREE
    return ClaimState.HELD if reply.startswith(HELD) else ClaimState.DONE
