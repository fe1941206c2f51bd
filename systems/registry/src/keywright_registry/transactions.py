"""Whether the caller is inside a database transaction, and calls that refuse to run there.

A cache write from inside a transaction would publish ids that may never be committed. The mark follows the
caller through awaits and into the tasks that it starts, and ends with the transaction everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from keywright import Call
from keywright.errors import UsageError
from keywright.operations import Rounds

if TYPE_CHECKING:
    from keywright import Context

__all__ = ["OutsideTransaction", "in_transaction", "transaction_scope"]

T = TypeVar("T")


class _Scope:
    """One transaction, shared with every task that was started inside it."""

    open = True


_current: ContextVar[_Scope | None] = ContextVar("registry transaction", default=None)


@contextmanager
def transaction_scope() -> Iterator[None]:
    """Mark the block as inside a database transaction. Raise UsageError if it is inside one already."""
    if in_transaction():
        raise UsageError(
            "a transaction is open here already, and the cache cannot follow one inside another. "
            "Use the open one, or start this after its block."
        )
    scope = _Scope()
    _current.set(scope)
    try:
        yield
    finally:
        scope.open = False


def in_transaction() -> bool:
    """Return whether the caller is inside a transaction that is still open."""
    scope = _current.get()
    return scope is not None and scope.open


class OutsideTransaction(Call[T]):
    """A call that raises UsageError, and sends nothing, when it is run inside a transaction."""

    __slots__ = ("call",)

    def __init__(self, call: Call[T]) -> None:
        self.call = call

    @property
    def one_round(self) -> bool:
        return self.call.one_round

    def rounds(self, context: Context) -> Rounds[T]:
        if in_transaction():
            raise UsageError(
                f"{self.call!r} writes to the cache inside a database transaction that is not committed yet, "
                f"so others could read what may be rolled back. Use the methods of the transaction, which "
                f"write the cache after the commit, or run this after the block."
            )
        return (yield from self.call.rounds(context))

    def __repr__(self) -> str:
        return repr(self.call)
