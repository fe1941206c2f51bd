"""`connect` and `aconnect`: open a database from a URL, or an embedded server without one."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from keywright.engine.address import Address, parse_address
from keywright.engine.async_database import AsyncDatabase
from keywright.engine.capabilities import Server
from keywright.engine.database import Database
from keywright.engine.embedded import EmbeddedServer
from keywright.engine.settings import Settings
from keywright.engine.telemetry import Observer
from keywright.keyspace.context import Binding, Context
from keywright.keyspace.misuse import MISUSE, explained, raise_explained

log = logging.getLogger("keywright.engine")


class Clock(Protocol):
    """A source of the current time. Tests pass their own."""

    def __call__(self) -> datetime: ...


@explained
def connect(
    url: str | None = None,
    *bindings: Binding,
    settings: Settings | None = None,
    observers: Sequence[Observer] = (),
    clock: Clock | None = None,
    data: Path | None = None,
) -> Database:
    """Open a database: `url`, else `REDIS_URL`, else an embedded server, which is logged as a warning once.

    Bindings say which prefix, version, expiries and keyring a keyspace has here. A cluster is
    recognised by asking the server. The embedded server keeps its data in `data`, else nowhere, and
    stops with the database.
    """
    address, server = _address(url, data)
    settings = settings or Settings()
    try:
        database = Database(address, Context(bindings, now=clock), settings, observers)
        _learn(database.context, None if address.cluster else database.server())
    except BaseException:
        if server is not None:
            server.stop()
        raise
    if server is not None:
        database._on_close.append(server.stop)
    return database


async def _opened(database: AsyncDatabase, address: Address) -> None:
    _learn(database.context, None if address.cluster else await database.server())


def _learn(context: Context, server: Server | None) -> None:
    """Tell a context what its server can do; a cluster that the URL names is not asked."""
    context.sharded = server is None or server.mode == "cluster"
    context.expiring_batches = server is not None and server.can("set many with expiry")


class aconnect:  # noqa: N801  # reads as the function it stands for
    """Open a database for asyncio: `async with aconnect() as db:` or `db = await aconnect()`."""

    def __init__(
        self,
        url: str | None = None,
        *bindings: Binding,
        settings: Settings | None = None,
        observers: Sequence[Observer] = (),
        clock: Clock | None = None,
        data: Path | None = None,
    ) -> None:
        self._url = url
        self._bindings = bindings
        self._settings = settings or Settings()
        self._observers = observers
        self._clock = clock
        self._data = data
        self._database: AsyncDatabase | None = None

    def __await__(self) -> Generator[Any, None, AsyncDatabase]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncDatabase:
        self._database = await self._open()
        return self._database

    async def __aexit__(self, *exc: object) -> None:
        if self._database is not None:
            await self._database.close()

    async def _open(self) -> AsyncDatabase:
        # Started here and not in a thread: the server must end with this process, whose main thread this is.
        address, server = _address(self._url, self._data)
        try:
            context = Context(self._bindings, now=self._clock)
            database = AsyncDatabase(address, context, self._settings, self._observers)
        except BaseException as error:
            if server is not None:
                server.stop()
            if isinstance(error, MISUSE):
                options = {"settings": self._settings, "observers": self._observers, "clock": self._clock}
                raise_explained(aconnect.__init__, (self, self._url, *self._bindings), options, error)
            raise
        if server is not None:
            database._on_close.append(server.stop)
        try:
            await _opened(database, address)
        except BaseException:
            await database.close()
            raise
        return database


def _address(url: str | None, data: Path | None) -> tuple[Address, EmbeddedServer | None]:
    url = url or os.environ.get("REDIS_URL")
    if url:
        return parse_address(url), None
    if data is None:
        _warn_of_throw_away()
    server = EmbeddedServer(data)
    server.start()
    return parse_address(server.url), server


@cache  # once in a process: a test suite or a worker opens many
def _warn_of_throw_away() -> None:
    log.warning(
        "no URL is given and REDIS_URL is not set: using an embedded server, whose data is deleted with it. "
        "Pass a URL, or data=Path(…) to keep the data in a folder."
    )
