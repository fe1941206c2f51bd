"""One connection to RabbitMQ, from logging in until it is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import aiormq
from aiormq.abc import AbstractChannel
from aiormq.exceptions import AMQPChannelError, AMQPError, ChannelInvalidStateError
from yarl import URL

from keywright.errors import UsageError
from keywright_messaging.amqp.frames import CONTENT_OVERHEAD
from keywright_messaging.amqp.tap import TappedChannel, TappedTransport
from keywright_messaging.errors import BrokerUnreachableError

__all__ = ["Address", "Link", "LinkLostError"]

T = TypeVar("T")

_HEARTBEAT_SECONDS = 15
_CLOSE_SECONDS = 5.0


class LinkLostError(Exception):
    """The connection ended before an operation did; it may have happened. Never leaves this package."""


class Address:
    """Where a broker is; prints without credentials and options."""

    def __init__(self, url: str) -> None:
        try:
            self.url = URL(url)
        except ValueError:
            # The parser's own message may quote the password.
            raise UsageError(
                "the broker's URL cannot be read. Write amqp://user:password@host/vhost."
            ) from None
        if not self.url.host:
            raise UsageError("the broker's URL names no host. Write amqp://user:password@host/vhost.")
        if "heartbeat" not in self.url.query:
            self.url = self.url.update_query(heartbeat=_HEARTBEAT_SECONDS)

    def __str__(self) -> str:
        port = self.url.explicit_port or {"amqps": 5671}.get(self.url.scheme, 5672)
        return f"{self.url.host}:{port}{self.url.path.rstrip('/')}"

    def __repr__(self) -> str:
        return f"Address({str(self)!r})"


class Link:
    """A live connection. `lost` completes with the reason once it is of no use any more.

    A channel that the server closes, or a consumer that it cancels, ends the whole link: what depends on it
    is set up again by one and the same path, the reconnect.
    """

    def __init__(self, connection: aiormq.Connection, stream: TappedTransport) -> None:
        assert stream.tap is not None
        assert stream.transport is not None
        self._connection = connection
        self._tap = stream.tap
        self._transport = stream.transport
        self._watched: set[int] = set()
        self._scratch: AbstractChannel | None = None
        self._scratching = asyncio.Lock()
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.frame_body = connection.connection_tune.frame_max - CONTENT_OVERHEAD

    @classmethod
    async def open(cls, address: Address, name: str, seconds: float) -> Link:
        """Connect and log in. Raises BrokerUnreachableError."""
        stream = TappedTransport()
        connection = aiormq.Connection(
            address.url, transport_factory=stream, client_properties={"connection_name": name}
        )
        try:
            async with asyncio.timeout(seconds):
                await connection.connect()
        except TimeoutError as exc:
            if stream.transport is not None:
                stream.transport.abort()
            raise BrokerUnreachableError(str(address), f"no answer within {seconds:g} s") from exc
        except (AMQPError, OSError, RuntimeError) as exc:
            raise BrokerUnreachableError(str(address), _reason(exc)) from exc
        link = cls(connection, stream)
        stream.when_ended(lambda: link.lose("the connection was lost"))
        connection.closing.add_done_callback(lambda done: link.lose(_reason_of(done)))
        return link

    @property
    def writes_waiting(self) -> int:
        """Bytes that the socket has not taken yet."""
        return self._transport.get_write_buffer_size()

    def write(self, frames: bytes) -> None:
        """Send whole frames; on a lost link they are dropped."""
        if not self.lost.done():
            self._transport.write(frames)

    def lose(self, reason: str) -> None:
        """Call the link lost."""
        if not self.lost.done():
            self.lost.set_result(reason)

    async def open_tapped(self, sink: TappedChannel, *, confirms: bool = False) -> AbstractChannel:
        """A channel whose deliveries or confirms go to `sink`. Once it is set up, have it watched."""
        channel = await self._connection.channel(publisher_confirms=confirms)
        self._tap.tap(channel.number, sink)
        return channel

    def watch(self, channel: AbstractChannel) -> None:
        """Call the link lost when the server closes the channel, or cancels a consumer on it."""
        number = channel.number
        self._watched.add(number)
        channel.closing.add_done_callback(
            lambda done: self.lose(_reason_of(done)) if number in self._watched else None
        )
        channel.on_consumer_cancel_callbacks.add(lambda _frame: self.lose("a queue was deleted"))

    async def release(self, channel: AbstractChannel) -> None:
        """Close a tapped channel; what it delivered and nobody settled goes back."""
        self._watched.discard(channel.number)
        with suppress(LinkLostError, AMQPError):
            await self.during(channel.close())
        self._tap.untap(channel.number)

    @asynccontextmanager
    async def scratch(self) -> AsyncIterator[AbstractChannel]:
        """The channel for operations that the server may answer by closing it; one operation at a time."""
        async with self._scratching:
            if self._scratch is None or self._scratch.is_closed:
                self._scratch = await self._connection.channel(publisher_confirms=False)
            yield self._scratch

    async def during(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, or LinkLostError as soon as the link is lost. Channel errors pass through."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait((task, self.lost), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        try:
            return task.result()
        except asyncio.CancelledError:
            raise LinkLostError(self._lost_because("an operation was cancelled")) from None
        except AMQPChannelError:
            if self.lost.done():
                raise LinkLostError(self.lost.result()) from None
            raise
        except (AMQPError, OSError) as exc:
            raise LinkLostError(self._lost_because(_reason(exc))) from exc
        except RuntimeError as exc:  # aiormq's way to say that the connection or the channel is closed
            if not self._connection.is_closed and not isinstance(exc, ChannelInvalidStateError):
                raise
            raise LinkLostError(self._lost_because(_reason(exc))) from exc

    async def close(self) -> None:
        """End the connection; a lost one is dropped at once."""
        if self.lost.done():
            self._transport.abort()
        self._watched.clear()
        self.lose("closed")
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    # aiormq may end with a cancellation of its own, which is not one of ours.
                    await asyncio.gather(self._connection.close(), return_exceptions=True)
        finally:
            self._transport.abort()

    def _lost_because(self, reason: str) -> str:
        self.lose(reason)
        return self.lost.result()


def _reason_of(done: asyncio.Future[Any]) -> str:
    if done.cancelled():
        return "closed"
    error = done.exception()
    return _reason(error) if error is not None else "closed"


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
