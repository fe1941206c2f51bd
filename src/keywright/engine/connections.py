"""Blocking connections: redis-py opens and authenticates them, a batch is one write and one read loop.

A batch connection is a redis-py connection with methods for whole batches; `ConnectionPool` keeps those of
one node.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from redis import exceptions
from redis.backoff import NoBackoff
from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection
from redis.retry import Retry as ConnectRetry
from redis.sentinel import (
    Sentinel,
    SentinelConnectionPool,
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)

from keywright.engine.address import Address
from keywright.engine.settings import Settings
from keywright.engine.translation import invalid_option, is_name_denied, unreachable
from keywright.engine.wire_format import READONLY, UNPARSABLE, Incoming, Parser
from keywright.errors import ConnectionLostError
from keywright.keyspace.wires import FindDecoder, Reply

READ_SIZE = 256 * 1024
CLOSED = "the database was closed"
SURPLUS = "the server sent replies that were not asked for"


def all_in_use(settings: Settings) -> str:
    return f"all {settings.most_connections} connections of the pool are in use"


class BrokenConnectionError(Exception):
    """A connection broke, or missed its deadline, in mid-batch. It has the raw replies received before."""

    def __init__(self, raw: list[Reply], reason: Exception, *, sent: bool, silent: bool) -> None:
        super().__init__(str(reason))
        self.raw = raw
        self.reason = reason
        self.sent = sent
        self.silent = silent


class _Batching:
    """The methods that a batch connection adds to one of redis-py."""

    _sock: Any
    protocol: Any
    _parsing: Parser
    _parsed: Any = None

    def transmit(self, chunks: Iterable[bytes], seconds: float) -> None:
        """Write a whole batch, in parts."""
        try:
            self._limit(seconds)
            for chunk in chunks:
                self._sock.sendall(chunk)
        except OSError as error:
            raise BrokenConnectionError(
                [], error, sent=True, silent=isinstance(error, TimeoutError)
            ) from error

    def collect(
        self, count: int, seconds: float, decoder: FindDecoder | None = None
    ) -> tuple[list[Reply], bool]:
        """Read this many replies. Return them, and whether errors are among them.

        Where `decoder` finds a decoder, they may be decoded already.
        """
        sock = self._sock
        incoming = Incoming(self._parser_of(sock), count, decoder)
        try:
            self._limit(seconds)
            incoming.prepare()
            while not incoming.complete():
                received = sock.recv(READ_SIZE)
                if not received:
                    raise ConnectionError("the server closed the connection")
                incoming.feed(received)
        except (OSError, *UNPARSABLE) as error:
            silent = isinstance(error, TimeoutError)
            raise BrokenConnectionError(incoming.before_break(), error, sent=True, silent=silent) from error
        if self._parsing.has_surplus():  # so any of them may be the reply to another command
            raise BrokenConnectionError([], ConnectionError(SURPLUS), sent=True, silent=False)
        return incoming.replies, incoming.had_errors()

    def _limit(self, seconds: float) -> None:
        if self._sock.gettimeout() != seconds:  # setting it is a system call
            self._sock.settimeout(seconds)

    def usable(self) -> bool:
        """Return whether an idle connection is still open and has no unread bytes."""
        return self._sock is not None and not self._poller().poll(0)

    def _parser_of(self, sock: Any) -> Parser:
        if self._parsed is not sock:
            self._parsed, self._parsing = sock, Parser(resp3=self.protocol == 3)
        return self._parsing

    def _poller(self) -> Any:
        poller = getattr(self, "_polling", None)
        if poller is None or poller[0] is not self._sock:
            watch = select.poll()
            watch.register(self._sock, select.POLLIN | getattr(select, "POLLRDHUP", 0))
            poller = self._polling = (self._sock, watch)
        return poller[1]


class BatchConnection(_Batching, Connection):
    """A TCP connection for batches."""


class SecureBatchConnection(_Batching, SSLConnection):
    """A TLS connection for batches."""


class SocketBatchConnection(_Batching, UnixDomainSocketConnection):
    """A unix socket connection for batches."""


class SentinelBatchConnection(_Batching, SentinelManagedConnection):
    """A TCP connection to the primary that the sentinels report."""


class SecureSentinelBatchConnection(_Batching, SentinelManagedSSLConnection):
    """A TLS connection to the primary that the sentinels report."""


KINDS: dict[str, type[Any]] = {
    "redis": BatchConnection,
    "rediss": SecureBatchConnection,
    "unix": SocketBatchConnection,
}


class ConnectionPool:
    """A bounded pool of connections to one node. Idle ones are reused, last used first.

    `readonly` is for a replica of a cluster: it redirects reads to its primary until READONLY is sent.
    """

    def __init__(self, address: Address, settings: Settings, *, readonly: bool = False) -> None:
        self.address = address
        self.settings = settings
        self._readonly = readonly
        self._idle: deque[Any] = deque()
        self._room = threading.BoundedSemaphore(settings.most_connections)
        self._make, self._sentinels = _maker(address, settings)
        self._pid = os.getpid()
        self._forking = threading.Lock()
        self._closed = False
        self._nameless = False

    def take(self, time_left: Callable[[], float]) -> Any:
        """Return an open connection. Raise EngineError if none is free, or can be made, in the time left."""
        if os.getpid() != self._pid:
            self._start_over()
        if not self._room.acquire(blocking=False) and not self._room.acquire(timeout=time_left()):
            raise ConnectionLostError(self.address.shown, all_in_use(self.settings))
        try:
            while self._idle:
                connection = self._idle.pop()
                if connection.usable():
                    return connection
                connection.disconnect()
            return self._opened(time_left())
        except BaseException:
            self._room.release()
            raise

    def give(self, connection: Any) -> None:
        """Return a usable connection to the pool."""
        self._idle.append(connection)
        self._room.release()
        if self._closed:
            self.close()

    def drop(self, connection: Any) -> None:
        """Close a connection whose state is unknown."""
        connection.disconnect()
        self._room.release()

    def leave(self) -> None:
        """Close the idle connections: they lead to a server that is not the primary any more."""
        while self._idle:
            self._idle.pop().disconnect()

    def close(self) -> None:
        """Close the idle connections now, and the others when they are returned."""
        self._closed = True
        self.leave()
        for client in self._sentinels:
            client.close()

    def _opened(self, seconds: float) -> Any:
        try:
            connection = self._make()
        except (exceptions.RedisError, TypeError) as error:
            raise invalid_option(error) from error
        connection.socket_connect_timeout = min(connection.socket_connect_timeout, seconds)
        connection.socket_timeout = min(connection.socket_timeout, seconds)
        try:
            self._connect(connection)
        except (exceptions.RedisError, OSError, MemoryError) as error:
            raise unreachable(error, self.address) from error
        if self._readonly:
            self._greet(connection, connection.socket_timeout)
        return connection

    def _connect(self, connection: Any) -> None:
        """Open a connection, without its client name where access rules deny that."""
        if self._nameless:
            connection.client_name = None
        try:
            connection.connect()
        except exceptions.RedisError as error:
            if not connection.client_name or not is_name_denied(error):
                raise
            self._nameless, connection.client_name = True, None
            connection.connect()

    def _greet(self, connection: Any, seconds: float) -> None:
        try:
            connection.transmit([READONLY], seconds)
            connection.collect(1, seconds)
        except BrokenConnectionError as broken:
            connection.disconnect()
            raise ConnectionLostError(self.address.shown, str(broken)) from broken

    def _start_over(self) -> None:
        """Forget the connections in a forked child: the sockets are its parent's."""
        with self._forking:
            if os.getpid() == self._pid:
                return  # another thread was first
            self._idle.clear()
            self._room = threading.BoundedSemaphore(self.settings.most_connections)
            self._pid = os.getpid()


