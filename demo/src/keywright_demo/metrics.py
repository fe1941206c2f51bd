"""Figures of what runs: asked of the gateway, the worker and Redis, each of which may be away."""

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
from keywright.engine.node_calls import info
from keywright.engine.node_calls import key_count as keys_of_a_node
from keywright.errors import KeywrightError, ServerRefusedError
from keywright_demo import names
from keywright_demo.worker import Stats
from keywright_messaging import Broker, open_broker

__all__ = ["Figures", "Readings", "key_count", "memory_bytes"]

PATIENCE = timedelta(seconds=2)
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy knows no loopback of ours
_RECEIVED = re.compile(rb'^gateway_packets_received\{[^}]*op="0"[^}]*\} (\S+)$', re.MULTILINE)


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """None: not known now."""

    events_a_second: float | None = None
    handled: int | None = None
    keys: int | None = None
    memory_bytes: int | None = None


class Readings:
    """`async with`; `metrics` is the address of the gateway's, once it has one."""

    def __init__(self, db: AsyncDatabase, broker_url: str) -> None:
        self.metrics: str | None = None
        self.worker_is_up = False
        self._db = db
        self._broker_url = broker_url
        self._broker: Broker | None = None
        self._events: tuple[float, float] | None = None
        """When the gateway's count was read last, and what it was."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._broker is not None:
            await self._broker.close()

    async def take(self) -> Figures:
        """All of them, side by side; never raises for a part that is away."""
        rate, handled, keys, memory = await asyncio.gather(
            self._rate(), self._handled(), _known(key_count(self._db)), _known(memory_bytes(self._db))
        )
        return Figures(events_a_second=rate, handled=handled, keys=keys, memory_bytes=memory)

    async def _rate(self) -> float | None:
        if self.metrics is None:
            return None
        try:
            text = await asyncio.to_thread(_fetched, self.metrics)
        except (OSError, http.client.HTTPException):  # the latter for an answer that breaks off
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
            return (await self._broker.call(names.STATS, {}, reply=Stats, within=PATIENCE)).handled
        except KeywrightError:
            return None


async def key_count(db: AsyncDatabase) -> int:
    """How many keys the server has, of whatever keyspace."""
    return sum([await db.run(keys_of_a_node(), at=node) for node in await db.nodes()])


async def memory_bytes(db: AsyncDatabase) -> int | None:
    """What all nodes use; None when the server does not say."""
    try:
        facts = [await db.run(info(b"memory"), at=node) for node in await db.nodes()]
        return sum(int(fields["used_memory"]) for fields in facts)
    except (ServerRefusedError, KeyError):
        return None


async def _known(asked: Awaitable[int | None]) -> int | None:
    try:
        return await asked
    except KeywrightError:
        return None


def _fetched(address: str) -> bytes:
    with _DIRECT.open(address, timeout=PATIENCE.total_seconds()) as answer:
        found: bytes = answer.read()
        return found
