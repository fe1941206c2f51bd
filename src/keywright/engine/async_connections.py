"""Asyncio connections: one open connection carries the batches of many tasks at once.

redis-py opens and authenticates the connection through its streams; then the transport is given
our protocol, which writes whole batches and hands out replies in the order they were asked for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
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
from keywright.engine.connections import CLOSED, SURPLUS, BrokenConnectionError, all_in_use
from keywright.engine.settings import Settings
from keywright.engine.translation import invalid_option, is_name_denied, unreachable
from keywright.engine.wire_format import READONLY, Incoming, Parser
from keywright.errors import ConnectionLostError
from keywright.keyspace.wires import FindDecoder, Reply

Answer = tuple[list[Reply], bool]
Outcome: TypeAlias = Answer | BrokenConnectionError


class _Expected(NamedTuple):
    """A batch that was written and waits for its raw replies."""

    incoming: Incoming
    deadline: float
    done: Callable[[Outcome], None]

    def resolve(self) -> None:
        self.done((self.incoming.replies, self.incoming.had_errors()))

    def fail(self, reason: Exception, *, silent: bool) -> None:
        self.done(BrokenConnectionError(self.incoming.before_break(), reason, sent=True, silent=silent))


class AsyncBatchConnection(asyncio.Protocol):
    """An open connection: it writes the batches of many tasks and matches the replies to them."""

    def __init__(
        self, transport: asyncio.Transport, former: asyncio.BaseProtocol, *, resp3: bool = False
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.transport = transport
        self.former = former
        self.parser = Parser(resp3=resp3)
        self.waiting: deque[_Expected] = deque()
        self.open = True
        self._timer: asyncio.TimerHandle | None = None

    def post(
        self,
        chunks: Iterable[bytes],
        count: int,
        seconds: float,
        done: Callable[[Outcome], None],
        decoder: FindDecoder | None = None,
    ) -> None:
        """Write a batch. Call `done` with its replies and whether errors are among them, or an error.

        Where `decoder` finds a decoder, the replies may be decoded already.
        """
        if not self.open:
            done(BrokenConnectionError([], OSError("it closed"), sent=False, silent=False))
            return
        incoming = Incoming(self.parser, count, decoder, first=not self.waiting)
        deadline = self.loop.time() + seconds
        self.waiting.append(_Expected(incoming, deadline, done))
        # One timer per connection, set again if it fires early: one per batch would cost more than its GET.
        if self._timer is None or self._timer.when() > deadline:
            self._set_timer(deadline)
        for chunk in chunks:
            if self.transport.is_closing():
                break  # the loop is about to say so
            self.transport.write(chunk)
        incoming.prepare()

    def send(self, buffer: bytes, count: int, seconds: float) -> asyncio.Future[Outcome]:
        """Write a batch. Return a future of its outcome."""
        future: asyncio.Future[Outcome] = self.loop.create_future()

        def done(outcome: Outcome) -> None:
            if not future.done():
                future.set_result(outcome)

        self.post([buffer], count, seconds, done)
        return future

    def data_received(self, data: bytes) -> None:
        waiting = self.waiting
        if not waiting:
            if self.parser.resp3:
                self.parser.feed(data)
            if not self.parser.resp3 or self.parser.has_surplus():
                self.close()  # unsolicited: it would be matched to the next batch
            return
        waiting[0].incoming.feed(data)
        while waiting:
            incoming = waiting[0].incoming
            if not incoming.started:
                incoming.start()
            if not incoming.complete():
                return
            expected = waiting.popleft()
            if not waiting and self.parser.has_surplus():
                expected.done(BrokenConnectionError([], OSError(SURPLUS), sent=True, silent=False))
                self.close()
                return
            expected.resolve()
        if not self.open:
            self.close()  # it was retired, and this was its last batch

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False
        self._cancel_timer()
        self._give_up(exc or OSError("the server closed the connection"), silent=False)
        self.former.connection_lost(exc)

    def pause_writing(self) -> None:
        self.former.pause_writing()

    def resume_writing(self) -> None:
        self.former.resume_writing()

    def eof_received(self) -> bool | None:
        return None

    def retire(self) -> None:
        """Take no more batches, and close once those in flight are answered."""
        self.open = False
        if not self.waiting:
            self.close()

    def close(self) -> None:
        self.open = False
        self._cancel_timer()
        self._give_up(OSError("it was closed"), silent=False)
        self.transport.abort()

    def _set_timer(self, deadline: float) -> None:
        self._cancel_timer()
        self._timer = self.loop.call_at(deadline, self._check_deadline)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_deadline(self) -> None:
        """Close the connection if a deadline passed: replies come in order, so all others would wait too."""
        self._timer = None
        if not self.waiting:
            return
        first = self.waiting[0]
        if first.deadline > self.loop.time():
            self._set_timer(first.deadline)
            return
        self.open = False
        self.waiting.popleft().fail(TimeoutError("no answer in time"), silent=True)
        self._give_up(OSError("the connection was given up after a deadline"), silent=False)
        self.transport.abort()

    def _give_up(self, reason: Exception, *, silent: bool) -> None:
        while self.waiting:
            self.waiting.popleft().fail(reason, silent=silent)


class _Opener:
    """The method that turns a redis-py connection into one for batches."""

    _writer: Any
    protocol: Any

    async def open_batch_connection(self) -> AsyncBatchConnection:
        await self.connect()  # type: ignore[attr-defined]  # of the redis-py connection this is mixed into
        transport = self._writer.transport
        connection = AsyncBatchConnection(transport, transport.get_protocol(), resp3=self.protocol == 3)
        transport.set_protocol(connection)
        return connection


class TcpOpener(_Opener, Connection):
    """A TCP connection of redis-py that is opened for batches."""


class TlsOpener(_Opener, SSLConnection):
    """A TLS connection of redis-py that is opened for batches."""


class SocketOpener(_Opener, UnixDomainSocketConnection):
    """A unix socket connection of redis-py that is opened for batches."""


class SentinelOpener(_Opener, SentinelManagedConnection):
    """A TCP connection to the primary that the sentinels report."""


class SecureSentinelOpener(_Opener, SentinelManagedSSLConnection):
    """A TLS connection to the primary that the sentinels report."""


KINDS: dict[str, type[Any]] = {
    "redis": TcpOpener,
    "rediss": TlsOpener,
    "unix": SocketOpener,
}


class AsyncConnectionPool:
    """The connections to one node: a shared one for ordinary batches, a bounded pool for blocking commands.

    `readonly` is for a replica of a cluster: it redirects reads to its primary until READONLY is sent.
    """

    def __init__(self, address: Address, settings: Settings, *, readonly: bool = False) -> None:
        self.address = address
        self.settings = settings
        self._readonly = readonly
        self._make, self._sentinels = _maker(address, settings)
        self._shared: AsyncBatchConnection | None = None
        self._opening: asyncio.Task[AsyncBatchConnection] | None = None
        self._idle: list[AsyncBatchConnection] = []
        self._openers: dict[AsyncBatchConnection, Any] = {}
        self._room = asyncio.Semaphore(settings.most_connections)
        self._closed = False
        self._nameless = False

    @property
    def ready(self) -> AsyncBatchConnection | None:
        """Return the shared connection if it is open now."""
        shared = self._shared
        return shared if shared is not None and shared.open else None

    async def shared(self, seconds: float) -> AsyncBatchConnection:
        """Return the shared connection of ordinary batches. Concurrent callers share one attempt to open.

        Raise EngineError if it is not open in this time.
        """
        if self.ready is not None:
            return self.ready
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._reopened())
            # Every caller may have been cancelled: retrieve the exception.
            self._opening.add_done_callback(lambda done: done.cancelled() or done.exception())
        opening = self._opening
        await asyncio.wait([opening], timeout=seconds)
        if not opening.done():
            raise ConnectionLostError(self.address.shown, f"it did not connect within {seconds:.3g} s")
        if opening.cancelled():
            raise ConnectionLostError(self.address.shown, CLOSED)
        return opening.result()

    async def borrow(self, seconds: float) -> AsyncBatchConnection:
        """Return a connection of the pool, for one batch. Wait while all of them are in use.

        Raise EngineError if none is free, or can be made, in this time.
        """
        ends = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(ends):
                await self._room.acquire()
        except TimeoutError as error:
            raise ConnectionLostError(self.address.shown, all_in_use(self.settings)) from error
        try:
            while self._idle:
                connection = self._idle.pop()
                if connection.open:
                    return connection
                await self._forget(connection)
            return await self._opened(max(ends - asyncio.get_running_loop().time(), 0.0))
        except BaseException:
            self._room.release()
            raise

    def leave(self, connection: AsyncBatchConnection) -> None:
        """Close a connection after its last reply, and the idle ones: the server is not the primary now."""
        connection.retire()
        for idle in self._idle:
            idle.close()

    async def give_back(self, connection: AsyncBatchConnection) -> None:
        self._room.release()
        if connection.open and not connection.waiting:
            self._idle.append(connection)
        else:
            await self._forget(connection)

    async def close(self) -> None:
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        for connection in list(self._openers):
            await self._forget(connection)
        self._idle.clear()
        self._shared = None
        for client in self._sentinels:
            await client.aclose()

    async def _reopened(self) -> AsyncBatchConnection:
        for connection in [each for each in self._openers if not each.open and not each.waiting]:
            await self._forget(connection)
        self._shared = await self._opened(self.settings.timeout_seconds)
        return self._shared

    async def _opened(self, seconds: float) -> AsyncBatchConnection:
        try:
            opener = self._make()
        except (exceptions.RedisError, TypeError) as error:
            raise invalid_option(error) from error
        opener.socket_connect_timeout = min(opener.socket_connect_timeout, seconds)
        opener.socket_timeout = min(opener.socket_timeout, seconds)
        cancelled_before = _cancellations()
        try:
            connection = await self._connected(opener)
        except (exceptions.RedisError, OSError, MemoryError) as error:
            raise unreachable(error, self.address) from error
        self._openers[connection] = opener
        if _cancellations() > cancelled_before:
            # redis-py waits with asyncio.wait_for, which may lose a cancellation in Python 3.11.
            await self._forget(connection)
            raise asyncio.CancelledError
        if self._closed:
            await self._forget(connection)
            raise ConnectionLostError(self.address.shown, CLOSED)
        if self._readonly:
            await self._greet(connection, opener.socket_timeout)
        return connection

    async def _connected(self, opener: Any) -> AsyncBatchConnection:
        """Open a connection, without its client name where access rules deny that."""
        if self._nameless:
            opener.client_name = None
        try:
            return cast("AsyncBatchConnection", await opener.open_batch_connection())
        except exceptions.RedisError as error:
            if not opener.client_name or not is_name_denied(error):
                raise
            self._nameless, opener.client_name = True, None
            return cast("AsyncBatchConnection", await opener.open_batch_connection())

    async def _greet(self, connection: AsyncBatchConnection, seconds: float) -> None:
        try:
            outcome = await connection.send(READONLY, 1, seconds)
        except BaseException:
            await self._forget(connection)
            raise
        if isinstance(outcome, BrokenConnectionError):
            await self._forget(connection)
            raise ConnectionLostError(self.address.shown, str(outcome))

    async def _forget(self, connection: AsyncBatchConnection) -> None:
        opener = self._openers.pop(connection, None)
        connection.close()
        if opener is not None:
            await opener.disconnect(nowait=True)


def _cancellations() -> int:
    """Return how many cancellations of the current task are pending."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


