"""Encoding of gateway frames: JSON or ETF, compressed as one stream per connection, or not.

`d` is not decoded here: from JSON it stays the bytes that came, from ETF it becomes JSON at once, so that all
later stages see one form. A `Wire` belongs to one connection, as its decompression context does.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from keywright import Secret
from keywright.errors import KeywrightError
from keywright_messaging import etf

__all__ = ["Compression", "Encoding", "Payload", "Wire", "WireError"]

MOST_BYTES = 64 * 1024 * 1024
ZLIB_SUFFIX = b"\x00\x00\xff\xff"
ZSTD_WINDOW = 2**25
# One block of zstd may be 4 bytes for 128 KB, so this is what bounds a step to 8 MB.
ZSTD_STEP = 256
LARGEST_EXACT = 2**53 - 1


class Encoding(StrEnum):
    JSON = "json"
    ETF = "etf"


class Compression(StrEnum):
    NONE = "none"
    ZLIB = "zlib-stream"
    ZSTD = "zstd-stream"


class WireError(KeywrightError):
    """A malformed frame; its connection cannot be used any more."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Discord sent a malformed frame: {reason}. The connection is opened again.")


class Payload(msgspec.Struct):
    """A gateway payload; `d` is JSON, whatever the encoding was."""

    op: int
    d: msgspec.Raw = msgspec.Raw(b"null")
    s: int | None = None
    t: str | None = None


class Stream(Protocol):
    """A decompression context: frames in, complete messages out."""

    def feed(self, message: bytes) -> bytes | None: ...


class Wire:
    """The encoding and compression of one connection."""

    def __init__(
        self, encoding: Encoding, compression: Compression, *, version: int = 10, most_bytes: int = MOST_BYTES
    ) -> None:
        self._encoding = encoding
        self._compression = compression
        self._version = version
        self._most_bytes = most_bytes
        self._stream: Stream | None = _STREAMS[compression](most_bytes)
        self._decode = _from_json if encoding is Encoding.JSON else _from_etf

    def address(self, url: str) -> str:
        """Return the URL to connect to, with version, encoding and compression."""
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query)) | {"v": str(self._version), "encoding": str(self._encoding)}
        if self._compression is not Compression.NONE:
            query["compress"] = str(self._compression)
        return urlunsplit((parts.scheme, parts.netloc, parts.path or "/", urlencode(query), ""))

    def read(self, message: str | bytes) -> Payload | None:
        """Return the payload of a message, or None while a compressed one is incomplete. Raise WireError if
        it is malformed."""
        data = message.encode() if isinstance(message, str) else message
        if self._stream is not None and isinstance(message, bytes):
            whole = self._stream.feed(data)
            if whole is None:
                return None
            data = whole
        if len(data) > self._most_bytes:
            raise WireError(f"a payload of {len(data):,} bytes")
        return self._decode(data)

    def write(self, op: int, d: Any) -> str | bytes:
        """Return a frame; a Secret within `d` is revealed."""
        if self._encoding is Encoding.ETF:
            return etf.encode({"op": int(op), "d": _revealed(d)})
        return msgspec.json.encode({"op": int(op), "d": d}, enc_hook=_reveal).decode()


class _Zlib:
    """zlib-stream: a message ends with a sync flush, and may come in several frames."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._context = zlib.decompressobj()
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, message: bytes) -> bytes | None:
        room = self._most_bytes - self._size + 1
        try:
            part = self._context.decompress(message, room)
        except zlib.error as error:
            raise WireError(f"{error} in zlib-stream") from error
        self._size += len(part)
        if self._size > self._most_bytes:
            raise WireError(f"a payload of more than {self._most_bytes:,} bytes")
        self._parts.append(part)
        if not message.endswith(ZLIB_SUFFIX):
            return None
        whole = b"".join(self._parts)
        self._parts, self._size = [], 0
        return whole


class _Zstd:
    """zstd-stream: a frame is a message, flushed; the context goes on."""

    def __init__(self, most_bytes: int) -> None:
        import zstandard

        self._most_bytes = most_bytes
        self._error: type[Exception] = zstandard.ZstdError
        self._context = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj()

    def feed(self, message: bytes) -> bytes | None:
        parts: list[bytes] = []
        size = 0
        for start in range(0, len(message), ZSTD_STEP):
            try:
                part = self._context.decompress(message[start : start + ZSTD_STEP])
            except self._error as error:
                raise WireError(f"{error} in zstd-stream") from error
            size += len(part)
            if size > self._most_bytes:
                raise WireError(f"a payload of more than {self._most_bytes:,} bytes")
            parts.append(part)
        return b"".join(parts)


def _uncompressed(most_bytes: int) -> None:
    return None


_STREAMS: dict[Compression, Callable[[int], Stream | None]] = {
    Compression.NONE: _uncompressed,
    Compression.ZLIB: _Zlib,
    Compression.ZSTD: _Zstd,
}

_json_payload = msgspec.json.Decoder(Payload).decode


def _from_json(data: bytes) -> Payload:
    try:
        return _json_payload(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"not a JSON payload ({error})") from error


def _from_etf(data: bytes) -> Payload:
    try:
        term = etf.decode(data)
        if not isinstance(term, dict):
            raise WireError("an ETF term that is not a map")
        raw = msgspec.Raw(msgspec.json.encode(_exact(term.get("d"))))
        return msgspec.convert({**term, "d": raw}, Payload)
    except (etf.EtfError, msgspec.MsgspecError, TypeError, RecursionError) as error:
        raise WireError(f"not an ETF payload ({error})") from error


def _exact(term: Any) -> Any:
    """Return the term with integers above 2^53, all of them ids, as text, as Discord's JSON has them."""
    if isinstance(term, dict):
        return {str(name): _exact(value) for name, value in term.items()}
    if isinstance(term, list | tuple):
        return [_exact(each) for each in term]
    if type(term) is int and term > LARGEST_EXACT:
        return str(term)
    return term


def _reveal(hidden: Any) -> Any:
    if isinstance(hidden, Secret):
        return hidden.reveal()
    raise TypeError(f"{type(hidden).__name__} cannot be sent")


def _revealed(d: Any) -> Any:
    if isinstance(d, Secret):
        return d.reveal()
    if isinstance(d, dict):
        return {name: _revealed(value) for name, value in d.items()}
    if isinstance(d, list):
        return [_revealed(each) for each in d]
    return d
