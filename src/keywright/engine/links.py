"""Asyncio connections: one open connection carries the batches of many tasks at once.

redis-py opens and authenticates the connection through its streams; then the transport is given
our protocol, which writes whole batches and hands out replies in the order they were asked for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, cast

from redis import exceptions
from redis.asyncio.connection import Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry as ConnectRetry
from redis.asyncio.sentinel import (
    Sentinel,
    SentinelConnectionPool,
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)
from redis.backoff import NoBackoff

from keywright.engine.address import Address
from keywright.engine.lines import BrokenLineError, connection_options
from keywright.engine.packing import Parser
from keywright.engine.settings import Settings
from keywright.engine.translate import unreachable
from keywright.keyspace.call import Reply

Answer = tuple[list[Reply], bool]


class _Expected:
    """A batch that was written and waits for its raw replies."""

    __slots__ = ("count", "errors", "future", "replies", "timer")

    def __init__(self, count: int, errors: int, future: asyncio.Future[Answer]) -> None:
        self.count = count
        self.errors = errors
        self.future = future
        self.replies: list[Reply] = []
        self.timer: asyncio.TimerHandle | None = None

    def resolve(self, errors: int) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if not self.future.done():
            self.future.set_result((self.replies, errors != self.errors))

    def fail(self, reason: Exception, *, silent: bool) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if not self.future.done():
            self.future.set_exception(BrokenLineError(self.replies, reason, sent=True, silent=silent))


class Link(asyncio.Protocol):
    """The replies of one connection, matched to the batches that were written to it."""

    def __init__(self, transport: asyncio.Transport, former: asyncio.BaseProtocol) -> None:
        self.loop = asyncio.get_running_loop()
        self.transport = transport
        self.former = former
        self.parser = Parser()
        self.waiting: deque[_Expected] = deque()
        self.open = True

    def send(self, buffer: bytes, count: int, seconds: float) -> asyncio.Future[Answer]:
        """Write a batch; the future gets its raw replies and whether errors are among them."""
        future: asyncio.Future[Answer] = self.loop.create_future()
        if not self.open:
            future.set_exception(BrokenLineError([], OSError("it closed"), sent=False, silent=False))
            return future
        last = self.waiting[-1] if self.waiting else None
        expected = _Expected(count, self.parser.errors if last is None else -1, future)
        expected.timer = self.loop.call_later(seconds, self._overdue, expected)
        self.waiting.append(expected)
        self.transport.write(buffer)
        return future

    def data_received(self, data: bytes) -> None:
        parser, waiting = self.parser, self.waiting
        parser.feed(data)
        while waiting:
            expected = waiting[0]
            if expected.errors < 0:
                expected.errors = parser.errors
            parser.take(expected.replies, expected.count)
            if len(expected.replies) < expected.count:
                return
            waiting.popleft()
            expected.resolve(parser.errors)

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False
        self._give_up(exc or OSError("the server closed the connection"), silent=False)
        self.former.connection_lost(exc)

    def pause_writing(self) -> None:
        self.former.pause_writing()

    def resume_writing(self) -> None:
        self.former.resume_writing()

    def eof_received(self) -> bool | None:
        return None

    def close(self) -> None:
        self.open = False
        self.transport.abort()

    def _overdue(self, expected: _Expected) -> None:
        """Replies come in order, so one that is late holds up all behind it: give the connection up."""
        self.open = False
        while self.waiting:
            late = self.waiting.popleft()
            late.fail(TimeoutError("no answer in time"), silent=True)
            if late is expected:
                break
        self._give_up(OSError("the connection was given up after a deadline"), silent=False)
        self.transport.abort()

    def _give_up(self, reason: Exception, *, silent: bool) -> None:
        while self.waiting:
            self.waiting.popleft().fail(reason, silent=silent)


class _Linking:
    """What a connection of redis-py needs to become a link."""

    _writer: Any

    async def link(self) -> Link:
        await self.connect()  # type: ignore[attr-defined]  # of the redis-py connection this is mixed into
        transport = self._writer.transport
        link = Link(transport, transport.get_protocol())
        transport.set_protocol(link)
        return link


class LinkingConnection(_Linking, Connection):
    """A TCP connection that becomes a link."""


class SecureLinkingConnection(_Linking, SSLConnection):
    """A TLS connection that becomes a link."""


class SocketLinkingConnection(_Linking, UnixDomainSocketConnection):
    """A unix socket connection that becomes a link."""


class SentinelLinkingConnection(_Linking, SentinelManagedConnection):
    """A connection to whatever the sentinels call the primary."""


class SecureSentinelLinkingConnection(_Linking, SentinelManagedSSLConnection):
    """The same over TLS."""


KINDS: dict[str, type[Any]] = {
    "redis": LinkingConnection,
    "rediss": SecureLinkingConnection,
    "unix": SocketLinkingConnection,
}


class Links:
    """The links to one node: a shared one for ordinary batches, more for commands that wait."""

    def __init__(self, address: Address, settings: Settings) -> None:
        self.address = address
        self.settings = settings
        self._make = _maker(address, settings)
        self._shared: Link | None = None
        self._opening: asyncio.Lock = asyncio.Lock()
        self._idle: list[Link] = []
        self._connections: dict[Link, Any] = {}

    @property
    def ready(self) -> Link | None:
        """The shared link if it is open right now."""
        shared = self._shared
        return shared if shared is not None and shared.open else None

    async def shared(self) -> Link:
        async with self._opening:
            if self._shared is None or not self._shared.open:
                if self._shared is not None:
                    await self._forget(self._shared)
                self._shared = await self._opened()
            return self._shared

    async def borrow(self) -> Link:
        """A link of one's own, for a command that makes the server wait."""
        while self._idle:
            link = self._idle.pop()
            if link.open:
                return link
            await self._forget(link)
        return await self._opened()

    async def give_back(self, link: Link) -> None:
        if link.open and not link.waiting:
            self._idle.append(link)
        else:
            await self._forget(link)

    async def close(self) -> None:
        for link in list(self._connections):
            await self._forget(link)
        self._idle.clear()
        self._shared = None

    async def _opened(self) -> Link:
        connection = self._make()
        try:
            link = cast("Link", await connection.link())
        except (exceptions.RedisError, OSError) as error:
            raise unreachable(error, self.address.shown) from error
        self._connections[link] = connection
        return link

    async def _forget(self, link: Link) -> None:
        connection = self._connections.pop(link, None)
        link.close()
        if connection is not None:
            await connection.disconnect(nowait=True)


def _maker(address: Address, settings: Settings) -> Any:
    options = connection_options(address, settings)
    if address.sentinels is None:
        kind = KINDS[address.scheme]
        return lambda: kind(retry=ConnectRetry(NoBackoff(), 0), **options)
    known = {k: v for k, v in options.items() if k in ("socket_timeout", "socket_connect_timeout")}
    sentinel = Sentinel(  # type: ignore[no-untyped-call]  # redis-py leaves it untyped
        list(address.sentinels.hosts), sentinel_kwargs=known
    )
    secure = address.scheme == "rediss"
    pool = SentinelConnectionPool(  # type: ignore[no-untyped-call]  # redis-py leaves it untyped
        address.sentinels.service,
        sentinel,
        connection_class=SecureSentinelLinkingConnection if secure else SentinelLinkingConnection,
        retry=ConnectRetry(NoBackoff(), 0),
        **options,
    )
    return pool.make_connection
