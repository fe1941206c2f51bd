"""Log positions: which replica of the database knows the last write to a repository.

Kept on the Redis of the load balancer, if that is another one. Errors are raised: the caller reads from the
primary then. No record means that every replica will do.
"""

from __future__ import annotations

from keywright import Call, CodecError
from keywright.operations import Effect, Script, Steps, bound_context, procedure
from keywright_registry.go_encoding import LogPosition
from keywright_registry.schema import RepositoryLsn

__all__ = ["advance", "parse_lsn", "position", "show_lsn"]

# Sent twice it leaves the same state, and answers no the second time: so a lost reply is told as such.
ADVANCE = Script("keywright_registry", "advance_lsn", Effect.ONCE)

_codec = LogPosition()


def parse_lsn(text: str) -> int:
    """The number of a position as PostgreSQL prints it; ValueError for anything else."""
    try:
        return _codec.decode(text.encode())
    except CodecError as error:
        raise ValueError(str(error)) from error


def show_lsn(lsn: int) -> str:
    return _codec.encode(lsn).decode()


def position(path: str) -> Call[int | None]:
    """How far a replica must be; None when nothing was written of late."""
    return RepositoryLsn.of(path).get()


def advance(path: str, lsn: int) -> Call[bool]:
    """Remember a position if it is beyond the one remembered, for another hour then; whether it was.

    Exact to 64 bits. A stored text that is no position is overwritten.
    """
    key = RepositoryLsn.of(path)
    return _advance(key, key.declaration.encode(lsn))


@procedure
def _advance(key: RepositoryLsn, written: bytes) -> Steps[bool]:
    context = yield bound_context()
    expiry = context.expiry_of(RepositoryLsn)
    lasting = b"" if expiry is None else expiry.arguments(context)[1]
    advanced: bool = yield ADVANCE.call([key], (written, lasting), bool)
    return advanced
