"""Attempts that read, then commit what they read still is: repeated until one is decided."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from keywright.errors import ConflictError, OutcomeUnknownError
from keywright.keyspace.call import Call, Procedure
from keywright.keyspace.commits.checks import repeatable
from keywright.keyspace.commits.journal import ATTEMPTS

if TYPE_CHECKING:
    from keywright.keyspace.context import Context

__all__ = ["Also", "Steps", "Writes", "until_settled"]

T = TypeVar("T")

Steps = Generator[Call[Any], Any, T]
Writes: TypeAlias = list[Call[Any]]
Also: TypeAlias = Sequence[Call[Any]]


def until_settled(label: str, attempt: Callable[[], Steps[T | None]], also: Also = ()) -> Call[T]:
    """Repeat an attempt until it has a result; None means that another writer was faster.

    What an attempt writes beside `also` must be such that the next one, reading, finds it done: after a
    lost reply it may have been applied. ConflictError when every attempt lost.
    """

    def steps(context: Context) -> Steps[T]:
        for _ in range(ATTEMPTS):
            try:
                done = yield from attempt()
            except OutcomeUnknownError:
                if not repeatable(context, also):
                    raise
                continue  # what was sent may have been applied: the next attempt reads and knows
            if done is not None:
                return done
        raise ConflictError(label, ATTEMPTS)

    return Procedure(steps, label)
