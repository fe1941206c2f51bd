"""A gateway client that is controlled by a test."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import zstandard
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from keywright_discord.gateway.intents import ALL
from keywright_discord.simulator import DiscordSimulator, Intents, Op, SimulatorSettings
from keywright_messaging import etf

Packet = dict[str, Any]
Scenario = Callable[[DiscordSimulator], Awaitable[None]]


def on_discord(**settings: Any) -> Callable[[Scenario], Callable[[], Awaitable[None]]]:
    """Make a test of a coroutine function that takes a simulated Discord with these settings."""

    def decorate(scenario: Scenario) -> Callable[[], Awaitable[None]]:
        async def test() -> None:
            async with simulated(**settings) as discord:
                await scenario(discord)

        test.__name__, test.__doc__ = scenario.__name__, scenario.__doc__
        return test

    return decorate


@asynccontextmanager
async def simulated(**settings: Any) -> AsyncIterator[DiscordSimulator]:
    """Run a simulated Discord, for at most a minute."""
    # Tests identify as often as they need to, unless they are about that limit.
    settings = {"max_concurrency": 16, "identify_window_seconds": 0.0} | settings
    async with DiscordSimulator(SimulatorSettings(**settings)) as discord, asyncio.timeout(60):
        yield discord


class Client:
    def __init__(self, socket: ClientConnection, *, encoding: str, compress: str | None) -> None:
        self.socket = socket
        self.sequence: int | None = None
        self.session_id = ""
        self.frames: list[str | bytes] = []
        self._encoding = encoding
        self._zlib = zlib.decompressobj() if compress == "zlib-stream" else None
        self._zstd = zstandard.ZstdDecompressor().decompressobj() if compress == "zstd-stream" else None

    async def send(self, op: int, data: Any) -> None:
        packet = {"op": int(op), "d": data}
        await self.socket.send(json.dumps(packet) if self._encoding == "json" else etf.encode(packet))

    async def packet(self) -> Packet:
        """Return the next packet from Discord."""
        frame = await self.socket.recv()
        self.frames.append(frame)
        found: Packet = self._decoded(frame)
        self.sequence = found["s"] or self.sequence
        if found["t"] == "READY":
            self.session_id = found["d"]["session_id"]
        return found

    def _decoded(self, frame: str | bytes) -> Any:
        if isinstance(frame, str):
            return json.loads(frame)
        if self._zlib is not None:
            assert frame.endswith(b"\x00\x00\xff\xff")
            frame = self._zlib.decompress(frame)
        elif self._zstd is not None:
            frame = self._zstd.decompress(frame)
        elif self._encoding == "json":
            frame = zlib.decompress(frame)
        return json.loads(frame) if self._encoding == "json" else etf.decode(frame)

    async def next(self, wanted: str | Op) -> Any:
        """Return the `d` of the next event of this name, or packet of this opcode; others are skipped."""
        while True:
            found = await self.packet()
            if wanted == (found["t"] if isinstance(wanted, str) else found["op"]):
                return found["d"]

    async def events(self, last: str) -> list[Packet]:
        """Return all dispatches up to and including the next one of this name."""
        found = []
        while True:
            packet = await self.packet()
            found += [packet] if packet["op"] == Op.DISPATCH else []
            if packet["t"] == last:
                return found

    async def identify(self, token: str, *, intents: int = ALL, **more: Any) -> None:
        await self.send(Op.IDENTIFY, {"token": token, "intents": int(intents), "properties": {}, **more})

    async def resume(self, token: str, session_id: str, sequence: int | None) -> None:
        await self.send(Op.RESUME, {"token": token, "session_id": session_id, "seq": sequence})

    async def closed_with(self) -> int | None:
        """Return the close code of the connection, after all remaining packets."""
        try:
            while True:
                self.frames.append(await self.socket.recv())
        except ConnectionClosed:
            return self.socket.close_code

    async def silent(self) -> bool:
        """Return whether no packet is on its way: the next one answers a heartbeat."""
        await self.send(Op.HEARTBEAT, self.sequence)
        return bool((await self.packet())["op"] == Op.HEARTBEAT_ACK)


@asynccontextmanager
async def client(
    discord: DiscordSimulator,
    *,
    v: int | str = 10,
    encoding: str = "json",
    compress: str | None = None,
    url: str | None = None,
) -> AsyncIterator[Client]:
    """Open a connection, on which nothing was sent yet."""
    asked = f"?v={v}&encoding={encoding}" + (f"&compress={compress}" if compress else "")
    async with connect(f"{url or discord.gateway_url}/{asked}", compression=None, max_size=None) as socket:
        yield Client(socket, encoding=encoding, compress=compress)


@asynccontextmanager
async def shard(
    discord: DiscordSimulator, number: int = 0, count: int = 1, *, intents: int = ALL, **how: Any
) -> AsyncIterator[Client]:
    """Open a client that has identified and received all its guilds."""
    async with AsyncExitStack() as stack:
        made = await stack.enter_async_context(client(discord, **how))
        await made.identify(discord.token, intents=intents, shard=[number, count])
        guilds = (await made.next("READY"))["guilds"]
        for _ in guilds if intents & Intents.GUILDS else []:
            await made.next("GUILD_CREATE")
        yield made
