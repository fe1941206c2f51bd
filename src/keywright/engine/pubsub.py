"""Subscriptions for asyncio, which outlive their connections.

The server stores no messages, so those that are published during a reconnect are lost; `interruptions` counts
how often that may have happened. On a cluster every node forwards the messages of all others, except sharded
ones: a subscription connects to one node, and to the node of each slot of its sharded channels.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from keywright.engine.async_connections import AsyncBatchConnection, AsyncConnectionPool
from keywright.engine.connections import CLOSED
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
from keywright.engine.retry import is_spent
from keywright.engine.settings import Settings
from keywright.engine.wire_format import NOTHING, ErrorReply, Parser
from keywright.errors import ConnectionLostError, KeywrightError, ServerRefusedError
from keywright.keyspace.context import Context
from keywright.keyspace.wires import Reply

__all__ = ["Subscription"]

M = TypeVar("M")

PING = (b"PING",)
MOST_UNREAD = 10_000


class Subscription(Generic[M]):
    """The messages of some channels, as an async iterator. Use it with `async with`.

    Entering returns once the server has confirmed every channel and pattern. A lost connection is made
    again, and every subscription with it; `active` is False meanwhile, and messages are lost. Up to 10,000
    messages are kept for a slow reader. Then the server keeps them, and closes the connection when it has too
    many (`client-output-buffer-limit pubsub`).
    """

    def __init__(
        self,
        find: Callable[[int | None, bool], Awaitable[Sequence[AsyncConnectionPool]]],
        settings: Settings,
        context: Context,
        wanted: Wanted,
    ) -> None:
        self._find = find
        self._settings = settings
        self._context = context
        self._decode: Callable[[Message], M | None] = wanted.decode
        self._lines: dict[int | None, _Line] = {}
        self._unread: deque[Message] = deque()
        self._arrival = asyncio.Event()
        self._failure: KeywrightError | None = None
        self._open = False
        if not wanted.interests:
            self._line(None)
        for interest in wanted.interests:
            self._line(interest.slot).wanted[interest] = None

    @property
    def active(self) -> bool:
        """Return whether every channel and pattern is confirmed on an open connection."""
        return all(line.active for line in self._lines.values())

    @property
    def interruptions(self) -> int:
        """Return how often a connection was lost. Messages that were published meanwhile are lost too."""
        return sum(line.losses for line in self._lines.values())

    async def add(self, *channels: Asked, patterns: Iterable[bytes] = ()) -> None:
        """Subscribe to more. Return once the server has confirmed it, after a reconnect if need be."""
        wanted = interests_of(channels, patterns, self._context)
        for interest in wanted:
            line = self._line(interest.slot)
            if self._open:
                line.start()
            line.want(interest)
        await self._confirmation(wanted)

    async def confirmed(self) -> None:
        """Wait until every channel and pattern is confirmed on the current connection."""
        await self._confirmation([each for line in self._lines.values() for each in line.wanted])

    async def close(self) -> None:
        """End the subscription and close its connections."""
        self._open = False
        tasks = [line.task for line in self._lines.values() if line.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.fail(ConnectionLostError("the subscription", "it was closed"))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> M:
        while True:
            found = self._decode(await self._next())
            if found is not None:
                return found

    async def _next(self) -> Message:
        while not self._unread:
            if self._failure is not None:
                if not self._open:
                    raise StopAsyncIteration
                raise self._failure
            self._arrival.clear()
            await self._arrival.wait()
        if len(self._unread) <= MOST_UNREAD // 2:
            for line in self._lines.values():
                line.resume()
        return self._unread.popleft()

    async def __aenter__(self) -> Self:
        self._open = True
        for line in self._lines.values():
            line.start()
        try:
            await self.confirmed()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _confirmation(self, wanted: list[Interest]) -> None:
        if self._failure is not None:
            raise self._failure
        pending = [each for interest in wanted for each in self._line(interest.slot).pending(interest)]
        if pending:
            await asyncio.gather(*pending)

    def _line(self, slot: int | None) -> _Line:
        if slot not in self._lines:
            self._lines[slot] = _Line(self, slot, self._find, self._settings)
        return self._lines[slot]

    def keep(self, message: Message) -> bool:
        """Keep a message that was received. Return whether there is room for more."""
        self._unread.append(message)
        self._arrival.set()
        return len(self._unread) < MOST_UNREAD

    def fail(self, error: KeywrightError) -> None:
        """End the iteration with an error."""
        self._failure = self._failure or error
        for line in self._lines.values():
            line.refuse_all(error)
        self._arrival.set()


class _Line:
    """The interests of a subscription at one node: any, or the one that has a slot."""

    def __init__(
        self,
        owner: Subscription[Any],
        slot: int | None,
        find: Callable[[int | None, bool], Awaitable[Sequence[AsyncConnectionPool]]],
        settings: Settings,
    ) -> None:
        self.wanted: dict[Interest, None] = {}
        self.task: asyncio.Task[None] | None = None
        self.feed: _Feed | None = None
        self.losses = 0
        self._owner = owner
        self._slot = slot
        self._find = find
        self._settings = settings
        self._confirmed: set[Interest] = set()
        self._waiting: dict[Interest, list[asyncio.Future[None]]] = {}
        self._proven = False

    @property
    def active(self) -> bool:
        return self.feed is not None and self._confirmed >= self.wanted.keys()

    def start(self) -> None:
        if self.task is None:
            self.task = asyncio.create_task(self._keep())

    def want(self, interest: Interest) -> None:
        if interest not in self.wanted:
            self.wanted[interest] = None
            if self.feed is not None:
                self.feed.ask(interest)

    def pending(self, interest: Interest) -> list[asyncio.Future[None]]:
        """Return a future for an interest that is not confirmed."""
        if interest in self._confirmed:
            return []
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(interest, []).append(future)
        return [future]

    def refuse_all(self, error: KeywrightError) -> None:
        for waiting in self._waiting.values():
            _resolve(waiting, error)
        self._waiting.clear()

    def resume(self) -> None:
        if self.feed is not None:
            self.feed.resume()

    async def _keep(self) -> None:
        """Keep a connection until closed. The first one must succeed within the limits of the settings."""
        attempt = 0
        patience, _ = time_of([], self._settings, walk=False)
        give_up = asyncio.get_running_loop().time() + patience
        while True:
            try:
                candidates = await self._find(self._slot, attempt > 0)
                if not candidates:
                    self._owner.fail(ConnectionLostError("the database", CLOSED))
                    return
                pool = candidates[attempt % len(candidates)]
                connection = await pool.borrow(self._settings.timeout_seconds)
            except ConnectionLostError as error:
                attempt += 1
                late = asyncio.get_running_loop().time() >= give_up
                if not self._proven and (late or is_spent(self._settings.retry, attempt)):
                    self._owner.fail(error)
                    return
            except KeywrightError as error:
                self._owner.fail(error)
                return
            else:
                await self._listen(pool, connection)
                attempt = 1 if self._proven else attempt + 1
            await asyncio.sleep(self._settings.retry.pause(attempt))

    async def _listen(self, pool: AsyncConnectionPool, connection: AsyncBatchConnection) -> None:
        self.feed = feed = _Feed(connection, self._heard)
        try:
            for interest in self.wanted:
                feed.ask(interest)
            self._proven = self._proven or not self.wanted
            await feed.until_lost(self._settings.timeout_seconds)
            self.losses += self._proven
        finally:
            self.feed = None
            self._confirmed.clear()
            connection.close()
            await pool.give_back(connection)

    def _heard(self, reply: Reply) -> None:
        assert self.feed is not None
        message = message_in(reply)
        if message is not None:
            if not self._owner.keep(message):
                self.feed.pause()
        elif is_withdrawn(reply):
            self.feed.lose()
        else:
            self._settled(reply if isinstance(reply, ErrorReply) else None)

    def _settled(self, refused: ErrorReply | None) -> None:
        """Settle the oldest request: the server confirms each, in their order."""
        assert self.feed is not None
        interest = self.feed.asked.popleft()
        if not isinstance(interest, Interest):
            return  # a PING: even a refusal is a sign of life
        if refused is not None and is_elsewhere(refused):
            self.feed.lose()
            return
        waiting = self._waiting.pop(interest, [])
        if refused is None:
            self._proven = True
            self._confirmed.add(interest)
            _resolve(waiting)
            return
        del self.wanted[interest]
        error = refused_interest(interest, refused)
        if not waiting:
            self._owner.fail(error)  # it was confirmed once: the consumer must not wait for it in vain
        _resolve(waiting, error)


class _Feed(asyncio.Protocol):
    """A connection in subscribed mode, on which the server sends messages without a request."""

    def __init__(self, connection: AsyncBatchConnection, heard: Callable[[Reply], None]) -> None:
        self.asked: deque[Interest | tuple[bytes]] = deque()
        self._transport = connection.transport
        self._former = connection.former
        self._report = heard
        self._parser = Parser()
        self._lost = asyncio.get_running_loop().create_future()
        self._alive = True
        self._paused = False
        self._transport.set_protocol(self)

    def ask(self, question: Interest | tuple[bytes]) -> None:
        self.asked.append(question)
        self._transport.write(pack_command(question[:2]))

    async def until_lost(self, patience: float) -> None:
        """Wait until the connection is lost, or a PING gets no answer."""
        while True:
            await asyncio.wait([self._lost], timeout=patience)
            if self._lost.done() or not (self._alive or self._paused):
                return
            self._alive = False
            self.ask(PING)

    def lose(self) -> None:
        """Give the connection up: the node does not have the slot any more."""
        if not self._lost.done():
            self._lost.set_result(None)

    def pause(self) -> None:
        if not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._paused:
            self._paused, self._alive = False, True
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._alive = True
        self._parser.feed(data)
        while not self._lost.done() and (reply := self._parser.gets()) is not NOTHING:
            self._report(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lose()
        self._former.connection_lost(exc)


def refused_interest(interest: Interest, refused: ErrorReply) -> KeywrightError:
    return ServerRefusedError(interest.verb.decode(), interest.name, str(refused))


def _resolve(waiting: Iterable[asyncio.Future[None]], error: KeywrightError | None = None) -> None:
    for future in waiting:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
