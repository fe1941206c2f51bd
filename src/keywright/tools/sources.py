"""Sources that tools read from, named by a text: the URL of a server, or the path of a dump."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from keywright.engine import aconnect
from keywright.keyspace import Binding, Keyring, Keyspace
from keywright.tools.readable import ReadableDatabase

__all__ = ["CHECKED_DUMP", "DUMP", "bindings_of", "is_dump", "opened_source"]

DUMP, CHECKED_DUMP = "dump:", "checked-dump:"
"""The beginnings of sources that are files, where others have the URL of a server."""


def is_dump(source: str) -> bool:
    """Return whether a source is a file, and not a server."""
    return source.startswith((DUMP, CHECKED_DUMP))


def bindings_of(spaces: Sequence[Keyspace], prefix: str | None) -> list[Binding]:
    """Bind keyspaces to the prefix of the command line, and to the environment's keyring if they seal."""
    sealed = any(kind.declaration.sealed for space in spaces for kind in space)
    keyring = Keyring.from_env_if_set() if sealed else None
    uncached = {space: dict.fromkeys(space.keys, False) for space in spaces}  # a tool reads what is stored
    return [space.bind(prefix=prefix, keyring=keyring, cached=uncached[space]) for space in spaces]


@asynccontextmanager
async def opened_source(
    source: str, *bindings: Binding, database: int | None = None
) -> AsyncIterator[ReadableDatabase]:
    """Open a server or a dump for reading."""
    if not is_dump(source):
        options = {} if database is None else {"db": database}
        async with aconnect(source, *bindings, **options) as db:  # type: ignore[arg-type]  # only `db`
            yield db
        return
    from keywright.tools.rdb import DumpDatabase  # few commands need it

    checked = source.startswith(CHECKED_DUMP)
    path = Path(source.removeprefix(CHECKED_DUMP if checked else DUMP))
    async with DumpDatabase(path, *bindings, number=database or 0, checked=checked) as dump:
        yield dump
