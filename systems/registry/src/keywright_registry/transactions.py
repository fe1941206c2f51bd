"""Where the caller is inside a database transaction, and calls that refuse to run there.

What a transaction has written is nobody's business before it is committed: a cache write from inside would
hand out ids that may never exist. The mark follows the caller through awaits and into the tasks it starts,
and ends with the transaction wherever it was copied to.
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

__all__ = ["Outside", "inside", "marked"]

T = TypeVar("T")


class _Mark:
    """One transaction; shared with every task that was started inside it."""

    open = True


_current: ContextVar[_Mark | None] = ContextVar("registry transaction", default=None)


@contextmanager
def marked() -> Iterator[None]:
    """Mark what runs here as inside a database transaction. Transactions do not nest."""
    if inside():
        raise UsageError(
            "a transaction is open here already, and the cache cannot follow one inside another. "
            "Use the open one, or start this after its block."
        )
    mark = _Mark()
    _current.set(mark)
    try:
        yield
    finally:
        mark.open = False


def inside() -> bool:
    """Whether the caller is inside a transaction that is still open."""
    mark = _current.get()
    return mark is not None and mark.open


class Outside(Call[T]):
    """A call that raises UsageError, and sends nothing, when it is run inside a transaction."""

    __slots__ = ("call",)

    def __init__(self, call: Call[T]) -> None:
        self.call = call

    @property
    def one_round(self) -> bool:
        return self.call.one_round

    def rounds(self, context: Context) -> Rounds[T]:
        if inside():
            raise UsageError(
                f"{self.call!r} writes to the cache, but the database transaction around it is not committed "
                f"yet: others would see what may never be. Use the methods of the transaction, which write "
                f"the cache after the commit, or run this after the block."
            )
        return (yield from self.call.rounds(context))

    def __repr__(self) -> str:
        return repr(self.call)
