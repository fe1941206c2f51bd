"""Asyncio connections: one open connection carries the batches of many tasks at once.

redis-py opens and authenticates the connection through its streams; then the transport is given
our protocol, which writes whole batches and hands out replies in the order they were asked for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, cast

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
from keywright.engine.connections import CLOSED, BrokenLineError, connection_options
from keywright.engine.settings import Settings
from keywright.engine.translation import unreachable
from keywright.engine.wire_format import READONLY, Incoming, Parser
from keywright.errors import ConnectionLostError
from keywright.keyspace.wires import Reply

Answer = tuple[list[Reply], bool]
Outcome: TypeAlias = Answer | BrokenLineError


class _Expected(NamedTuple):
    """A batch that was written and waits for its raw replies."""

    incoming: Incoming
    deadline: float
    done: Callable[[Outcome], None]

    def resolve(self) -> None:
        self.done((self.incoming.replies, self.incoming.had_errors()))

    def fail(self, reason: Exception, *, silent: bool) -> None:
        self.done(BrokenLineError(self.incoming.before_break(), reason, sent=True, silent=silent))


class Link(asyncio.Protocol):
    """The replies of one connection, matched to the batches that were written to it."""

    def __init__(self, transport: asyncio.Transport, former: asyncio.BaseProtocol) -> None:
        self.loop = asyncio.get_running_loop()
        self.transport = transport
        self.former = former
        self.parser = Parser()
        self.waiting: deque[_Expected] = deque()
        self.open = True
        self._alarm: asyncio.TimerHandle | None = None

    def post(self, buffer: bytes, count: int, seconds: float, done: Callable[[Outcome], None]) -> None:
        """Write a batch; `done` gets its raw replies and whether errors are among them, or how it broke."""
        if not self.open:
            done(BrokenLineError([], OSError("it closed"), sent=False, silent=False))
            return
        incoming = Incoming(self.parser, count, first=not self.waiting)
        deadline = self.loop.time() + seconds
        self.waiting.append(_Expected(incoming, deadline, done))
        # One timer a link, set again when it rings too early: one a batch would cost more than its GET.
        if self._alarm is None or self._alarm.when() > deadline:
            self._set_alarm(deadline)
        self.transport.write(buffer)

    def send(self, buffer: bytes, count: int, seconds: float) -> asyncio.Future[Outcome]:
        """Write a batch; the future gets what `post` gives to `done`."""
        future: asyncio.Future[Outcome] = self.loop.create_future()

        def done(outcome: Outcome) -> None:
            if not future.done():
                future.set_result(outcome)

        self.post(buffer, count, seconds, done)
        return future

    def data_received(self, data: bytes) -> None:
        waiting = self.waiting
        if not waiting:
            self.close()  # nobody asked: it would be taken for the answer to the next question
            return
        waiting[0].incoming.feed(data)
        while waiting:
            incoming = waiting[0].incoming
            if not incoming.started:
                incoming.start()
            if not incoming.complete():
                return
            waiting.popleft().resolve()

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False
        self._silence()
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
        self._silence()
        self._give_up(OSError("it was closed"), silent=False)
        self.transport.abort()

    def _set_alarm(self, deadline: float) -> None:
        self._silence()
        self._alarm = self.loop.call_at(deadline, self._ring)

    def _silence(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _ring(self) -> None:
        """Replies come in order, so one that is late holds up all behind it: give the connection up."""
        self._alarm = None
        if not self.waiting:
            return
        first = self.waiting[0]
        if first.deadline > self.loop.time():
            self._set_alarm(first.deadline)
            return
        self.open = False
        self.waiting.popleft().fail(TimeoutError("no answer in time"), silent=True)
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
    """The links to one node: a shared one for ordinary batches, more for commands that wait.

    `readonly` is for a replica of a cluster, which redirects readers to its primary unless greeted so.
    """

    def __init__(self, address: Address, settings: Settings, *, readonly: bool = False) -> None:
        self.address = address
        self.settings = settings
        self._readonly = readonly
        self._make, self._sentinels = _maker(address, settings)
        self._shared: Link | None = None
        self._opening: asyncio.Task[Link] | None = None
        self._idle: list[Link] = []
        self._connections: dict[Link, Any] = {}
        self._room = asyncio.Semaphore(settings.most_connections)
        self._closed = False

    @property
    def ready(self) -> Link | None:
        """The shared link if it is open right now."""
        shared = self._shared
        return shared if shared is not None and shared.open else None

    async def shared(self) -> Link:
        """The link of all ordinary batches. Those who need it while it is being opened share the outcome."""
        if self.ready is not None:
            return self.ready
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._reopened())
            # Nobody may be left to ask how it went.
            self._opening.add_done_callback(lambda done: done.cancelled() or done.exception())
        opening = self._opening
        await asyncio.wait([opening])
        if opening.cancelled():
            raise ConnectionLostError(self.address.shown, CLOSED)
        return opening.result()

    async def borrow(self) -> Link:
        """A link of one's own, for a command that makes the server wait; their number is bounded."""
        await self._room.acquire()
        try:
            while self._idle:
                link = self._idle.pop()
                if link.open:
                    return link
                await self._forget(link)
            return await self._opened()
        except BaseException:
            self._room.release()
            raise

    async def give_back(self, link: Link) -> None:
        self._room.release()
        if link.open and not link.waiting:
            self._idle.append(link)
        else:
            await self._forget(link)

    async def close(self) -> None:
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        for link in list(self._connections):
            await self._forget(link)
        self._idle.clear()
        self._shared = None
        for client in self._sentinels:
            await client.aclose()

    async def _reopened(self) -> Link:
        if self._shared is not None:
            await self._forget(self._shared)
        self._shared = await self._opened()
        return self._shared

    async def _opened(self) -> Link:
        connection = self._make()
        cancelled_before = _cancellations()
        try:
            link = cast("Link", await connection.link())
        except (exceptions.RedisError, OSError) as error:
            raise unreachable(error, self.address.shown) from error
        self._connections[link] = connection
        if _cancellations() > cancelled_before:
            # redis-py waits with asyncio.wait_for, which may lose a cancellation in Python 3.11.
            await self._forget(link)
            raise asyncio.CancelledError
        if self._closed:
            await self._forget(link)
            raise ConnectionLostError(self.address.shown, CLOSED)
        if self._readonly:
            await self._greet(link)
        return link

    async def _greet(self, link: Link) -> None:
        try:
            outcome = await link.send(READONLY, 1, self.settings.timeout_seconds)
        except BaseException:
            await self._forget(link)
            raise
        if isinstance(outcome, BrokenLineError):
            await self._forget(link)
            raise ConnectionLostError(self.address.shown, str(outcome))

    async def _forget(self, link: Link) -> None:
        connection = self._connections.pop(link, None)
        link.close()
        if connection is not None:
            await connection.disconnect(nowait=True)


def _cancellations() -> int:
    """How often the present task was told to end."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def _maker(address: Address, settings: Settings) -> tuple[Any, list[Any]]:
    """What makes a connection, and the clients it asks where to."""
    options = connection_options(address, settings)
    if address.sentinels is None:
        kind = KINDS[address.scheme]
        return lambda: kind(retry=ConnectRetry(NoBackoff(), 0), **options), []
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
    # Not pool.make_connection: it counts what it made, never what was closed, and ends at 100.
    return lambda: pool.connection_class(**pool.connection_kwargs), sentinel.sentinels
