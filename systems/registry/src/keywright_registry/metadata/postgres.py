"""PostgreSQL through psycopg: a connection pool with timeouts, and the translation of its errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import IsolationLevel
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from keywright.errors import KeywrightError, UsageError
from keywright_registry.errors import MetadataError, MetadataUnreachableError
from keywright_registry.metadata.sql import Execute, Row

__all__ = ["PostgresConnections"]

MOST_CONNECTIONS = 10
CONNECT_SECONDS = 5
STATEMENT_TIMEOUT = timedelta(seconds=30)


class PostgresConnections:
    """A pool of connections to one PostgreSQL database; connections that a restart closed are replaced."""

    def __init__(self, url: str) -> None:
        self.shown = _shown(url)
        self._url = url
        self._pool = AsyncConnectionPool(
            url,
            kwargs={"autocommit": True, "connect_timeout": CONNECT_SECONDS},
            min_size=0,
            max_size=MOST_CONNECTIONS,
            timeout=CONNECT_SECONDS,
            # Longer, the pool's growing back-off would not notice that the server is back.
            reconnect_timeout=CONNECT_SECONDS,
            configure=_configure,
            check=AsyncConnectionPool.check_connection,
            open=False,
        )

    async def open(self) -> None:
        # Connect once outside the pool, whose only error is that it took too long.
        with translating(self.shown):
            connection = await psycopg.AsyncConnection.connect(self._url, connect_timeout=CONNECT_SECONDS)
            await connection.close()
            await self._pool.open()

    async def read(self, statement: str, values: Mapping[str, object] | None = None) -> list[Row]:
        with translating(self.shown):
            async with self._pool.connection() as connection:
                return await _execute(connection, statement, values)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Execute]:
        with translating(self.shown):
            async with self._pool.connection() as connection, connection.transaction():

                async def execute(statement: str, values: Mapping[str, object] | None = None) -> list[Row]:
                    with translating(self.shown):
                        return await _execute(connection, statement, values)

                yield execute

    async def close(self) -> None:
        await self._pool.close()


@contextmanager
def translating(shown: str) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise translated(error, shown) from error


def translated(error: psycopg.Error, shown: str) -> KeywrightError:
    """Return the error of this system for one of psycopg, by the SQLSTATE code."""
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
        return "Its tables are missing: run `keywright registry migrate`, or migrate()."
    if code == "42703":
        return "Its tables belong to another program: give the registry a database of its own."
    if code == "57014":
        return "Look for a transaction that holds its locks for too long."
    return "Look the message up in the PostgreSQL documentation."


async def _execute(
    connection: psycopg.AsyncConnection[Any], statement: str, values: Mapping[str, object] | None
) -> list[Row]:
    cursor = await connection.execute(statement.encode(), values)  # psycopg takes text from literals only
    return await cursor.fetchall() if cursor.description else []


async def _configure(connection: psycopg.AsyncConnection[Any]) -> None:
    await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
    await connection.execute(
        "SELECT set_config('statement_timeout', %(limit)s, false), "
        "set_config('idle_in_transaction_session_timeout', %(limit)s, false), "
        "set_config('timezone', 'UTC', false)",
        {"limit": str(round(STATEMENT_TIMEOUT / timedelta(milliseconds=1)))},
    )


def _shown(url: str) -> str:
    malformed = UsageError(
        "the database URL is malformed. Write postgresql://user:password@host:5432/name, with special "
        "characters percent-encoded."
    )
    try:
        split, parts = urlsplit(url), conninfo_to_dict(url)
    except (psycopg.Error, ValueError):
        raise malformed from None  # the message of libpq quotes the URL with its password
    if "@" in split.path + split.fragment + ("" if "@" in split.netloc else split.query):
        raise malformed  # a password with / ? or #, which end the part that it stands in
    return f"{parts.get('host') or 'localhost'}:{parts.get('port') or 5432}/{parts.get('dbname') or ''}"
