"""Takes the frames that matter for speed out of aiormq's stream.

aiormq owns connecting, TLS, logging in, heartbeats and every declaration. It spends several tasks and queues
on each delivered or confirmed message, though. A channel that is tapped here hands those frames straight to
us; aiormq, which reads from this stream reader, never sees them. Its `TransportFactory` is the place it
offers for another stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Any, Protocol, SupportsIndex

from aiormq.connection import TransportFactory
from aiormq.exceptions import AMQPConnectionError, InvalidFrameError
from yarl import URL

from keywright_messaging.amqp.frames import (
    ACK,
    BODY_FRAME,
    CONSUME_DELIVER,
    FRAME_END,
    HEADER_FRAME,
    METHOD_FRAME,
    NACK,
    RETURN,
    read_body_size,
    read_confirm,
    read_delivery,
)

__all__ = ["Tap", "TappedChannel", "TappedTransport"]

_PREAMBLE = Struct(">BHI")
_METHOD_ID = Struct(">I")
_HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"
_HEARTBEAT_SECONDS = 1.0
_EMPTY_FRAME = 8  # preamble and frame end
_FOREIGN = b"AMQP"  # a server that speaks another version answers with the protocol header


class TappedChannel(Protocol):
    """Where the frames of one channel go, while they are being read: these methods must not wait."""

    def delivered(self, consumer: bytes, tag: int, redelivered: bool, header: bytes, body: bytes) -> None: ...

    def returned(self, header: bytes) -> None: ...

    def confirmed(self, tag: int, multiple: bool, accepted: bool) -> None: ...


class Tap(asyncio.StreamReader):
    """A stream reader that keeps the frames of tapped channels to itself."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: Callable[[], None] = _nothing
        self._assemblies: dict[int, _Assembly] = {}
        self._rest = b""
        self._clock = asyncio.get_running_loop().time
        self._passed_at = 0.0

    def tap(self, channel: int, sink: TappedChannel) -> None:
        """From now on, deliveries, returns and confirms of this channel go to `sink`."""
        self._assemblies[channel] = _Assembly(sink)

    def untap(self, channel: int) -> None:
        self._assemblies.pop(channel, None)

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        received = self._rest + bytes(data)
        if received.startswith(_FOREIGN):
            return super().feed_data(received)
        try:
            at, passed = self._split(received)
        except InvalidFrameError as exc:
            return self.set_exception(exc)
        self._rest = received[at:]
        return self._pass_on(passed)

    def _split(self, data: bytes) -> tuple[int, list[bytes]]:
        """Where the whole frames end, and those of them that are not for us."""
        passed: list[bytes] = []
        at, end = 0, len(data)
        while end - at >= _EMPTY_FRAME:
            kind, channel, size = _PREAMBLE.unpack_from(data, at)
            stop = at + _EMPTY_FRAME + size
            if stop > end:
                break
            if data[stop - 1] != FRAME_END:
                raise InvalidFrameError("a frame does not end where it should")
            assembly = self._assemblies.get(channel)
            if assembly is None or not assembly.takes(kind, data, at + 7, stop - 1):
                passed.append(data[at:stop])
            at = stop
        return at, passed

    def feed_eof(self) -> None:
        super().feed_eof()
        self.ended()

    def set_exception(self, exc: BaseException) -> None:
        # The type stub wants an Exception's base; asyncio hands over what broke the transport.
        super().set_exception(exc)  # type: ignore[arg-type]
        self.ended()

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


class _Assembly:
    """Puts the frames of one channel together to messages."""

    def __init__(self, sink: TappedChannel) -> None:
        self._sink = sink
        self._complete: Callable[[bytes, bytes], None] | None = None
        self._header = b""
        self._missing = 0
        self._parts: list[bytes] = []

    def takes(self, kind: int, data: bytes, start: int, end: int) -> bool:
        """Whether the frame was for us."""
        if kind == METHOD_FRAME:
            return self._takes_method(data, start)
        if self._complete is None:
            return False
        if kind == HEADER_FRAME:
            self._header = data[start:end]
            self._missing = read_body_size(data, start)
        elif kind == BODY_FRAME:
            self._parts.append(data[start:end])
            self._missing -= end - start
        if self._missing <= 0:
            self._finish(self._complete)
        return True

    def _takes_method(self, data: bytes, start: int) -> bool:
        method = _METHOD_ID.unpack_from(data, start)[0]
        if method == CONSUME_DELIVER:
            consumer, tag, redelivered = read_delivery(data, start)
            deliver = self._sink.delivered
            self._complete = lambda header, body: deliver(consumer, tag, redelivered, header, body)
        elif method in (ACK, NACK):
            self._sink.confirmed(*read_confirm(data, start), method == ACK)
        elif method == RETURN:
            self._complete = lambda header, _body: self._sink.returned(header)
        else:
            return False
        return True

    def _finish(self, complete: Callable[[bytes, bytes], None]) -> None:
        parts, self._parts = self._parts, []
        self._complete = None
        complete(self._header, parts[0] if len(parts) == 1 else b"".join(parts))


class TappedTransport(TransportFactory):
    """Opens the TCP or TLS stream of one connection, with a tap in it."""

    def __init__(self) -> None:
        self.tap: Tap | None = None
        self.transport: asyncio.Transport | None = None

    def when_ended(self, then: Callable[[], None]) -> None:
        """Call `then` when the stream ends; at once, if it has."""
        assert self.tap is not None
        self.tap.ended = then
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


def _nothing() -> None:
    pass
