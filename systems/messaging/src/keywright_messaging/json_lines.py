"""Reads JSON lines from a stream as they arrive, from a producer that may pause or never end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, wait
from typing import BinaryIO

import msgspec

__all__ = ["JsonLines", "not_json"]

_CHUNK_BYTES = 256 * 1024
_CHUNKS_AHEAD = 4
_EXCERPT = 60
_CHECK_SECONDS = 1.0


class JsonLines:
    """Messages in the order of the lines, in batches of those that have arrived.

    A thread reads ahead a bounded number of bytes. A malformed line ends the iteration after all messages
    before it; `fault` describes it.
    """

    def __init__(self, stream: BinaryIO, longest: int) -> None:
        # A thread blocked in a buffered stream would hold its lock when the interpreter exits.
        self._stream: BinaryIO = getattr(stream, "raw", stream)
        self._longest = longest
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue(_CHUNKS_AHEAD)
        self._rest = b""
        self._number = 0
        self.fault: str | None = None
        self._ended = False

    def __aiter__(self) -> JsonLines:
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), daemon=True).start()
        return self

    async def __anext__(self) -> list[msgspec.Raw]:
        while self.fault is None and not self._ended:
            chunk = await self._chunks.get()
            self._ended = not chunk
            if messages := list(self._messages(self._lines(chunk))):
                return messages
        raise StopAsyncIteration

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        chunk, taken = b"more", True
        while chunk and taken:
            chunk = self._stream.read(_CHUNK_BYTES) or b""
            taken = self._hand_over(chunk, loop)

    def _hand_over(self, chunk: bytes, loop: asyncio.AbstractEventLoop) -> bool:
        """Put a chunk into the queue when it has room. Return False if the event loop has ended."""
        putting = self._chunks.put(chunk)
        try:
            handed = asyncio.run_coroutine_threadsafe(putting, loop)
            while not wait([handed], _CHECK_SECONDS).done:
                if loop.is_closed():  # before it ran the coroutine
                    handed.cancel()
            handed.result()
        except (RuntimeError, CancelledError):
            putting.close()
            return False
        return True

    def _lines(self, chunk: bytes) -> list[bytes]:
        whole = self._rest + chunk
        if not chunk:
            self._rest = b""
            return [whole] if whole else []
        *lines, self._rest = whole.split(b"\n")
        return [*lines, self._rest] if len(self._rest) > self._longest else lines

    def _messages(self, lines: list[bytes]) -> Iterator[msgspec.Raw]:
        for line in lines:
            self._number += 1
            if not (text := line.strip()):
                continue
            too_long = len(text) > self._longest
            if reason := f"is longer than {self._longest} bytes" if too_long else not_json(text):
                self.fault = f"line {self._number} {reason}: {_excerpt(text)}"
                return
            yield msgspec.Raw(text)


def not_json(text: bytes) -> str | None:
    """Return why a text is not JSON, or None if it is."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"is not JSON ({error})"
    return None


def _excerpt(line: bytes) -> str:
    text = line.decode(errors="replace")
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
