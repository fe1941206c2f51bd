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

from keywright.errors import KeywrightError, UsageError
from keywright_registry.errors import MetadataError, MetadataUnreachableError
from keywright_registry.metadata.dialect import Dialect, Operation, Run
from keywright_registry.metadata.guarded import Running

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
        return await self._call(self._reader, lambda connection: _drive(connection, operation))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Run]:
        async with self._writing:
            running = Running(self._write, self.shown)
            try:
                await self._execute("BEGIN IMMEDIATE")
                yield running
                running.require_success()
                await self._execute("COMMIT")
            except BaseException:
                # Queued behind whatever the thread still does, even when we are cancelled again.
                await self._call(self._writer, sqlite3.Connection.rollback)
                raise
            finally:
                running.end()

    async def close(self) -> None:
        for worker in (self._writer, self._reader):
            await worker.close()

    async def _write(self, operation: Operation[T]) -> T:
        return await self._call(self._writer, lambda connection: _drive(connection, operation))

    async def _execute(self, statement: str) -> None:
        await self._call(self._writer, lambda connection: connection.execute(statement))

    async def _call(self, worker: _Worker, work: Callable[[sqlite3.Connection], T]) -> T:
        with translating(self.shown):
            return await worker.call(work)


class _Worker:
    """One connection and the only thread that uses it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "registry-sqlite")
        self._connection: sqlite3.Connection | None = None
        self._closed = False

    async def open(self, path: Path) -> None:
        await self._in_thread(lambda: self._connect(path))

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._connection
        if connection is None:
            raise sqlite3.ProgrammingError("the connection is closed")
        return await self._in_thread(lambda: work(connection))

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._in_thread(self._disconnect)
            self._thread.shutdown()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        # Shielded: a cancellation would also take back what still waits for its turn, such as a rollback.
        working = asyncio.get_running_loop().run_in_executor(self._thread, work)
        working.add_done_callback(asyncio.Future.exception)  # which nobody may be left to hear of
        return await asyncio.shield(working)

    def _connect(self, path: Path) -> None:
        self._connection = _connected(path)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


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
