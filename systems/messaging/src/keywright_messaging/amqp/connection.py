"""One connection to RabbitMQ, from the login until it is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import aiormq
from aiormq.abc import AbstractChannel, DeliveredMessage
from aiormq.exceptions import AMQPChannelError, AMQPError, ChannelInvalidStateError
from yarl import URL

from keywright.errors import UsageError
from keywright_messaging.amqp.frames import CONTENT_OVERHEAD
from keywright_messaging.amqp.tap import ConfirmSink, DeliverySink, TappedTransport
from keywright_messaging.errors import BrokerUnreachableError

__all__ = ["AmqpConnection", "AmqpConnectionLostError", "BrokerAddress"]

T = TypeVar("T")

_HEARTBEAT_SECONDS = 15
_CLOSE_SECONDS = 5.0


class AmqpConnectionLostError(Exception):
    """The connection ended before an operation did, so it may have happened. Stays inside this package."""


class BrokerAddress:
    """The host, port and virtual host of a broker. Prints without credentials and options."""

    def __init__(self, url: str) -> None:
        try:
            self.url = URL(url)
        except ValueError:
            # The parser's own message may quote the password.
            raise UsageError(
                "the broker's URL is malformed. Write amqp://user:password@host/vhost."
            ) from None
        if not self.url.host:
            raise UsageError("the broker's URL names no host. Write amqp://user:password@host/vhost.")
        if "heartbeat" not in self.url.query:
            self.url = self.url.update_query(heartbeat=_HEARTBEAT_SECONDS)

    def __str__(self) -> str:
        port = self.url.explicit_port or {"amqps": 5671}.get(self.url.scheme, 5672)
        return f"{self.url.host}:{port}{self.url.path.rstrip('/')}"

    def __repr__(self) -> str:
        return f"BrokerAddress({str(self)!r})"


class AmqpConnection:
    """A live connection. The future `lost` completes with the reason when the connection is unusable.

    A channel that the server closes, or a consumer that it cancels, ends the whole connection: everything
    that depends on it is restored in one way, by the reconnect.
    """

    def __init__(self, opened: aiormq.Connection, stream: TappedTransport) -> None:
        assert stream.tap is not None
        assert stream.transport is not None
        self._aiormq = opened
        self._tap = stream.tap
        self._transport = stream.transport
        self._watched: set[int] = set()
        self._scratch: AbstractChannel | None = None
        self._scratching = asyncio.Lock()
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.frame_body = opened.connection_tune.frame_max - CONTENT_OVERHEAD

    @classmethod
    async def open(cls, address: BrokerAddress, name: str, seconds: float) -> AmqpConnection:
        """Connect and log in. Raise BrokerUnreachableError."""
        stream = TappedTransport()
        opened = aiormq.Connection(
            address.url, transport_factory=stream, client_properties={"connection_name": name}
        )
        connected = False
        try:
            async with asyncio.timeout(seconds):
                await opened.connect()
            connected = True
        except TimeoutError as exc:
            raise BrokerUnreachableError(str(address), f"no answer within {seconds:g} s") from exc
        except (AMQPError, OSError, RuntimeError) as exc:
            raise BrokerUnreachableError(str(address), _reason(exc)) from exc
        finally:
            if not connected and stream.transport is not None:
                stream.transport.abort()
        connection = cls(opened, stream)
        stream.when_ended(lambda: connection.lose("the connection was lost"))
        opened.closing.add_done_callback(lambda done: connection.lose(_reason_of(done)))
        return connection

    @property
    def writes_waiting(self) -> int:
        """The number of bytes that the socket has not taken yet."""
        return self._transport.get_write_buffer_size()

    def write(self, frames: bytes) -> None:
        """Send whole frames; drop them if the connection is lost."""
        if self.lost.done():
            return
        try:
            self._transport.write(frames)
        except RuntimeError as error:
            # aiormq ends the stream when the server closes the connection, before it reports the loss.
            self.lose(str(error))

    def lose(self, reason: str) -> None:
        """Declare the connection lost."""
        if not self.lost.done():
            self.lost.set_result(reason)

    async def open_consumer_channel(self, sink: DeliverySink) -> AbstractChannel:
        """Open a channel whose deliveries go to `sink`. Call `watch` when it is set up."""
        channel = await self._aiormq.channel(publisher_confirms=False)
        self._tap.tap_deliveries(channel.number, sink)
        return channel

    async def open_publisher_channel(self, sink: ConfirmSink) -> AbstractChannel:
        """Open a channel whose confirms and returns go to `sink`. Call `watch` when it is set up."""
        channel = await self._aiormq.channel(publisher_confirms=True)
        self._tap.tap_confirms(channel.number, sink)
        return channel

    async def open_channel(self) -> AbstractChannel:
        """Open a channel of its own for messages that are got one by one. Close it after use."""
        return await self._aiormq.channel(publisher_confirms=False)

    async def consume(
        self, channel: AbstractChannel, queue: str, *, tag: str | None = None, no_ack: bool = False
    ) -> None:
        """Start a consumer on a consumer channel."""

        async def bypassed(_message: DeliveredMessage) -> None:
            # aiormq requires a callback, though the tap takes every delivery before. One that was missed
            # is delivered again on the next connection.
            self.lose("a delivery bypassed the tap")

        await channel.basic_consume(queue, bypassed, consumer_tag=tag, no_ack=no_ack)

    def watch(self, channel: AbstractChannel) -> None:
        """Declare the connection lost when the server closes the channel or cancels a consumer on it."""
        number = channel.number
        self._watched.add(number)
        channel.closing.add_done_callback(
            lambda done: self.lose(_reason_of(done)) if number in self._watched else None
        )
        channel.on_consumer_cancel_callbacks.add(lambda _frame: self.lose("a queue was deleted"))

    async def release(self, channel: AbstractChannel) -> None:
        """Close a tapped channel. The server takes back its unsettled deliveries."""
        self._watched.discard(channel.number)
        with suppress(AmqpConnectionLostError, AMQPError):
            await self.during(channel.close())
        self._tap.untap(channel.number)

    @asynccontextmanager
    async def scratch(self) -> AsyncIterator[AbstractChannel]:
        """Lend the channel for operations that the server may answer by closing it, one at a time."""
        async with self._scratching:
            if self._scratch is None or self._scratch.is_closed:
                self._scratch = await self._aiormq.channel(publisher_confirms=False)
            yield self._scratch

    async def during(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of `work`. Raise AmqpConnectionLostError as soon as the connection is lost.

        Channel errors pass through.
        """
        task = asyncio.ensure_future(work)
        # If the caller is cancelled, nobody asks for the result.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            await asyncio.wait((task, self.lost), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        try:
            return task.result()
        except asyncio.CancelledError:
            raise self._lost_because("an operation was cancelled") from None
        except AMQPChannelError:
            if self.lost.done():
                raise AmqpConnectionLostError(self.lost.result()) from None
            raise
        except (AMQPError, OSError) as exc:
            raise self._lost_because(_reason(exc)) from exc
        except RuntimeError as exc:  # aiormq reports a closed connection or channel by it
            if not self._aiormq.is_closed and not isinstance(exc, ChannelInvalidStateError):
                raise
            raise self._lost_because(_reason(exc)) from exc

    async def close(self) -> None:
        """End the connection; drop a lost one immediately."""
        if self.lost.done():
            self._transport.abort()
        self._watched.clear()
        self.lose("closed")
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    # aiormq may end with a cancellation of its own, which is not one of ours.
                    await asyncio.gather(self._aiormq.close(), return_exceptions=True)
        finally:
            self._transport.abort()

    def _lost_because(self, reason: str) -> AmqpConnectionLostError:
        self.lose(reason)
        return AmqpConnectionLostError(self.lost.result())


def _reason_of(done: asyncio.Future[Any]) -> str:
    if done.cancelled():
        return "closed"
    error = done.exception()
    return _reason(error) if error is not None else "closed"


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
