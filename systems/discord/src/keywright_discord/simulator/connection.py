"""The connection of one client: its outbox, its last heartbeat, its rate limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from keywright_discord.gateway.close_codes import CloseCode
from keywright_discord.gateway.opcodes import Op
from keywright_discord.simulator.limits import Window
from keywright_discord.simulator.session import SimulatedSession, SimulatedShard
from keywright_discord.simulator.settings import SimulatorSettings
from keywright_discord.simulator.wire import PacketEncoding, Packing, PayloadZlib

__all__ = ["SimulatedConnection"]

_numbers = count(1)


class SimulatedConnection:
    """A connection. Sending never blocks: packets wait in a bounded outbox, which `write` empties."""

    def __init__(
        self,
        socket: ServerConnection,
        settings: SimulatorSettings,
        encoding: PacketEncoding,
        packing: Packing,
        *,
        version: int,
        path: str,
        compress: str | None,
    ) -> None:
        self.number = next(_numbers)
        self.version = version
        self.path = path
        self.encoding = encoding
        self.compress = compress
        self.session: SimulatedSession | None = None
        self.acks = True
        self.announcing: asyncio.Task[None] | None = None
        self.sends = Window(settings.sends, settings.sends_window_seconds, settings.clock)
        self.presences = Window(settings.presences, settings.presences_window_seconds, settings.clock)
        self._socket = socket
        self._packing = packing
        self._clock: Callable[[], float] = settings.clock
        self._heartbeat_within = settings.heartbeat_interval_ms / 1000 + settings.heartbeat_grace_seconds
        self._heard_at = settings.clock()
        self._outbox: asyncio.Queue[bytes | CloseCode | PayloadZlib] = asyncio.Queue(settings.outbox)
        self.hung_up_with: CloseCode | None = None
        """The code with which the server closed it; None while it is open, or if the client closed it."""

    @property
    def shard(self) -> SimulatedShard | None:
        return self.session.shard if self.session is not None else None

    @property
    def waiting(self) -> int:
        """The number of packets in the outbox."""
        return self._outbox.qsize()

    def heartbeat(self) -> None:
        self._heard_at = self._clock()

    @property
    def is_silent(self) -> bool:
        """Whether a heartbeat is overdue."""
        return self._clock() - self._heard_at > self._heartbeat_within

    def send(self, op: Op, data: Any) -> None:
        """Send a packet that is not a dispatch, so it has neither event name nor sequence."""
        self.push(self.encoding.encode({"t": None, "s": None, "op": int(op), "d": data}))

    def push(self, payload: bytes) -> None:
        self._queue(payload)

    def compress_payloads(self) -> None:
        """Compress each packet separately, beginning with the next."""
        self._queue(PayloadZlib())

    def hang_up(self, code: CloseCode) -> None:
        """Close after the waiting packets have been sent; later ones are dropped."""
        if self.hung_up_with is None:
            self._queue(code)
            self.hung_up_with = code

    def cut(self) -> None:
        """Abort the TCP connection: the client sees 1006."""
        self.hung_up_with = self.hung_up_with or CloseCode.UNKNOWN_ERROR
        self._socket.transport.abort()

    def _queue(self, item: bytes | CloseCode | PayloadZlib) -> None:
        if self.hung_up_with is not None:
            return
        try:
            self._outbox.put_nowait(item)
        except asyncio.QueueFull:
            self.cut()

    async def drained(self) -> None:
        """Wait until the outbox is empty."""
        await self._outbox.join()

    async def write(self) -> None:
        """Send waiting packets until the connection is closed."""
        try:
            while True:
                item = await self._outbox.get()
                if isinstance(item, CloseCode):
                    return await self._socket.close(item, item.reason)
                await self._write(item)
                self._outbox.task_done()
        except ConnectionClosed:
            return None

    async def _write(self, item: bytes | PayloadZlib) -> None:
        if isinstance(item, PayloadZlib):
            self._packing = item
            return
        frame = self._packing.pack(item)
        await self._socket.send(frame.data, text=frame.is_text)