@cache
def _extended(kind: type[Any]) -> type[Any]:
    """Return a connection class of the caller with the methods for batches."""
    extended: type[Any] = type(kind.__name__, (_Batching, kind), {})
    return extended


def _maker(address: Address, settings: Settings) -> tuple[Any, list[Any]]:
    """Return a connection factory, and the sentinel clients that it uses."""
    options = address.connection_options(settings)
    if address.sentinels is None:
        kind = KINDS[address.scheme] if address.kind is None else _extended(address.kind)  # type: ignore[arg-type]  # mypy: a class is not hashable
        return lambda: kind(retry=ConnectRetry(NoBackoff(), 0), **options), []
    secure = address.scheme == "rediss"
    hosts = list(address.sentinels.hosts)
    # All of them are reached and asked within the connect timeout; only the delivery retries.
    share = options["socket_connect_timeout"] / (2 * len(hosts))
    patience = {"socket_timeout": share, "socket_connect_timeout": share}
    sentinel = Sentinel(  # type: ignore[no-untyped-call]  # redis-py leaves it untyped
        hosts,
        sentinel_kwargs={**address.sentinels.options, **patience, "retry": ConnectRetry(NoBackoff(), 0)},
        **address.sentinels.arguments,
    )
    pool = SentinelConnectionPool(  # type: ignore[no-untyped-call]  # redis-py leaves it untyped
        address.sentinels.service,
        sentinel,
        connection_class=SecureSentinelBatchConnection if secure else SentinelBatchConnection,
        retry=ConnectRetry(NoBackoff(), 0),
        **{**options, "protocol": 2},  # with 3 a pool adds handlers of notifications that are not used here
    )
    pool.connection_kwargs["protocol"] = address.protocol
    # Not pool.make_connection: it counts opened connections, never closed ones, and stops at 100.
    return lambda: pool.connection_class(**pool.connection_kwargs), sentinel.sentinels
