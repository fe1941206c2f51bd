"""The frequent frames, packed and parsed by hand: publish, deliver, acknowledge, confirm.

aiormq and pamqp handle all others. AMQP 0-9-1, 4.2.3: a frame is its type, channel and size, the payload,
and the octet 206. 4.2.6: content is a method frame, a header frame and body frames, in this order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from struct import Struct
from typing import Any

from pamqp import decode, encode

__all__ = [
    "ACK",
    "BODY_FRAME",
    "CONSUME_DELIVER",
    "CONTENT_OVERHEAD",
    "FRAME_END",
    "GET_EMPTY",
    "GET_OK",
    "HEADER_FRAME",
    "HEADER_OVERHEAD",
    "METHOD_FRAME",
    "NACK",
    "PERSISTENT",
    "RETURN",
    "SMALLEST_FRAME",
    "TRANSIENT",
    "Properties",
    "acknowledgement",
    "content",
    "get_method",
    "headers_without",
    "identified",
    "publish_method",
    "read_body_size",
    "read_confirm",
    "read_delivery",
    "read_get",
    "read_properties",
]

METHOD_FRAME, HEADER_FRAME, BODY_FRAME = 1, 2, 3
FRAME_END = 0xCE
CONTENT_OVERHEAD = 8
"""The bytes of the negotiated frame size that are not body."""
HEADER_OVERHEAD = CONTENT_OVERHEAD + 14
"""The bytes of the negotiated frame size that are not properties, in a content header."""
SMALLEST_FRAME = 4096
"""The smallest frame size that a server may ask for."""

_BASIC = 60
CONSUME_DELIVER = _BASIC << 16 | 60
RETURN = _BASIC << 16 | 50
ACK = _BASIC << 16 | 80
NACK = _BASIC << 16 | 120
GET_OK = _BASIC << 16 | 71
GET_EMPTY = _BASIC << 16 | 72
_PUBLISH = _BASIC << 16 | 40
_GET = _BASIC << 16 | 70

PERSISTENT, TRANSIENT = b"\x02", b"\x01"

_END = bytes([FRAME_END])
_METHOD = Struct(">BHII")
_HEADER = Struct(">BHIHHQH")
_END_THEN_BODY = Struct(">BBHI")
_ACKNOWLEDGEMENT = Struct(">BHIIQBB")
_TAG = Struct(">QB")
_SIZE_AND_FLAGS = Struct(">QH")
_LENGTH = Struct(">I")
_MALFORMED = (ValueError, IndexError, RecursionError, struct.error)

_CONTENT_TYPE, _CONTENT_ENCODING, _HEADERS, _DELIVERY_MODE = 1 << 15, 1 << 14, 1 << 13, 1 << 12
_PRIORITY, _CORRELATION_ID, _REPLY_TO, _EXPIRATION, _MESSAGE_ID = 1 << 11, 1 << 10, 1 << 9, 1 << 8, 1 << 7


class Properties:
    """The properties of a message that the broker uses."""

    __slots__ = ("content_type", "correlation_id", "foreign", "headers", "message_id", "reply_to")

    def __init__(
        self,
        *,
        content_type: str | None = None,
        headers: Mapping[str, Any] | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        message_id: str | None = None,
    ) -> None:
        self.content_type = content_type
        self.headers = headers
        self.foreign = b""
        """The headers as received: those of some clients cannot be decoded and encoded without loss."""
        self.correlation_id = correlation_id
        self.reply_to = reply_to
        self.message_id = message_id

    def pack(self, mode: bytes) -> tuple[int, bytes]:
        """Return the flags and the bytes of a content header; absent properties take no bytes."""
        flags, packed = _DELIVERY_MODE, []
        if self.content_type is not None:
            flags |= _CONTENT_TYPE
            packed.append(_short(self.content_type))
        if self.headers or self.foreign:
            flags |= _HEADERS
            own = encode.field_table(dict(self.headers or {}))[_LENGTH.size :]
            packed += (_LENGTH.pack(len(self.foreign) + len(own)), self.foreign, own)
        packed.append(mode)
        for flag, text in (
            (_CORRELATION_ID, self.correlation_id),
            (_REPLY_TO, self.reply_to),
            (_MESSAGE_ID, self.message_id),
        ):
            if text is not None:
                flags |= flag
                packed.append(_short(text))
        return flags, b"".join(packed)


def identified(packed: tuple[int, bytes], identity: str) -> tuple[int, bytes]:
    """Add a message id to packed properties without one: it comes after all the others."""
    flags, properties = packed
    return flags | _MESSAGE_ID, properties + _short(identity)


def publish_method(channel: int, exchange: str, routing_key: str, *, mandatory: bool) -> bytes:
    """Return the first frame of a publish."""
    arguments = b"\x00\x00" + _short(exchange) + _short(routing_key) + bytes([mandatory])
    return _METHOD.pack(METHOD_FRAME, channel, 4 + len(arguments), _PUBLISH) + arguments + _END


def get_method(channel: int, queue: str) -> bytes:
    """Return the frame that asks a queue for one message, to be acknowledged."""
    arguments = b"\x00\x00" + _short(queue) + b"\x00"
    return _METHOD.pack(METHOD_FRAME, channel, 4 + len(arguments), _GET) + arguments + _END


def content(channel: int, flags: int, properties: bytes, body: bytes, frame_body: int) -> bytes:
    """Return the header frame and the body frames, none with more than `frame_body` bytes of body."""
    size = len(body)
    header = _HEADER.pack(HEADER_FRAME, channel, 14 + len(properties), _BASIC, 0, size, flags)
    if 0 < size <= frame_body:
        opening = _END_THEN_BODY.pack(FRAME_END, BODY_FRAME, channel, size)
        return b"".join((header, properties, opening, body, _END))
    parts = [header, properties]
    for start in range(0, size, frame_body):
        part = body[start : start + frame_body]
        parts += (_END_THEN_BODY.pack(FRAME_END, BODY_FRAME, channel, len(part)), part)
    return b"".join((*parts, _END))


def acknowledgement(channel: int, tag: int, *, multiple: bool) -> bytes:
    """Return the frame that settles one delivery, or with `multiple` also all before it."""
    return _ACKNOWLEDGEMENT.pack(METHOD_FRAME, channel, 13, ACK, tag, multiple, FRAME_END)


def read_confirm(payload: bytes, at: int) -> tuple[int, bool]:
    """Return the tag of an ack or nack, and whether it covers all tags before it."""
    tag, bits = _TAG.unpack_from(payload, at + 4)
    return tag, bool(bits & 1)


def read_delivery(payload: bytes, at: int) -> tuple[bytes, int, bool]:
    """Return the consumer tag, the delivery tag, and whether the message was delivered before."""
    start = at + 5
    end = start + payload[at + 4]
    tag, bits = _TAG.unpack_from(payload, end)
    return payload[start:end], tag, bool(bits & 1)


def read_get(payload: bytes, at: int) -> tuple[int, bool]:
    """Return the delivery tag of a message that was asked for, and whether it was delivered before."""
    return read_confirm(payload, at)  # the same fields in the same places


def read_body_size(payload: bytes, at: int) -> int:
    """Return the body size in a content header."""
    size: int = _SIZE_AND_FLAGS.unpack_from(payload, at + 4)[0]
    return size


def read_properties(header: bytes) -> Properties:
    """Return the properties in the payload of a content header; of malformed ones, those before the fault.

    A message with malformed properties must still be delivered: the server would redeliver it forever.
    """
    found = Properties()
    try:
        flags: int = _SIZE_AND_FLAGS.unpack_from(header, 4)[1]
        at = 14
        if flags & _CONTENT_TYPE:
            found.content_type, at = _read_short(header, at)
        if flags & _CONTENT_ENCODING:
            _, at = _read_short(header, at)
        if flags & _HEADERS:
            end = at + _LENGTH.size + _LENGTH.unpack_from(header, at)[0]
            found.foreign = header[at + _LENGTH.size : end]
            with suppress(*_MALFORMED):
                found.headers = decode.field_table(header[at:end])[1]
            at = end
        at += bool(flags & _DELIVERY_MODE) + bool(flags & _PRIORITY)
        if flags & _CORRELATION_ID:
            found.correlation_id, at = _read_short(header, at)
        if flags & _REPLY_TO:
            found.reply_to, at = _read_short(header, at)
        if flags & _EXPIRATION:
            _, at = _read_short(header, at)
        if flags & _MESSAGE_ID:
            found.message_id, _ = _read_short(header, at)
    except _MALFORMED:
        pass
    return found


def headers_without(written: bytes, unwanted: Callable[[str], bool]) -> bytes:
    """Return received headers without the unwanted names; of malformed ones, those before the fault."""
    kept, at = b"", 0
    with suppress(*_MALFORMED):
        while at < len(written):
            name, value_at = _read_short(written, at)
            end = value_at + decode.embedded_value(written[value_at:])[0]
            if end > len(written):
                break
            if not unwanted(name):
                kept += written[at:end]
            at = end
    return kept


def _short(text: str) -> bytes:
    data = text.encode()
    return bytes([len(data)]) + data


def _read_short(data: bytes, at: int) -> tuple[str, int]:
    end = at + 1 + data[at]
    read = data[at + 1 : end]
    try:
        return read.decode(), end
    except UnicodeDecodeError:  # of the same length, so that it can be encoded again
        return read.decode("ascii", errors="replace").replace("\ufffd", "?"), end
