"""Encoding of packets as frames: JSON or ETF, and the three compressions of Discord's gateway."""

from __future__ import annotations

import zlib
from enum import Enum
from typing import Any, NamedTuple, Protocol

import msgspec
import zstandard

from keywright_discord.gateway.close_codes import CloseCode
from keywright_discord.simulator.hang_up import HangUp
from keywright_messaging import etf

__all__ = ["Frame", "PacketEncoding", "Packing", "packing"]

_ID_DIGITS = 15
_ID_LISTS = frozenset({"ids", "roles", "mention_roles", "applied_tags", "not_found"})


class PacketEncoding(Enum):
    """The encoding of one connection, in both directions."""

    JSON = "json"
    ETF = "etf"
    ETF_INTEGER_IDS = "etf with ids as integers"

    @property
    def is_text(self) -> bool:
        return self is PacketEncoding.JSON

    def encode(self, packet: Any) -> bytes:
        if self is PacketEncoding.JSON:
            return msgspec.json.encode(packet)
        return etf.encode(packet if self is PacketEncoding.ETF else _with_integer_ids(packet))

    def decode(self, message: str | bytes) -> Any:
        """Decode a packet of a client: JSON in any frame, ETF in a binary one. Raise HangUp if malformed."""
        try:
            if self is PacketEncoding.JSON:
                return msgspec.json.decode(message)
            if isinstance(message, bytes):
                return etf.decode(message)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, etf.EtfError) as exc:
            raise HangUp(CloseCode.DECODE_ERROR) from exc
        raise HangUp(CloseCode.DECODE_ERROR)


def _with_integer_ids(data: Any) -> Any:
    """Return the data with ids as 64-bit integers, as Discord may send them in ETF; fields show which."""
    if isinstance(data, list):
        return [_with_integer_ids(each) for each in data]
    if isinstance(data, dict):
        return {name: _identified(name, value) for name, value in data.items()}
    return data


def _identified(name: str, value: Any) -> Any:
    if isinstance(value, str) and (name == "id" or name.endswith("_id")):
        return _as_integer(value)
    if isinstance(value, list) and (name in _ID_LISTS or name.endswith("_ids")):
        return [_as_integer(each) if isinstance(each, str) else _with_integer_ids(each) for each in value]
    return _with_integer_ids(value)


def _as_integer(text: str) -> int | str:
    return int(text) if len(text) >= _ID_DIGITS and text.isascii() and text.isdigit() else text


class Frame(NamedTuple):
    data: bytes
    is_text: bool


class Packing(Protocol):
    """The compression of one connection's packets; it lives as long as the connection."""

    def pack(self, payload: bytes) -> Frame: ...


class Plain:
    def __init__(self, encoding: PacketEncoding) -> None:
        self._is_text = encoding.is_text

    def pack(self, payload: bytes) -> Frame:
        return Frame(payload, self._is_text)


class ZlibStream:
    """One zlib stream for the connection; each packet ends with a sync flush, 00 00 ff ff."""

    def __init__(self) -> None:
        self._stream = zlib.compressobj(level=1)

    def pack(self, payload: bytes) -> Frame:
        return Frame(self._stream.compress(payload) + self._stream.flush(zlib.Z_SYNC_FLUSH), False)


class ZstdStream:
    """One zstd frame for the connection that never ends; each packet is flushed out of it."""

    def __init__(self) -> None:
        self._stream = zstandard.ZstdCompressor(level=1).compressobj()

    def pack(self, payload: bytes) -> Frame:
        begun = self._stream.compress(payload)
        return Frame(begun + self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK), False)


class PayloadZlib:
    """Each packet is a zlib stream of its own, requested with `compress` in the identify."""

    def pack(self, payload: bytes) -> Frame:
        return Frame(zlib.compress(payload, level=1), False)


def packing(compress: str | None, encoding: PacketEncoding) -> Packing | None:
    """Return the packing that `compress` of the URL asks for, or None if it is unknown."""
    if compress is None:
        return Plain(encoding)
    if compress == "zlib-stream":
        return ZlibStream()
    return ZstdStream() if compress == "zstd-stream" else None
