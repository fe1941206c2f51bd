"""What differs between the databases, and how a statement asks for values.

Statements are written once, with `:name` for a value; an operation is a generator that yields statements
and is sent their rows, so that one implementation runs on an asyncio driver and in a worker thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

__all__ = ["Connections", "Dialect", "Operation", "Row", "Run", "Statement"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Row: TypeAlias = tuple[Any, ...]  # what a driver returns is as untyped as SQL
Statement: TypeAlias = tuple[str, Mapping[str, object]]
Operation: TypeAlias = Generator[Statement, list[Row], T]


class Dialect(NamedTuple):
    """One database's way to say it. Where a database has one writer, there is nothing to lock."""

    name: str
    """The folder of its migrations."""
    queue: str | None
    """Waits until no other process migrates; released with the transaction."""
    lock: str
    """After a SELECT: nobody else changes these rows, or adds below them, until the transaction ends."""
    keep: str
    """After a SELECT: nobody else locks these rows until the transaction ends."""
    time_type: str
    write_time: Callable[[datetime | None], object]
    read_time: Callable[[Any], datetime | None]


class Run(Protocol):
    """Runs an operation and returns what it returned; what the driver raises is translated."""

    async def __call__(self, operation: Operation[T]) -> T: ...


class Connections(Protocol):
    """A database that is open."""

    @property
    def dialect(self) -> Dialect: ...

    @property
    def shown(self) -> str:
        """Where it is, without user and password."""
        ...

    async def read(self, operation: Operation[T]) -> T:
        """Run statements that only read, each for itself."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Run]:
        """Committed when left without an error, else rolled back."""
        ...

    async def close(self) -> None: ...
