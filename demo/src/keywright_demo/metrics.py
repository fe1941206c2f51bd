"""The figures of the status line, read from the gateway, the worker and Redis, any of which may be down."""

from __future__ import annotations

import asyncio
import http.client
import re
import time
import urllib.request
from collections.abc import Awaitable
from datetime import timedelta
from types import TracebackType
from typing import Self

import msgspec

from keywright import AsyncDatabase
from keywright.errors import KeywrightError, ServerRefusedError
from keywright.operations import Effect, Operation, ServerCommand
from keywright_demo import names
from keywright_demo.worker import Stats
from keywright_messaging import Broker, open_broker

__all__ = ["Figures", "MetricsReader", "key_count", "memory_bytes"]

TIMEOUT = timedelta(seconds=2)
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy cannot reach our loopback
_RECEIVED = re.compile(rb'^gateway_packets_received\{[^}]*op="0"[^}]*\} (\S+)$', re.MULTILINE)


_KEY_COUNT = ServerCommand(Operation("key count", b"DBSIZE", Effect.READ)).map(int)
_MEMORY = ServerCommand(Operation("memory", b"INFO", Effect.READ), (b"memory",))
_USED_MEMORY = re.compile(rb"^used_memory:(\d+)", re.MULTILINE)


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one moment. None: unknown."""

    events_a_second: float | None = None
    handled: int | None = None
    keys: int | None = None
    memory_bytes: int | None = None


class MetricsReader:
    """Reads the figures, as `async with`."""

    def __init__(self, db: AsyncDatabase, broker_url: str) -> None:
        self.gateway: str | None = None
        """The address of the gateway's metrics, once it has one."""
        self.worker_is_up = False
        self._db = db
        self._broker_url = broker_url
        self._broker: Broker | None = None
        self._events: tuple[float, float] | None = None
        """The time of the last reading of the gateway's count, and the count."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._broker is not None:
            await self._broker.close()

    async def read(self) -> Figures:
        """Read all figures concurrently. A figure whose source is down is unknown."""
        rate, handled, keys, memory = await asyncio.gather(
            self._rate(), self._handled(), _known(key_count(self._db)), _known(memory_bytes(self._db))
        )
        return Figures(events_a_second=rate, handled=handled, keys=keys, memory_bytes=memory)

    async def _rate(self) -> float | None:
        if self.gateway is None:
            return None
        try:
            text = await asyncio.to_thread(_fetched, self.gateway)
        except (OSError, http.client.HTTPException):  # the latter for an incomplete reply
            self._events = None
            return None
        now, count = time.monotonic(), sum(float(each) for each in _RECEIVED.findall(text))
        before, self._events = self._events, (now, count)
        return None if before is None else (count - before[1]) / (now - before[0])

    async def _handled(self) -> int | None:
        if not self.worker_is_up:
            return None
        try:
            if self._broker is None:
                self._broker = await open_broker(self._broker_url, names.broker_settings())
            return (await self._broker.call(names.STATS, {}, reply=Stats, within=TIMEOUT)).handled
        except KeywrightError:
            return None


async def key_count(db: AsyncDatabase) -> int:
    """Return the number of keys of all nodes, of any keyspace."""
    return sum([await db.run(_KEY_COUNT, at=node) for node in await db.nodes()])


async def memory_bytes(db: AsyncDatabase) -> int | None:
    """Return the memory of all nodes, or None if a server does not report it."""
    try:
        replies = [await db.run(_MEMORY, at=node) for node in await db.nodes()]
    except ServerRefusedError:
        return None
    found = [_USED_MEMORY.search(reply) for reply in replies]
    return sum(int(each[1]) for each in found if each) if all(found) else None


async def _known(asked: Awaitable[int | None]) -> int | None:
    try:
        return await asked
    except KeywrightError:
        return None


def _fetched(address: str) -> bytes:
    with _DIRECT.open(address, timeout=TIMEOUT.total_seconds()) as answer:
        found: bytes = answer.read()
        return found
