"""Blocking connections: redis-py opens and authenticates them, a batch is one write and one read loop.

A line is redis-py's connection with two methods more. `Lines` keeps idle ones of one node.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Iterable
from typing import Any

from hiredis import HiredisError
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
from keywright.engine.translation import unreachable
from keywright.engine.wire_format import READONLY, Incoming, Parser
from keywright.errors import ConnectionLostError
from keywright.keyspace.wires import Reply

READ_SIZE = 256 * 1024
CLOSED = "the database was closed"


class BrokenLineError(Exception):
    """A line that broke or fell silent in mid-batch, with the raw replies that came before."""

    def __init__(self, raw: list[Reply], reason: Exception, *, sent: bool, silent: bool) -> None:
        super().__init__(str(reason))
        self.raw = raw
        self.reason = reason
        self.sent = sent
        self.silent = silent


class _Batching:
    """What a line adds to a redis-py connection."""

    _sock: Any
    _parsing: Parser
    _parsed: Any = None

    def transmit(self, chunks: Iterable[bytes]) -> None:
        """Write a whole batch, in parts."""
        try:
            for chunk in chunks:
                self._sock.sendall(chunk)
        except OSError as error:
            raise BrokenLineError([], error, sent=True, silent=isinstance(error, TimeoutError)) from error

    def collect(self, count: int, seconds: float) -> tuple[list[Reply], bool]:
        """Read as many raw replies, and say whether errors are among them."""
        sock = self._sock
        incoming = Incoming(self._parser_of(sock), count)
        try:
            if sock.gettimeout() != seconds:
                sock.settimeout(seconds)
            while not incoming.complete():
                received = sock.recv(READ_SIZE)
                if not received:
                    raise ConnectionError("the server closed the connection")
                incoming.feed(received)
        except (OSError, HiredisError) as error:
            silent = isinstance(error, TimeoutError)
            raise BrokenLineError(incoming.before_break(), error, sent=True, silent=silent) from error
        return incoming.replies, incoming.had_errors()

    def usable(self) -> bool:
        """Whether an idle line is still open and has nothing unread."""
        return self._sock is not None and not self._poller().poll(0)

    def _parser_of(self, sock: Any) -> Parser:
        if self._parsed is not sock:
            self._parsed, self._parsing = sock, Parser()
        return self._parsing

    def _poller(self) -> Any:
        poller = getattr(self, "_polling", None)
        if poller is None or poller[0] is not self._sock:
            watch = select.poll()
            watch.register(self._sock, select.POLLIN | getattr(select, "POLLRDHUP", 0))
            poller = self._polling = (self._sock, watch)
        return poller[1]


class Line(_Batching, Connection):
    """A TCP connection that speaks in batches."""


class SecureLine(_Batching, SSLConnection):
    """A TLS connection that speaks in batches."""


class SocketLine(_Batching, UnixDomainSocketConnection):
    """A unix socket connection that speaks in batches."""


class SentinelLine(_Batching, SentinelManagedConnection):
    """A connection to whatever the sentinels call the primary."""


class SecureSentinelLine(_Batching, SentinelManagedSSLConnection):
    """The same over TLS."""


LINES: dict[str, type[Any]] = {"redis": Line, "rediss": SecureLine, "unix": SocketLine}


class Lines:
    """The lines to one node: idle ones are reused, last used first; their number is bounded.

    `readonly` is for a replica of a cluster, which redirects readers to its primary unless greeted so.
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

    def take(self) -> Any:
        """An open line; EngineError when none can be made."""
        if os.getpid() != self._pid:
            self._start_over()
        self._room.acquire()
        try:
            while self._idle:
                line = self._idle.pop()
                if line.usable():
                    return line
                line.disconnect()
            return self._opened()
        except BaseException:
            self._room.release()
            raise

    def give(self, line: Any) -> None:
        """Put a sound line back."""
        self._idle.append(line)
        self._room.release()
        if self._closed:
            self.close()

    def drop(self, line: Any) -> None:
        """Close a line whose state is unknown."""
        line.disconnect()
        self._room.release()

    def close(self) -> None:
        """Close what is idle now, and the others when they are given back."""
        self._closed = True
        while self._idle:
            self._idle.pop().disconnect()
        for client in self._sentinels:
            client.close()

    def _opened(self) -> Any:
        line = self._make()
        try:
            line.connect()
        except (exceptions.RedisError, OSError) as error:
            raise unreachable(error, self.address.shown) from error
        if self._readonly:
            self._greet(line)
        return line

    def _greet(self, line: Any) -> None:
        try:
            line.transmit([READONLY])
            line.collect(1, self.settings.timeout_seconds)
        except BrokenLineError as broken:
            line.disconnect()
            raise ConnectionLostError(self.address.shown, str(broken)) from broken

    def _start_over(self) -> None:
        """A forked child shares its parent's sockets, so it must not use them."""
        with self._forking:
            if os.getpid() == self._pid:
                return  # another thread was first
            self._idle.clear()
            self._room = threading.BoundedSemaphore(self.settings.most_connections)
            self._pid = os.getpid()


def _maker(address: Address, settings: Settings) -> tuple[Any, list[Any]]:
    """What makes a connection, and the clients it asks where to."""
    options = connection_options(address, settings)
    if address.sentinels is None:
        kind = LINES[address.scheme]
        return lambda: kind(retry=ConnectRetry(NoBackoff(), 0), **options), []
    secure = address.scheme == "rediss"
    known = {k: v for k, v in options.items() if k in ("socket_timeout", "socket_connect_timeout")}
    sentinel = Sentinel(  # type: ignore[no-untyped-call]  # redis-py leaves it untyped
        list(address.sentinels.hosts), sentinel_kwargs=known
    )
    pool = SentinelConnectionPool(  # type: ignore[no-untyped-call]  # redis-py leaves it untyped
        address.sentinels.service,
        sentinel,
        connection_class=SecureSentinelLine if secure else SentinelLine,
        retry=ConnectRetry(NoBackoff(), 0),
        **options,
    )
    # Not pool.make_connection: it counts what it made, never what was closed, and ends at 100.
    return lambda: pool.connection_class(**pool.connection_kwargs), sentinel.sentinels


def connection_options(address: Address, settings: Settings) -> dict[str, Any]:
    """What every connection of a database is made with."""
    return {
        "socket_timeout": settings.timeout_seconds,
        "socket_connect_timeout": settings.connect_seconds,
        **address.settings,
        "protocol": 2,
        "health_check_interval": 0,
    }
