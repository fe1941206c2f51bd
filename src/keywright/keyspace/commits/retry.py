"""Optimistic locking: read, commit with checks on the values read, retry if another writer was faster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from keywright.errors import ConflictError, OutcomeUnknownError
from keywright.keyspace.call import Call, Steps, bound_context, procedure
from keywright.keyspace.commits.journal import ATTEMPTS
from keywright.keyspace.commits.work import repeatable

__all__ = ["Also", "Writes", "optimistic"]

T = TypeVar("T")

Writes: TypeAlias = list[Call[Any]]
"""The writes of a commit."""
Also: TypeAlias = Sequence[Call[Any]]
"""Further writes that are applied in the same commit."""


@procedure
def optimistic(label: str, attempt: Callable[[], Steps[T | None]], also: Also = ()) -> Steps[T]:
    """Repeat an attempt until it has a result; None means that another writer was faster.

    After a lost reply the writes of an attempt may have been applied: the next attempt must be able to see
    that by reading. Writes in `also` are exempt. Raise ConflictError when every attempt lost.
    """
    context = yield bound_context()
    for _ in range(ATTEMPTS):
        try:
            done = yield from attempt()
        except OutcomeUnknownError:
            if not repeatable(context, also):
                raise
            continue  # the writes may have been applied: the next attempt finds out by reading
        if done is not None:
            return done
    raise ConflictError(label, ATTEMPTS)
