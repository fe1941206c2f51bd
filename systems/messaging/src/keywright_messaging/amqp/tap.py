"""Takes the frames of deliveries and confirms out of aiormq's stream, for throughput.

aiormq opens the connection, logs in, keeps the heartbeat and runs every declaration. It spends several tasks
and queues on each delivered or confirmed message, though. The frames of a tapped channel go straight to a
sink of ours; aiormq, which reads from this stream reader, does not see them. `TransportFactory` is aiormq's
extension point for another stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Any, Protocol, SupportsIndex, TypeAlias

from aiormq.connection import TransportFactory
from aiormq.exceptions import AMQPConnectionError, InvalidFrameError
from yarl import URL

from keywright_messaging.amqp.frames import (
    ACK,
    BODY_FRAME,
    CONSUME_DELIVER,
    FRAME_END,
    GET_EMPTY,
    GET_OK,
    HEADER_FRAME,
    METHOD_FRAME,
    NACK,
    RETURN,
    read_body_size,
    read_confirm,
    read_delivery,
    read_get,
)

__all__ = ["ConfirmSink", "DeliverySink", "Tap", "TappedTransport"]

_PREAMBLE = Struct(">BHI")
_METHOD_ID = Struct(">I")
_HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"
_HEARTBEAT_SECONDS = 1.0
_EMPTY_FRAME = 8  # preamble and frame end
_PROTOCOL_HEADER = b"AMQP"  # the answer of a server that speaks another version

Taker: TypeAlias = Callable[[int, bytes, int, int], bool]
"""Takes a frame (kind, data, start and end of its payload), or returns False to leave it to aiormq."""


class DeliverySink(Protocol):
    """Receives the deliveries of a consuming channel. Called while the stream is read: must not block.

    `consumer` is empty for a message that was asked for (basic.get); answers come in the order of requests.
    """

    def delivered(self, consumer: bytes, tag: int, redelivered: bool, header: bytes, body: bytes) -> None: ...

    def nothing(self) -> None:
        """Take the answer that a queue which was asked for a message is empty."""


class ConfirmSink(Protocol):
    """Receives the confirms and returns of a publishing channel. Must not block either."""

    def confirmed(self, tag: int, multiple: bool, accepted: bool) -> None: ...

    def returned(self, header: bytes) -> None: ...


class Tap(asyncio.StreamReader):
    """A stream reader that withholds the frames of tapped channels from its reader."""

    def __init__(self) -> None:
        super().__init__()
        self.on_end: Callable[[], None] | None = None
        self._takers: dict[int, Taker] = {}
        self._rest = b""
        self._clock = asyncio.get_running_loop().time
        self._passed_at = 0.0

    def tap_deliveries(self, channel: int, sink: DeliverySink) -> None:
        """Send the deliveries of this channel, and the answers to its requests, to `sink` from now on."""
        self._takers[channel] = _DeliveryAssembly(sink).takes

    def tap_confirms(self, channel: int, sink: ConfirmSink) -> None:
        """Send the confirms and returns of this channel to `sink` from now on."""

        def takes(kind: int, data: bytes, start: int, end: int) -> bool:
            # Content on a publishing channel belongs to a returned message, of which the header is enough.
            if kind == HEADER_FRAME:
                sink.returned(data[start:end])
            elif kind == METHOD_FRAME:
                method = _METHOD_ID.unpack_from(data, start)[0]
                if method in (ACK, NACK):
                    sink.confirmed(*read_confirm(data, start), method == ACK)
                elif method != RETURN:
                    return False
            return True

        self._takers[channel] = takes

    def untap(self, channel: int) -> None:
        self._takers.pop(channel, None)

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        received = self._rest + bytes(data)
        if received.startswith(_PROTOCOL_HEADER):
            return super().feed_data(received)
        passed: list[bytes] = []
        at, end = 0, len(received)
        while end - at >= _EMPTY_FRAME:
            kind, channel, size = _PREAMBLE.unpack_from(received, at)
            stop = at + _EMPTY_FRAME + size
            if stop > end:
                break
            if received[stop - 1] != FRAME_END:
                return self.set_exception(InvalidFrameError("a frame does not end where it should"))
            takes = self._takers.get(channel)
            if takes is None or not takes(kind, received, at + 7, stop - 1):
                passed.append(received[at:stop])
            at = stop
        self._rest = received[at:]
        return self._pass_on(passed)

    def feed_eof(self) -> None:
        super().feed_eof()
        self._ended()

    def set_exception(self, exc: BaseException) -> None:
        # The type stub wants an Exception's base; asyncio passes whatever broke the transport.
        super().set_exception(exc)  # type: ignore[arg-type]
        self._ended()

    def _pass_on(self, passed: list[bytes]) -> None:
        now = self._clock()
        if passed:
            super().feed_data(b"".join(passed))
        elif now - self._passed_at > _HEARTBEAT_SECONDS:
            # A busy server sends no heartbeats, and aiormq takes a stream without frames for a dead one.
            super().feed_data(_HEARTBEAT)
        else:
            return
        self._passed_at = now

    def _ended(self) -> None:
        if self.on_end is not None:
            self.on_end()


class _DeliveryAssembly:
    """Joins the method, header and body frames of each delivery of one channel."""

    def __init__(self, sink: DeliverySink) -> None:
        self._sink = sink
        self._method: tuple[bytes, int, bool] | None = None
        self._header = b""
        self._missing = 0
        self._parts: list[bytes] = []

    def takes(self, kind: int, data: bytes, start: int, end: int) -> bool:
        if kind == METHOD_FRAME:
            method = _METHOD_ID.unpack_from(data, start)[0]
            if method == CONSUME_DELIVER:
                self._method = read_delivery(data, start)
            elif method == GET_OK:
                self._method = b"", *read_get(data, start)
            elif method == GET_EMPTY:
                self._sink.nothing()
            else:
                return False
            return True
        if self._method is None:
            return False
        if kind == HEADER_FRAME:
            self._header = data[start:end]
            self._missing = read_body_size(data, start)
        elif kind == BODY_FRAME:
            self._parts.append(data[start:end])
            self._missing -= end - start
        if self._missing <= 0:
            delivery, self._method = self._method, None
            parts, self._parts = self._parts, []
            self._sink.delivered(*delivery, self._header, parts[0] if len(parts) == 1 else b"".join(parts))
        return True


class TappedTransport(TransportFactory):
    """Opens the TCP or TLS stream of one connection, with a tap in it."""

    def __init__(self) -> None:
        self.tap: Tap | None = None
        self.transport: asyncio.Transport | None = None

    def when_ended(self, then: Callable[[], None]) -> None:
        """Call `then` when the stream ends; immediately if it has ended."""
        assert self.tap is not None
        self.tap.on_end = then
        if self.tap.at_eof() or self.tap.exception() is not None:
            then()

    async def create(self, url: URL, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        provider = options.pop("ssl_context_provider")
        context = await provider.get_context() if url.scheme == "amqps" else None
        loop = asyncio.get_running_loop()
        tap = Tap()
        protocol = asyncio.StreamReaderProtocol(tap, loop=loop)
        try:
            transport, _ = await loop.create_connection(
                lambda: protocol, url.host or "", url.port or 0, ssl=context, **options
            )
        except OSError as exc:
            raise AMQPConnectionError(*exc.args) from exc
        self.tap, self.transport = tap, transport
        return tap, asyncio.StreamWriter(transport, protocol, tap, loop)
