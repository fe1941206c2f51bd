"""Frames from Discord: every encoding and compression, and the conversation that they drive.

The first byte chooses them; the rest is split into frames, compressed honestly or taken as compressed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from itertools import islice

import zstandard

from keywright import Secret
from keywright_discord.gateway.protocol import Conversation, Identity
from keywright_discord.gateway.wire import Compression, Encoding, Wire, WireError

MOST_BYTES = 1024 * 1024
MOST_FRAMES = 64
COMPRESSIONS = (Compression.NONE, Compression.ZLIB, Compression.ZSTD)


def one_input(data: bytes) -> None:
    if not data:
        return
    choice = data[0]
    compression = COMPRESSIONS[(choice >> 1) % 3]
    pack = _honest(compression) if choice & 16 else bytes
    wire = Wire(Encoding.ETF if choice & 1 else Encoding.JSON, compression, most_bytes=MOST_BYTES)
    conversation = Conversation(0, 1, Identity(token=Secret("t"), intents=1), "wss://discord.example/")
    now = 1e9
    conversation.ticked(now)
    conversation.opened(now)
    for frame in islice(data[1:].split(b"\xfe\xfe"), MOST_FRAMES):
        try:
            payload = wire.read(pack(frame))
        except WireError:
            return
        now += 1
        if payload is not None:
            conversation.received(payload, now)
        if conversation.due is not None:
            conversation.ticked(conversation.due)


def _honest(compression: Compression) -> Callable[[bytes], bytes]:
    """Return a function that compresses the frames of one connection as Discord does."""
    if compression is Compression.ZLIB:
        stream = zlib.compressobj()
        return lambda frame: stream.compress(frame) + stream.flush(zlib.Z_SYNC_FLUSH)
    if compression is Compression.ZSTD:
        context = zstandard.ZstdCompressor(level=1).compressobj()
        return lambda frame: context.compress(frame) + context.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    return bytes
