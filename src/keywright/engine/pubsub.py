"""Pub/sub: channels whose names are written once, and subscriptions that outlive their connection.

The server stores no messages, so those that are published during a reconnect are lost. On a cluster every
node forwards the messages of all others; a subscription connects to one of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeAlias

from keywright.engine.async_connections import AsyncBatchConnection, AsyncConnectionPool
from keywright.engine.connections import CLOSED
from keywright.engine.deadlines import time_of
from keywright.engine.retry import is_spent
from keywright.engine.scan import escaped
from keywright.engine.settings import Settings
from keywright.engine.wire_format import NOTHING, ErrorReply, Parser, pack_command
from keywright.errors import ConnectionLostError, KeywrightError, ServerRefusedError
from keywright.keyspace.alphabets import Alphabet
from keywright.keyspace.call import Call
from keywright.keyspace.context import Context
from keywright.keyspace.misuse import explained, explained_constructor
from keywright.keyspace.space import Keyspace
from keywright.keyspace.template import Template
from keywright.keyspace.wires import Effect, Operation, Reply, Rounds, Wire

__all__ = ["Channel", "Message", "Subscription"]

PUBLISH = Operation("publish", b"PUBLISH", Effect.ONCE)
PING = (b"PING",)
MOST_UNREAD = 10_000

Interest: TypeAlias = tuple[bytes, bytes]
"""SUBSCRIBE and a channel, or PSUBSCRIBE and a pattern."""


@explained_constructor
class Channel:
    """A template of pub/sub channels. They are not keys, but have the prefix of their keyspace."""

    def __init__(self, template: str, space: Keyspace, **variables: Alphabet[Any]) -> None:
        self.template = Template(template, variables)
        self.space = space

    @explained
    def name(self, context: Context, *values: object) -> bytes:
        return context.prefixes[self.space] + self.template.render(values)

    @explained
    def pattern(self, context: Context, **values: object) -> bytes:
        """Return a glob for the channels in which these variables have these values; it may match others."""
        return escaped(context.prefixes[self.space]) + self.template.glob(values)

    def publish(self, payload: bytes, *values: object) -> Call[int]:
        """Publish a message. Return how many subscribers of the node got it."""
        return _Publish(self, payload, values)


class _Publish(Call[int]):
    __slots__ = ("channel", "payload", "values")

    def __init__(self, channel: Channel, payload: bytes, values: tuple[object, ...]) -> None:
        self.channel = channel
        self.payload = payload
        self.values = values

    def rounds(self, context: Context) -> Rounds[int]:
        name = self.channel.name(context, *self.values)
        replies = yield [Wire((b"PUBLISH", name, self.payload), name, PUBLISH, None)]
        if isinstance(replies[0], KeywrightError):
            raise replies[0]
        return int(replies[0])


class Message(NamedTuple):
    """A message that was published on a channel."""

    channel: bytes
    payload: bytes


class Subscription:
    """The messages of some channels, as an async iterator. Use it with `async with`.

    Entering returns once the server has confirmed every channel and pattern. A lost connection is made
    again, and every subscription with it; `active` is False meanwhile.
    """

    def __init__(
        self,
        find: Callable[[], Awaitable[Sequence[AsyncConnectionPool]]],
        settings: Settings,
        channels: Iterable[bytes] = (),
        patterns: Iterable[bytes] = (),
    ) -> None:
        self._find = find
        self._settings = settings
        self._wanted: dict[Interest, None] = dict.fromkeys(_interests(channels, patterns))
        self._confirmed: set[Interest] = set()
        self._waiting: dict[Interest, list[asyncio.Future[None]]] = {}
        self._unread: deque[Message] = deque()
        self._arrival = asyncio.Event()
        self._feed: _Feed | None = None
        self._proven = False
        self._failure: KeywrightError | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def active(self) -> bool:
        """Return whether every channel and pattern is confirmed on an open connection."""
        return self._feed is not None and self._confirmed >= self._wanted.keys()

    async def add(self, *channels: bytes, patterns: Iterable[bytes] = ()) -> None:
        """Subscribe to more. Return once the server has confirmed it, after a reconnect if need be."""
        wanted = _interests(channels, patterns)
        for interest in wanted:
            if interest not in self._wanted:
                self._wanted[interest] = None
                if self._feed is not None:
                    self._feed.ask(interest)
        await self._confirmation(wanted)

    async def confirmed(self) -> None:
        """Wait until every channel and pattern is confirmed on the current connection."""
        await self._confirmation(list(self._wanted))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._fail(ConnectionLostError("the subscription", "it was closed"))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        while not self._unread:
            if self._failure is not None:
                if self._task is None:
                    raise StopAsyncIteration
                raise self._failure
            self._arrival.clear()
            await self._arrival.wait()
        if self._feed is not None and len(self._unread) <= MOST_UNREAD // 2:
            self._feed.resume()
        return self._unread.popleft()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._keep())
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
        loop = asyncio.get_running_loop()
        pending = []
        for interest in wanted:
            if interest not in self._confirmed:
                pending.append(loop.create_future())
                self._waiting.setdefault(interest, []).append(pending[-1])
        if pending:
            await asyncio.gather(*pending)

    async def _keep(self) -> None:
        """Keep a connection until closed. The first one must succeed within the limits of the settings."""
        attempt = 0
        patience, _ = time_of([], self._settings, walk=False)
        give_up = asyncio.get_running_loop().time() + patience
        while True:
            try:
                candidates = await self._find()
                if not candidates:
                    self._fail(ConnectionLostError("the database", CLOSED))
                    return
                pool = candidates[attempt % len(candidates)]
                connection = await pool.borrow(self._settings.timeout_seconds)
            except ConnectionLostError as error:
                attempt += 1
                late = asyncio.get_running_loop().time() >= give_up
                if not self._proven and (late or is_spent(self._settings.retry, attempt)):
                    self._fail(error)
                    return
            except KeywrightError as error:
                self._fail(error)
                return
            else:
                await self._listen(pool, connection)
                attempt = 1 if self._proven else attempt + 1
            await asyncio.sleep(self._settings.retry.pause(attempt))

    async def _listen(self, pool: AsyncConnectionPool, connection: AsyncBatchConnection) -> None:
        self._feed = feed = _Feed(connection, self._heard)
        try:
            for interest in self._wanted:
                feed.ask(interest)
            self._proven = self._proven or not self._wanted
            await feed.until_lost(self._settings.timeout_seconds)
        finally:
            self._feed = None
            self._confirmed.clear()
            connection.close()
            await pool.give_back(connection)

    def _heard(self, reply: Reply) -> None:
        kind = reply[0] if isinstance(reply, list) else reply
        if kind == b"pmessage":
            self._keep_unread(Message(reply[2], reply[3]))
        elif kind == b"message":
            self._keep_unread(Message(reply[1], reply[2]))
        else:
            self._settled(reply if isinstance(reply, ErrorReply) else None)

    def _keep_unread(self, message: Message) -> None:
        self._unread.append(message)
        self._arrival.set()
        if self._feed is not None and len(self._unread) >= MOST_UNREAD:
            self._feed.pause()

    def _settled(self, refused: ErrorReply | None) -> None:
        """Settle the oldest request: the server confirms each, in their order."""
        assert self._feed is not None
        interest = self._feed.asked.popleft()
        if len(interest) == 1:
            return  # a PING: even a refusal is a sign of life
        verb, name = interest
        waiting = self._waiting.pop(interest, [])
        if refused is None:
            self._proven = True
            self._confirmed.add(interest)
            _resolve(waiting)
            return
        del self._wanted[interest]
        error = ServerRefusedError(verb.decode(), name, str(refused))
        if not waiting:
            self._fail(error)  # it was confirmed once: the consumer must not wait for it in vain
        _resolve(waiting, error)

    def _fail(self, error: KeywrightError) -> None:
        self._failure = self._failure or error
        for waiting in self._waiting.values():
            _resolve(waiting, error)
        self._waiting.clear()
        self._arrival.set()


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
        self._transport.write(pack_command(question))

    async def until_lost(self, patience: float) -> None:
        """Wait until the connection is lost, or a PING gets no answer."""
        while True:
            await asyncio.wait([self._lost], timeout=patience)
            if self._lost.done() or not (self._alive or self._paused):
                return
            self._alive = False
            self.ask(PING)

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
        while (reply := self._parser.gets()) is not NOTHING:
            self._report(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._lost.done():
            self._lost.set_result(None)
        self._former.connection_lost(exc)


def _interests(channels: Iterable[bytes], patterns: Iterable[bytes]) -> list[Interest]:
    return [
        *((b"SUBSCRIBE", channel) for channel in channels),
        *((b"PSUBSCRIBE", pattern) for pattern in patterns),
    ]


def _resolve(waiting: Iterable[asyncio.Future[None]], error: KeywrightError | None = None) -> None:
    for future in waiting:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
