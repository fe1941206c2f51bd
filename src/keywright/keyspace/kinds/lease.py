"""Lease: a distributed lock with one holder at a time, for as long as the holder keeps extending it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, ClassVar

from keywright.errors import DeclarationError
from keywright.keyspace.call import Call, Command
from keywright.keyspace.checks import Check, equals
from keywright.keyspace.codecs import Codec, Text
from keywright.keyspace.key import Key
from keywright.keyspace.kinds import hold as holding
from keywright.keyspace.kinds.encoders import optional
from keywright.keyspace.kinds.value import GET
from keywright.keyspace.misuse import explained
from keywright.keyspace.storage import StringStorage


class Lease(Key):
    """A string that holds the token of the lease holder, until the hold runs out.

    The server's expiry ends a hold, so a holder that dies or stalls loses it without anyone's help. A
    holder that stalls does not notice: protect what it writes with `held_by`, or check `extend` first.
    A failover to a replica that had not received the lease yet may give it to a second holder.
    """

    redis_type: ClassVar[str] = "string"
    kind: ClassVar[str] = "lease"
    _storage = StringStorage

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        if cls._expiry is not None:
            raise DeclarationError(
                cls.__name__, "a lease lives as long as it is held", "Drop expiry=; pass hold to acquire()."
            )
        return (Text(),)

    @explained
    def acquire(self, token: str, hold: timedelta) -> Call[bool]:
        """Acquire the lease if it is free, or renew it for this token. Return whether it is held now."""
        return holding.acquire(self, holding.token_bytes(token), hold)

    @explained
    def extend(self, token: str, hold: timedelta) -> Call[bool]:
        """Extend the hold to this long from now. Return False if it ran out or was lost: stop then."""
        return holding.extend(self, holding.token_bytes(token), hold)

    @explained
    def release(self, token: str) -> Call[bool]:
        """Release the lease. Return False if this token did not have it."""
        return holding.release(self, holding.token_bytes(token))

    def holder(self) -> Call[str | None]:
        """Return the token that has the lease, or None."""
        return Command(GET, self, (), _read_token)

    @explained
    def held_by(self, token: str) -> Check:
        """Return a check for `commit`: its writes are applied only while this token has the lease."""
        return equals(self, holding.token_bytes(token))


_read_token = optional(Text())
