"""Frames: both encodings, every compression, and malformed ones."""

from __future__ import annotations

import zlib
from typing import Any

import msgspec
import pytest
import zstandard

from keywright import Secret
from keywright_discord.gateway.wire import Compression, Encoding, Payload, Wire, WireError
from keywright_messaging import etf

EVENT = {"op": 0, "d": {"id": "123456789012345678", "big": [1, None, True]}, "s": 3, "t": "MESSAGE_CREATE"}
TEXT = msgspec.json.encode(EVENT)


class Deflater:
    """The sending side of zlib-stream."""

    def __init__(self) -> None:
        self._context = zlib.compressobj()

    def __call__(self, data: bytes) -> bytes:
        return self._context.compress(data) + self._context.flush(zlib.Z_SYNC_FLUSH)


class Zstandard:
    """The sending side of zstd-stream."""

    def __init__(self) -> None:
        self._context = zstandard.ZstdCompressor().compressobj()

    def __call__(self, data: bytes) -> bytes:
        flushed = self._context.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        return self._context.compress(data) + self._context.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + flushed


COMPRESSORS: dict[Compression, Any] = {Compression.ZLIB: Deflater, Compression.ZSTD: Zstandard}


def shown(payload: Payload | None) -> tuple[int, Any, int | None, str | None]:
    assert payload is not None
    return payload.op, msgspec.json.decode(payload.d), payload.s, payload.t


def test_json_keeps_d_as_the_bytes_that_came() -> None:
    payload = Wire(Encoding.JSON, Compression.NONE).read('{"op":0,"t":"X","s":1,"d":{"a" : 1.0, "b":[]}}')
    assert payload is not None
    assert bytes(payload.d) == b'{"a" : 1.0, "b":[]}'


@pytest.mark.parametrize("compression", COMPRESSORS)
def test_a_compressed_stream_goes_on_over_many_messages(compression: Compression) -> None:
    wire, compress = Wire(Encoding.JSON, compression), COMPRESSORS[compression]()
    for _ in range(50):
        assert shown(wire.read(compress(TEXT))) == (0, EVENT["d"], 3, "MESSAGE_CREATE")


def test_a_message_of_zlib_may_come_in_pieces() -> None:
    wire, compress = Wire(Encoding.JSON, Compression.ZLIB), Deflater()
    whole = compress(TEXT)
    assert wire.read(whole[:10]) is None
    assert shown(wire.read(whole[10:]))[0] == 0
    assert shown(wire.read(compress(TEXT)))[0] == 0


@pytest.mark.parametrize("compression", Compression)
def test_etf_reads_as_json_would(compression: Compression) -> None:
    compress = COMPRESSORS.get(compression, lambda: bytes)()
    payload = Wire(Encoding.ETF, compression).read(compress(etf.encode(EVENT)))
    assert shown(payload) == (0, EVENT["d"], 3, "MESSAGE_CREATE")


def test_ids_that_etf_sends_as_integers_become_text() -> None:
    term = {
        "op": 0,
        "d": {"id": 123456789012345678, "type": 4, "roles": [123456789012345679]},
        "s": 1,
        "t": "X",
    }
    payload = Wire(Encoding.ETF, Compression.NONE).read(etf.encode(term))
    assert shown(payload)[1] == {"id": "123456789012345678", "type": 4, "roles": ["123456789012345679"]}


@pytest.mark.parametrize("compression", COMPRESSORS)
@pytest.mark.parametrize("encoding", Encoding)
def test_a_message_that_decompresses_to_too_much_is_refused(
    encoding: Encoding, compression: Compression
) -> None:
    wire = Wire(encoding, compression, most_bytes=100_000)
    bomb = COMPRESSORS[compression]()(b" " * 50_000_000)
    assert len(bomb) < 100_000
    with pytest.raises(WireError, match="more than 100,000 bytes"):
        wire.read(bomb)


def test_a_large_message_is_refused() -> None:
    with pytest.raises(WireError, match="a payload of"):
        Wire(Encoding.JSON, Compression.NONE, most_bytes=10).read(TEXT)


@pytest.mark.parametrize(
    ("encoding", "compression", "message"),
    [
        (Encoding.JSON, Compression.NONE, b"{"),
        (Encoding.JSON, Compression.NONE, b"[]"),
        (Encoding.JSON, Compression.NONE, b'{"op":"0"}'),
        (Encoding.JSON, Compression.NONE, b"\xff\xfe"),
        (Encoding.ETF, Compression.NONE, b"{}"),
        (Encoding.ETF, Compression.NONE, etf.encode([1])),
        (Encoding.ETF, Compression.NONE, etf.encode({"op": "x"})),
        (Encoding.JSON, Compression.ZLIB, b"not zlib\x00\x00\xff\xff"),
        (Encoding.JSON, Compression.ZSTD, b"not zstd at all"),
    ],
)
def test_a_malformed_frame_is_an_error(encoding: Encoding, compression: Compression, message: bytes) -> None:
    with pytest.raises(WireError):
        Wire(encoding, compression).read(message)


@pytest.mark.parametrize("encoding", Encoding)
def test_a_written_frame_reveals_the_secret(encoding: Encoding) -> None:
    frame = Wire(encoding, Compression.NONE).write(2, {"token": Secret("abc"), "shard": [0, 1]})
    data = msgspec.json.decode(frame) if isinstance(frame, str) else etf.decode(frame)
    assert data == {"op": 2, "d": {"token": "abc", "shard": [0, 1]}}
    assert isinstance(frame, str) == (encoding is Encoding.JSON)


@pytest.mark.parametrize(
    ("encoding", "compression", "expected"),
    [
        (Encoding.JSON, Compression.NONE, "wss://g.example/?v=10&encoding=json"),
        (Encoding.ETF, Compression.ZSTD, "wss://g.example/?v=10&encoding=etf&compress=zstd-stream"),
    ],
)
def test_the_address_has_version_encoding_and_compression(
    encoding: Encoding, compression: Compression, expected: str
) -> None:
    assert Wire(encoding, compression).address("wss://g.example") == expected
    assert Wire(encoding, compression).address("wss://g.example/?v=9") == expected
