"""Open a metadata database by its URL."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from keywright import Clock
from keywright.errors import UsageError, dependencies_of
from keywright_registry.metadata.contract import Metadata
from keywright_registry.metadata.sql import SqlMetadata
from keywright_registry.metadata.sqlite import SqliteConnections

if TYPE_CHECKING:
    from keywright_registry.metadata.postgres import PostgresConnections

__all__ = ["open_metadata"]


async def open_metadata(url: str, *, clock: Clock | None = None) -> Metadata:
    """Open `postgresql://user:password@host/name` or `sqlite:///file.db`. Raise MetadataError if it fails.

    For SQLite three slashes name a file relative to the current folder, four an absolute one. Call
    `migrate()` once before anything else, and `close()` at the end.
    """
    connections = _connections(url)
    try:
        await connections.open()
    except BaseException:
        await connections.close()
        raise
    return SqlMetadata(connections, clock or _now)


def _connections(url: str) -> PostgresConnections | SqliteConnections:
    scheme, _, rest = url.partition("://")
    if scheme in ("postgresql", "postgres"):
        return _postgres(url)
    if scheme == "sqlite":
        return SqliteConnections(_file(url))
    raise UsageError(
        f"{scheme if rest else 'no scheme'!r} is not a kind of metadata database. "
        f"Use postgresql://user:password@host/name or sqlite:///file.db."
    )


def _postgres(url: str) -> PostgresConnections:
    with dependencies_of("a PostgreSQL database", install="keywright-registry[postgresql]"):
        from keywright_registry.metadata.postgres import PostgresConnections
    return PostgresConnections(url)


def _file(url: str) -> Path:
    parts = urlsplit(url)
    path = unquote(parts.path.removeprefix("/"))
    if parts.netloc or not path:
        raise UsageError(
            "an SQLite database is a file. Write sqlite:///file.db, or sqlite:////folder/file.db."
        )
    return Path(path)


def _now() -> datetime:
    return datetime.now(UTC)
