"""Log positions (LSN): which database replica has seen the last write to a repository.

Use the Redis of the load balancer, if it is another one. Errors are raised: read from the primary then.
Without a position every replica will do.
"""

from __future__ import annotations

from keywright import Call, CodecError
from keywright.operations import Effect, Script, Steps, bound_context, procedure
from keywright_registry.go_encoding import LogPosition
from keywright_registry.schema import RepositoryLsn

__all__ = ["advance", "format_lsn", "parse_lsn", "position"]

# Sent twice it leaves the same state but returns False the second time, so a lost reply must be reported.
ADVANCE = Script("keywright_registry", "advance_lsn", Effect.ONCE)

_codec = LogPosition()


def parse_lsn(text: str) -> int:
    """Return the number of a position as PostgreSQL prints it. Raise ValueError if it is malformed."""
    try:
        return _codec.decode(text.encode())
    except CodecError as error:
        raise ValueError(str(error)) from error


def format_lsn(lsn: int) -> str:
    """Return a position as PostgreSQL prints it."""
    return _codec.encode(lsn).decode()


def position(path: str) -> Call[int | None]:
    """Return the position that a replica must have reached; None if there was no recent write."""
    return RepositoryLsn.of(path).get()


def advance(path: str, lsn: int) -> Call[bool]:
    """Store a position, and renew its expiry, if it is beyond the stored one; return whether it was.

    Exact to 64 bits. A malformed stored position is overwritten (docs/resolutions.md#mistake-3).
    """
    key = RepositoryLsn.of(path)
    return _advance(key, key.declaration.encode(lsn))


@procedure
def _advance(key: RepositoryLsn, written: bytes) -> Steps[bool]:
    context = yield bound_context()
    expiry = context.expiry_of(RepositoryLsn)
    ttl_ms = b"" if expiry is None else expiry.arguments(context)[1]
    advanced: bool = yield ADVANCE.call([key], (written, ttl_ms), bool)
    return advanced
