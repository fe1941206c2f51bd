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
from keywright.keyspace.storage import StringStorage

if TYPE_CHECKING:
    pass

HELD = b"claim:"


class ClaimState(enum.Enum):
    FREE = "free"
    HELD = "held"
    DONE = "done"


class Claim(Key):
    """A string that is absent, `claim:<token>` while someone is at it, or a marker once it is done.

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

    def begin(self, token: str, hold: timedelta) -> Call[bool]:
        """Start, or renew the hold of the same token; False when it is done or another is at it."""
        return holding.acquire(self, _stamp(token), hold)

    def extend(self, token: str, hold: timedelta) -> Call[bool]:
        """Stay at it for this long from now; False when the hold ran out: stop then."""
        return holding.extend(self, _stamp(token), hold)

    def finish(self, token: str, marker: str | int = "done", *, also: Sequence[Call[Any]] = ()) -> Call[bool]:
        """Leave the marker, with the writes in `also` in the same step; whether it was still ours.

        When the hold ran out nothing is written. On a cluster `also` must stay in the claim's slot:
        CrossSlotError before anything is sent.
        """
        return _finish(self, [self.held_by(token)], [self.done(marker), *also])

    def done(self, marker: str | int = "done") -> Call[None]:
        """The write that leaves the marker, for a commit of its own that checks `held_by`.

        Across slots the journal may apply it late, over the claim of another who began meanwhile: that
        one's commit then fails, so what was committed is still done once.
        """
        return _mark(self, str(marker))

    def release(self, token: str) -> Call[bool]:
        """Give up, so that another may begin at once; False when this token was not at it (any more)."""
        return holding.release(self, _stamp(token))

    def state(self) -> Call[ClaimState]:
        return Command(GET, self, (), _state)

    def held_by(self, token: str) -> Check:
        """A check for `commit`: its writes happen only while this token is at it."""
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