@cache
def _extended(kind: type[Any]) -> type[Any]:
    """Return a connection class of the caller with the methods for batches."""
    extended: type[Any] = type(kind.__name__, (_Opener, kind), {})
    return extended


def _maker(address: Address, settings: Settings) -> tuple[Any, list[Any]]:
    """Return an opener factory, and the sentinel clients that it uses."""
    options = address.connection_options(settings)
    if address.sentinels is None:
        kind = KINDS[address.scheme] if address.kind is None else _extended(address.kind)  # type: ignore[arg-type]  # mypy: a class is not hashable
        return lambda: kind(retry=ConnectRetry(NoBackoff(), 0), **options), []
    hosts = list(address.sentinels.hosts)
    # All of them are reached and asked within the connect timeout; only the delivery retries.
    share = options["socket_connect_timeout"] / (2 * len(hosts))
    patience = {"socket_timeout": share, "socket_connect_timeout": share}
    sentinel = Sentinel(  # type: ignore[no-untyped-call]  # redis-py leaves it untyped
        hosts,
        sentinel_kwargs={**address.sentinels.options, **patience, "retry": ConnectRetry(NoBackoff(), 0)},
        **address.sentinels.arguments,
    )
    secure = address.scheme == "rediss"
    pool = SentinelConnectionPool(  # type: ignore[no-untyped-call]  # redis-py leaves it untyped
        address.sentinels.service,
        sentinel,
        connection_class=SecureSentinelOpener if secure else SentinelOpener,
        retry=ConnectRetry(NoBackoff(), 0),
        **{**options, "protocol": 2},  # with 3 a pool adds handlers of notifications that are not used here
    )
    pool.connection_kwargs["protocol"] = address.protocol
    # Not pool.make_connection: it counts opened connections, never closed ones, and stops at 100.
    return lambda: pool.connection_class(**pool.connection_kwargs), sentinel.sentinels
