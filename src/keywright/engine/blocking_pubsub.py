"""Subscriptions for blocking programs, which outlive their connections as those for asyncio do."""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from keywright.engine.connections import CLOSED, READ_SIZE, BrokenConnectionError, ConnectionPool
from keywright.engine.deadlines import time_of
from keywright.engine.messages import (
    Asked,
    Interest,
    Message,
    Wanted,
    interests_of,
    is_elsewhere,
    is_withdrawn,
    message_in,
)
from keywright.engine.packed_commands import pack_command
from keywright.engine.pubsub import PING, refused_interest
from keywright.engine.retry import is_spent
from keywright.engine.settings import Settings
from keywright.engine.wire_format import NOTHING, UNPARSABLE, ErrorReply, Parser
from keywright.errors import ConnectionLostError, KeywrightError
from keywright.keyspace.context import Context
from keywright.keyspace.misuse import explained
from keywright.keyspace.wires import Reply

__all__ = ["BlockingSubscription"]

M = TypeVar("M")
Find = Callable[[int | None, bool], Sequence[ConnectionPool]]


class BlockingSubscription(Generic[M]):
    """The messages of some channels, as an iterator. Use it with `with`, in one thread.

    Entering returns once the server has confirmed every channel and pattern. A lost connection is made again
    while the program waits for a message, and messages that are published until then are lost. Another thread
    may call `close`, which ends the iteration. Messages are kept by the server until they are read; when it
    has too many (`client-output-buffer-limit pubsub`), it closes the connection.
    """

    def __init__(self, find: Find, settings: Settings, context: Context, wanted: Wanted) -> None:
        self._find = find
        self._settings = settings
        self._context = context
        self._decode: Callable[[Message], M | None] = wanted.decode
        self._lines: dict[int | None, _Line] = {}
        self._unread: deque[Message] = deque()
        self._closed = False
        self._woken, self._wake = socket.socketpair()
        if not wanted.interests:
            self._line(None)
        for interest in wanted.interests:
            self._line(interest.slot).wanted[interest] = None

    @property
    def active(self) -> bool:
        """Return whether every channel and pattern is confirmed on an open connection."""
        return not self._closed and all(line.active for line in self._lines.values())

    @property
    def interruptions(self) -> int:
        """Return how often a connection was lost. Messages that were published meanwhile are lost too."""
        return sum(line.losses for line in self._lines.values())

    def add(self, *channels: Asked, patterns: Iterable[bytes] = ()) -> None:
        """Subscribe to more. Return once the server has confirmed it, after a reconnect if need be."""
        for interest in interests_of(channels, patterns, self._context):
            self._line(interest.slot).want(interest)
        self._confirm()

    @explained
    def get(self, timeout: float | None = None) -> M | None:
        """Return the next message; None if there is none within some seconds, or after `close`."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self._closed:
            while self._unread:
                found = self._decode(self._unread.popleft())
                if found is not None:
                    return found
            left = None if until is None else max(0.0, until - time.monotonic())
            self._receive(left)
            if not self._unread and until is not None and time.monotonic() >= until:
                break
        return None

    def close(self) -> None:
        """End the subscription. A thread that waits for a message stops."""
        self._closed = True
        self._wake.close()  # wakes a thread in `get`, which closes the connections

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> M:
        found = self.get()
        if found is None:
            raise StopIteration
        return found

    def __enter__(self) -> Self:
        try:
            self._confirm()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        self.close()
        self._woken.close()
        for line in self._lines.values():
            line.leave()

    def _confirm(self) -> None:
        while not self._closed and not self.active:
            self._receive(None, until_confirmed=True)

    def _line(self, slot: int | None) -> _Line:
        if slot not in self._lines:
            self._lines[slot] = _Line(slot, self._find, self._settings, self._unread)
        return self._lines[slot]

    def _receive(self, seconds: float | None, *, until_confirmed: bool = False) -> None:
        """Wait once for data of any connection, this long at most. Make lost connections again."""
        for line in self._lines.values():
            line.connect()
        if self._unread or (until_confirmed and self.active):
            return
        wait = min(line.patience() for line in self._lines.values())
        if seconds is not None:
            wait = min(wait, seconds)
        poller = select.poll()
        poller.register(self._woken, select.POLLIN)
        sockets = {line.fileno(): line for line in self._lines.values() if line.is_open}
        for number in sockets:
            poller.register(number, select.POLLIN)
        started = time.monotonic()
        ready = {number for number, _ in poller.poll(wait * 1000)}
        waited = time.monotonic() - started
        for number, line in sockets.items():
            if number in ready:
                line.read()
            else:
                line.has_waited(waited)


class _Line:
    """The interests of a subscription at one node: any, or the one that has a slot."""

    def __init__(self, slot: int | None, find: Find, settings: Settings, unread: deque[Message]) -> None:
        self.wanted: dict[Interest, None] = {}
        self.losses = 0
        self._slot = slot
        self._find = find
        self._settings = settings
        self._unread = unread
        self._pool: ConnectionPool | None = None
        self._connection: Any = None
        self._parser = Parser()
        self._asked: deque[Interest | tuple[bytes]] = deque()
        self._confirmed: set[Interest] = set()
        self._proven = False
        self._attempt = 0
        self._next_attempt = 0.0
        patience, _ = time_of([], settings, walk=False)
        self._give_up = time.monotonic() + patience
        self._quiet = 0.0
        self._pinged = False

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    @property
    def active(self) -> bool:
        return self.is_open and self._confirmed >= self.wanted.keys()

    def fileno(self) -> int:
        number: int = self._connection._sock.fileno()
        return number

    def patience(self) -> float:
        """Return how long nothing is to be done unless data arrives."""
        if self.is_open:
            return max(0.0, self._settings.timeout_seconds - self._quiet)
        return max(0.0, self._next_attempt - time.monotonic())

    def want(self, interest: Interest) -> None:
        if interest not in self.wanted:
            self.wanted[interest] = None
            if self.is_open:
                self._ask(interest)

    def connect(self) -> None:
        """Open a connection, if there is none and the pause after the last attempt is over.

        Raise the error of an attempt before the first success once the limits of the settings are reached.
        """
        if self.is_open or time.monotonic() < self._next_attempt:
            return
        try:
            candidates = self._find(self._slot, self._attempt > 0)
            if not candidates:
                raise ConnectionLostError("the database", CLOSED)
            pool = candidates[self._attempt % len(candidates)]
            self._connection = pool.take(lambda: self._settings.timeout_seconds)
        except ConnectionLostError as error:
            self._rest()
            late = time.monotonic() >= self._give_up
            spent = late or is_spent(self._settings.retry, self._attempt)
            if error.reason == CLOSED or (not self._proven and spent):
                raise
            return
        self._pool, self._parser, self._quiet, self._pinged = pool, Parser(), 0.0, False
        self._proven = self._proven or not self.wanted
        for interest in self.wanted:
            self._ask(interest)

    def read(self) -> None:
        """Read the data that has arrived, and keep the messages in it."""
        sock = self._connection._sock
        try:
            data = sock.recv(READ_SIZE)
            pending = getattr(sock, "pending", None)
            while data and pending is not None and pending():
                data += sock.recv(READ_SIZE)
            self._quiet, self._pinged = 0.0, False
            self._parser.feed(data)
            if not data:
                self._lose()
            while self.is_open and (reply := self._parser.gets()) is not NOTHING:
                self._heard(reply)
        except (OSError, *UNPARSABLE):
            self._lose()

    def has_waited(self, seconds: float) -> None:
        """Note that nothing arrived for some time. Ask for a sign of life, or give the connection up."""
        self._quiet += seconds
        if self._quiet < self._settings.timeout_seconds:
            return
        if self._pinged:
            self._lose()
            return
        self._quiet, self._pinged = 0.0, True
        self._ask(PING)

    def leave(self) -> None:
        """Close the connection."""
        if self._connection is not None and self._pool is not None:
            self._pool.drop(self._connection)
        self._connection = None
        self._asked.clear()
        self._confirmed.clear()

    def _ask(self, question: Interest | tuple[bytes]) -> None:
        self._asked.append(question)
        try:
            self._connection.transmit([pack_command(question[:2])], self._settings.timeout_seconds)
        except BrokenConnectionError:
            self._lose()

    def _heard(self, reply: Reply) -> None:
        message = message_in(reply)
        if message is not None:
            self._unread.append(message)
        elif is_withdrawn(reply):
            self._lose()
        else:
            self._settled(reply if isinstance(reply, ErrorReply) else None)

    def _settled(self, refused: ErrorReply | None) -> None:
        """Settle the oldest request: the server confirms each, in their order."""
        interest = self._asked.popleft()
        if not isinstance(interest, Interest):
            return  # a PING: even a refusal is a sign of life
        if refused is None:
            self._proven, self._attempt = True, 0
            self._confirmed.add(interest)
        elif is_elsewhere(refused):
            self._lose()
        else:
            del self.wanted[interest]
            error: KeywrightError = refused_interest(interest, refused)
            raise error

    def _lose(self) -> None:
        self.losses += self._proven
        self.leave()
        self._rest()

    def _rest(self) -> None:
        self._attempt += 1
        self._next_attempt = time.monotonic() + self._settings.retry.pause(self._attempt)
