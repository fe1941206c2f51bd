"""PostgreSQL through psycopg: a pool of connections, their timeouts, and its errors in our words."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar

import psycopg
from psycopg import IsolationLevel
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from keywright.errors import KeywrightError, UsageError
from keywright_registry.errors import MetadataError, MetadataUnreachableError
from keywright_registry.metadata.dialect import Dialect, Operation, Run
from keywright_registry.metadata.guarded import Running

__all__ = ["POSTGRESQL", "PostgresConnections"]

T = TypeVar("T")

MOST_CONNECTIONS = 10
CONNECT_SECONDS = 5
STATEMENT_TIMEOUT = timedelta(seconds=30)
_MIGRATION_LOCK = 0x6B77_7265_6769  # "kwregi": any number that nobody else locks


def _read_time(stored: datetime | None) -> datetime | None:
    return stored.astimezone(UTC) if stored else None


POSTGRESQL = Dialect(
    name="postgresql",
    queue=f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})",
    lock=" FOR UPDATE",
    keep=" FOR KEY SHARE",
    time_type="timestamptz",
    write_time=lambda time: time,
    read_time=_read_time,
)


class PostgresConnections:
    """Connections to one PostgreSQL database; one that a restarted server closed is replaced."""

    dialect = POSTGRESQL

    def __init__(self, url: str) -> None:
        self.shown = _shown(url)
        self._url = url
        self._pool = AsyncConnectionPool(
            url,
            kwargs={"autocommit": True, "connect_timeout": CONNECT_SECONDS},
            min_size=0,
            max_size=MOST_CONNECTIONS,
            timeout=CONNECT_SECONDS,
            # It would try on, ever more rarely, and not notice that the server is back.
            reconnect_timeout=CONNECT_SECONDS,
            configure=_configure,
            check=AsyncConnectionPool.check_connection,
            open=False,
        )

    async def open(self) -> None:
        """Connect once: the pool would only say that it took too long."""
        with translating(self.shown):
            connection = await psycopg.AsyncConnection.connect(self._url, connect_timeout=CONNECT_SECONDS)
            await connection.close()
            await self._pool.open()

    async def read(self, operation: Operation[T]) -> T:
        with translating(self.shown):
            async with self._pool.connection() as connection:
                return await _drive(connection, operation)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Run]:
        with translating(self.shown):
            async with self._pool.connection() as connection, connection.transaction():

                async def run(operation: Operation[T]) -> T:
                    with translating(self.shown):
                        return await _drive(connection, operation)

                running = Running(run, self.shown)
                try:
                    yield running
                    running.require_success()
                finally:
                    running.end()

    async def close(self) -> None:
        await self._pool.close()


@contextmanager
def translating(shown: str) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise translated(error, shown) from error


def translated(error: psycopg.Error, shown: str) -> KeywrightError:
    """The error of ours that says the same; PostgreSQL's codes tell them apart."""
    reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
    code = error.sqlstate or ""
    if isinstance(error, (PoolTimeout, PoolClosed)) or (
        isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
        and (not code or code.startswith(("08", "28", "3D", "53", "57P")))
    ):
        return MetadataUnreachableError(shown, reason)
    if isinstance(error, (psycopg.DataError, psycopg.errors.CheckViolation)):
        return UsageError(f"the metadata database cannot store a value: {reason}. Change the value.")
    return MetadataError(shown, reason, _remedy(code))


def _remedy(code: str) -> str:
    if code.startswith("40") or code == "23505":
        return "Another transaction was first: call again."
    if code == "42P01":
        return "Its tables are missing: run migrate() first."
    if code == "57014":
        return "Look for a transaction that holds its locks for too long."
    return "Look the message up in the PostgreSQL documentation."


async def _drive(connection: psycopg.AsyncConnection[Any], operation: Operation[T]) -> T:
    try:
        statement, values = next(operation)
        while True:
            cursor = await connection.execute(_as_psycopg(statement), dict(values) or None)
            rows = await cursor.fetchall() if cursor.description else []
            statement, values = operation.send(rows)
    except StopIteration as stop:
        value: T = stop.value
        return value


async def _configure(connection: psycopg.AsyncConnection[Any]) -> None:
    await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
    limit = str(round(STATEMENT_TIMEOUT / timedelta(milliseconds=1)))
    await connection.execute(
        "SELECT set_config('statement_timeout', %(limit)s, false), "
        "set_config('idle_in_transaction_session_timeout', %(limit)s, false)",
        {"limit": limit},
    )


@lru_cache(maxsize=256)
def _as_psycopg(statement: str) -> bytes:
    """With psycopg's `%(name)s` for our `:name`; as bytes, since the text is not a literal."""
    return re.sub(r":(\w+)", r"%(\1)s", statement).encode()


def _shown(url: str) -> str:
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        # What libpq says of it quotes the URL, password and all.
        raise UsageError(
            "the database URL cannot be read. Write postgresql://user:password@host:5432/name, with what "
            "is special in them %-encoded."
        ) from None
    return f"{parts.get('host') or 'localhost'}:{parts.get('port') or 5432}/{parts.get('dbname') or ''}"
