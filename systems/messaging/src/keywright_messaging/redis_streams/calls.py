"""Calls: publish a message and wait for the reply on its channel, `<event>:<id>`.

The id is known only when the message is published, and the reply may arrive before that. So the broker
subscribes to all replies of an event, and waits for the server to confirm that, before it publishes the first
call of the event; and each call keeps early replies until it knows its id. See docs/resolutions.md#calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from keywright import Message, Subscription
from keywright.errors import EngineError
from keywright_messaging.errors import CallTimeoutError
from keywright_messaging.redis_streams.outages import RetryingDatabase
from keywright_messaging.redis_streams.schema import Replies

__all__ = ["Caller"]


class Caller:
    """Matches replies with the calls of a broker. Subscribes at the first call."""

    def __init__(self, database: RetryingDatabase) -> None:
        self._database = database
        self._context = database.engine.context
        self._subscription: Subscription[Message] | None = None
        self._opening = asyncio.Lock()
        self._listener: asyncio.Task[None] | None = None
        self._waiting: dict[bytes, asyncio.Future[bytes]] = {}
        self._unnamed: dict[bytes, list[dict[bytes, bytes]]] = {}
        """By the first part of their channels: replies that arrived before a call knew its id."""

    async def call(self, event: str, publish: Callable[[], Awaitable[str]], within: timedelta) -> bytes:
        """Return the body of the reply to the message that `publish` publishes. Raise CallTimeoutError."""
        seconds = within.total_seconds()
        channel: bytes | None = None
        try:
            async with asyncio.timeout(seconds):
                await self._listen(event)
                channel, reply = await self._published(event, publish)
                return await reply
        except TimeoutError:
            raise CallTimeoutError(event, seconds) from None
        finally:
            if channel is not None:
                self._waiting.pop(channel, None)

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.gather(self._listener, return_exceptions=True)
        if self._subscription is not None:
            await self._subscription.close()

    async def _listen(self, event: str) -> None:
        async with self._opening:
            if self._subscription is None:
                self._subscription = await self._database.retried(
                    lambda: self._database.engine.subscribe().__aenter__()
                )
                self._listener = asyncio.create_task(self._match(self._subscription))
        # Before each call, because a reconnect may have lost the subscription.
        pattern = Replies.matching(event=event).glob(self._context)
        subscription = self._subscription
        await self._database.retried(lambda: subscription.add(patterns=[pattern]))

    async def _published(
        self, event: str, publish: Callable[[], Awaitable[str]]
    ) -> tuple[bytes, asyncio.Future[bytes]]:
        stem = self._context.name(Replies(event, "0"))[:-1]
        early: dict[bytes, bytes] = {}
        unnamed = self._unnamed.setdefault(stem, [])
        unnamed.append(early)
        try:
            channel = stem + (await publish()).encode()
        finally:
            unnamed[:] = [each for each in unnamed if each is not early]
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        if channel in early:
            reply.set_result(early[channel])
        else:
            self._waiting[channel] = reply
        return channel, reply

    async def _match(self, replies: Subscription[Message]) -> None:
        try:
            async for channel, body in replies:
                reply = self._waiting.pop(channel, None)
                if reply is None:
                    for early in self._unnamed.get(channel.rpartition(b":")[0] + b":", ()):
                        early[channel] = body
                elif not reply.done():
                    reply.set_result(body)
        except EngineError:
            return  # the database was closed; calls in progress run into their timeouts
