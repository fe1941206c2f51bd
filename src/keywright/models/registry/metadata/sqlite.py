"""SQLite through the standard library: a thread that writes, one that reads, its errors in our words."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from keywright.errors import KeywrightError, MetadataError, MetadataUnreachableError, UsageError
from keywright.models.registry.metadata.dialect import Dialect, Operation, Run

__all__ = ["SQLITE", "SqliteConnections"]

T = TypeVar("T")

BUSY_SECONDS = 10.0
"""How long another process may write before ours is refused."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def _write_time(time: datetime | None) -> int | None:
    return (time - _EPOCH) // _MICROSECOND if time else None


def _read_time(stored: int | None) -> datetime | None:
    return None if stored is None else _EPOCH + stored * _MICROSECOND


SQLITE = Dialect(
    name="sqlite",
    queue=None,  # BEGIN IMMEDIATE is that already
    lock="",
    keep="",
    time_type="INTEGER",
    write_time=_write_time,
    read_time=_read_time,
)


class SqliteConnections:
    """A writing and a reading connection to one file. Readers see what was committed, and never wait."""

    dialect = SQLITE

    def __init__(self, path: Path) -> None:
        self.shown = str(path)
        self._path = path
        self._writer = _Worker()
        self._reader = _Worker()
        self._writing = asyncio.Lock()

    async def open(self) -> None:
        with translating(self.shown):
            for worker in (self._writer, self._reader):
                await worker.open(self._path)

    async def read(self, operation: Operation[T]) -> T:
        with translating(self.shown):
            return await self._reader.call(lambda connection: _drive(connection, operation))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Run]:
        async with self._writing:
            with translating(self.shown):
                running = _Running(self._writer, self.shown)
                try:
                    await self._writer.execute("BEGIN IMMEDIATE")
                    yield running
                    await self._writer.execute("COMMIT")
                except BaseException:
                    # Queued behind whatever the thread still does, even when we are cancelled again.
                    await self._writer.call(sqlite3.Connection.rollback)
                    raise
                finally:
                    running.worker = None

    async def close(self) -> None:
        for worker in (self._writer, self._reader):
            await worker.close()


class _Worker:
    """One connection and the only thread that uses it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "registry-sqlite")
        self._connection: sqlite3.Connection | None = None

    async def open(self, path: Path) -> None:
        self._connection = await self._in_thread(lambda: _connected(path))

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._connection
        if connection is None:
            raise sqlite3.ProgrammingError("the connection is closed")
        return await self._in_thread(lambda: work(connection))

    async def execute(self, statement: str) -> None:
        await self.call(lambda connection: connection.execute(statement))

    async def close(self) -> None:
        if self._connection is not None:
            await self.call(sqlite3.Connection.close)
            self._connection = None
        self._thread.shutdown()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


class _Running:
    """Runs operations in one transaction, while it lasts."""

    def __init__(self, worker: _Worker, shown: str) -> None:
        self.worker: _Worker | None = worker
        self._shown = shown

    async def __call__(self, operation: Operation[T]) -> T:
        if self.worker is None:
            raise UsageError("this transaction is over. Use it inside the block that opened it.")
        with translating(self._shown):
            return await self.worker.call(lambda connection: _drive(connection, operation))


@contextmanager
def translating(shown: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OverflowError) as error:
        raise translated(error, shown) from error


def translated(error: sqlite3.Error | OverflowError, shown: str) -> KeywrightError:
    """The error of ours that says the same."""
    reason = str(error).rstrip(".")
    name = getattr(error, "sqlite_errorname", "")
    if isinstance(error, OverflowError) or "CONSTRAINT_CHECK" in name:
        return UsageError(f"the metadata database cannot store a value: {reason}. Change the value.")
    if name.startswith("SQLITE_CANTOPEN") or isinstance(error, sqlite3.ProgrammingError):
        return MetadataUnreachableError(shown, reason)
    return MetadataError(shown, reason, _remedy(name, reason))


def _remedy(name: str, reason: str) -> str:
    if name.startswith("SQLITE_BUSY") or "CONSTRAINT_UNIQUE" in name:
        return "Another transaction was first: call again."
    if reason.startswith("no such table"):
        return "Its tables are missing: run migrate() first."
    return "Look the message up in the SQLite documentation."


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        _write_ahead(connection)
        # A batch of counts that was committed is gone from Redis: it must survive a power cut.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch the journal; while another process does so SQLite refuses at once, whatever its timeout."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _drive(connection: sqlite3.Connection, operation: Operation[T]) -> T:
    try:
        statement, values = next(operation)
        while True:
            rows = connection.execute(statement, dict(values)).fetchall()
            statement, values = operation.send(rows)
    except StopIteration as stop:
        value: T = stop.value
        return value
