"""`connect` and `aconnect`: open a database from a URL or client, or an embedded server without one."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol, Unpack

from keywright.engine.address import Address, address_at, parse_address, refuse_second_place
from keywright.engine.async_database import AsyncDatabase
from keywright.engine.capabilities import Server
from keywright.engine.clients import Client, address_of
from keywright.engine.database import Database
from keywright.engine.embedded import EmbeddedServer
from keywright.engine.options import PLACES, ConnectionOptions, require_known
from keywright.engine.settings import Settings
from keywright.engine.telemetry import Observer
from keywright.errors import UsageError
from keywright.keyspace.context import Binding, Context
from keywright.keyspace.misuse import MISUSE, explained, raise_explained

log = logging.getLogger("keywright.engine")


class Clock(Protocol):
    """A source of the current time. Tests pass their own."""

    def __call__(self) -> datetime: ...


@explained
def connect(
    url: str | Client | Binding | None = None,
    *bindings: Binding,
    settings: Settings | None = None,
    observers: Sequence[Observer] = (),
    clock: Clock | None = None,
    data: Path | None = None,
    **options: Unpack[ConnectionOptions],
) -> Database:
    """Open a database: `url`, else `REDIS_URL`, else an embedded server, which is logged as a warning once.

    `url` may be a client or connection pool of redis-py, of one server, Sentinel or a cluster, blocking or
    for asyncio. The database opens its own connections with the address and options of the client: TLS,
    user, password or credential provider, database number, timeouts, client name, connection class. The
    client itself is not used and not closed.

    `options` are those of redis-py, as in `connect(url, client_name="web")`; they replace options of the
    URL or client. Without a URL, `host` and `port`, or `path`, say where the server is.

    Bindings say which prefix, version, expiries and keyring a keyspace has here. If the URL does not name a
    database, that of the bound keyspaces is selected; calls of a keyspace that is declared or bound to
    another database are refused. Without a URL they may come first: `connect(shop.bind(prefix="live"))`.

    A cluster is recognised by asking the server. The embedded server keeps its data in `data`, else
    nowhere, and stops with the database.
    """
    url, bindings = _divided(url, bindings)
    address, server = _address(url, data, options, is_async=False)
    settings = settings or Settings()
    try:
        context = Context(bindings, now=clock)
        database = Database(_selected(address, context), context, settings, observers)
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
    if server is not None:
        context.server = f"{server.product} {server.version}"
        # A user who may not run COMMAND does not learn any feature.
        context.field_expiry = server.can("field expiry") if server.features else None


class aconnect:  # noqa: N801  # reads as the function it stands for
    """Open a database for asyncio: `async with aconnect() as db:` or `db = await aconnect()`.

    It takes what `connect` takes.
    """

    def __init__(
        self,
        url: str | Client | Binding | None = None,
        *bindings: Binding,
        settings: Settings | None = None,
        observers: Sequence[Observer] = (),
        clock: Clock | None = None,
        data: Path | None = None,
        **options: Unpack[ConnectionOptions],
    ) -> None:
        self._url, self._bindings = _divided(url, bindings)
        self._settings = settings or Settings()
        self._observers = observers
        self._clock = clock
        self._data = data
        self._options = options
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
        address, server = _address(self._url, self._data, self._options, is_async=True)
        try:
            context = Context(self._bindings, now=self._clock)
            address = _selected(address, context)
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


def _divided(
    first: str | Client | Binding | None, bindings: tuple[Binding, ...]
) -> tuple[str | Client | None, tuple[Binding, ...]]:
    """Return the URL or client, if there is one, and the bindings."""
    return (None, (first, *bindings)) if isinstance(first, Binding) else (first, bindings)


def _address(
    url: str | Client | None, data: Path | None, options: ConnectionOptions, *, is_async: bool
) -> tuple[Address, EmbeddedServer | None]:
    require_known(options)
    server = None
    if url is not None and not isinstance(url, str):
        refuse_second_place(options)
        address = address_of(url, is_async=is_async)
    elif not url and (places := {name: value for name, value in options.items() if name in PLACES}):
        address = address_at(places)
    elif url := url or os.environ.get("REDIS_URL"):
        refuse_second_place(options)
        address = parse_address(url)
    else:
        if data is None:
            _warn_of_throw_away()
        server = EmbeddedServer(data)
        server.start()
        address = parse_address(server.url)
    others = {name: value for name, value in options.items() if name not in PLACES}
    try:
        return address.with_options(others, is_async=is_async), server
    except BaseException:
        if server is not None:
            server.stop()
        raise


def _selected(address: Address, context: Context) -> Address:
    """Return the address with the database of the bound keyspaces, and let the context know its number.

    Raise UsageError if they are in another one than the address names, or in several.
    """
    named = {binding.database: space.name for space, binding in context.bindings.items()}
    numbers = sorted(number for number in named if number is not None)
    if address.database is None and len(numbers) == 1:
        address = address.with_database(numbers[0])
    number = address.database or 0
    other = next((each for each in numbers if each != number), None)
    if other is not None:
        raise UsageError(
            f"the keyspace {named[other]!r} is in database {other}, and this connection would be to database "
            f"{number}. Open a database for each: connect(url, db={other})."
        )
    context.database = number
    return address


@cache  # once in a process: a test suite or a worker opens many
def _warn_of_throw_away() -> None:
    log.warning(
        "no URL is given and REDIS_URL is not set: using an embedded server, whose data is deleted with it. "
        "Pass a URL, or data=Path(…) to keep the data in a folder."
    )
