"""JSON lines are read as they arrive, from a producer that may never end."""

from __future__ import annotations

import asyncio
import io
import threading
from typing import Any

import pytest

from keywright.testing import wait_until
from keywright_messaging.json_lines import JsonLines


class Endless(io.RawIOBase):
    """A producer that never blocks."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = b'{"n": 1}\n' * (len(buffer) // 9)
        buffer[: len(part)] = part
        return len(part)


def test_a_reader_that_stops_early_leaves_no_thread_and_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    before = set(threading.enumerate())

    async def read_some() -> int:
        lines = JsonLines(io.BufferedReader(Endless()), 1000)
        async for messages in lines:
            await asyncio.to_thread(wait_until, lines._chunks.full, "it has read ahead as far as it may")
            return len(messages)
        return 0

    assert asyncio.run(read_some()) > 1000
    wait_until(lambda: set(threading.enumerate()) <= before, "the thread that read ahead ends")
    assert raised == []


async def read(text: bytes) -> tuple[list[bytes], str | None]:
    lines = JsonLines(io.BytesIO(text), 20)
    return [bytes(each) async for messages in lines for each in messages], lines.fault


@pytest.mark.anyio
async def test_lines_are_read_in_order_and_end_at_a_malformed_line() -> None:
    assert await read(b'1\n\n "two" \n[3]') == ([b"1", b'"two"', b"[3]"], None)
    messages, fault = await read(b"1\nnope\n3\n")
    assert messages == [b"1"]
    assert fault is not None
    assert fault.startswith("line 2 is not JSON")
    _, fault = await read(b'"%b"\n' % (b"x" * 30))
    assert fault == f'line 1 is longer than 20 bytes: "{"x" * 30}"'
