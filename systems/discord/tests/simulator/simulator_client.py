"""A gateway client that only does what a test tells it to."""

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


def on_discord(**settings: Any) -> Callable[[Scenario], Callable[[], None]]:
    """A test that runs beside a simulated Discord, with a minute until it counts as stuck."""

    def decorate(scenario: Scenario) -> Callable[[], None]:
        def test() -> None:
            asyncio.run(on_simulator(scenario, **settings))

        test.__name__, test.__doc__ = scenario.__name__, scenario.__doc__
        return test

    return decorate


async def on_simulator(scenario: Scenario, **settings: Any) -> None:
    # Tests identify as often as they need to, unless they are about that limit.
    settings = {"max_concurrency": 16, "identify_window_seconds": 0.0} | settings
    async with DiscordSimulator(SimulatorSettings(**settings)) as discord, asyncio.timeout(60):
        await scenario(discord)


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
        """The next packet from Discord."""
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
        """The `d` of the next event of this name, or packet of this opcode; what comes before is skipped."""
        while True:
            found = await self.packet()
            if wanted == (found["t"] if isinstance(wanted, str) else found["op"]):
                return found["d"]

    async def events(self, last: str) -> list[Packet]:
        """All dispatches up to and with the next one of this name."""
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
        """What the connection is closed with, after whatever still comes."""
        try:
            while True:
                self.frames.append(await self.socket.recv())
        except ConnectionClosed:
            return self.socket.close_code

    async def silent(self) -> bool:
        """Whether nothing is on its way: a heartbeat is answered next."""
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
    """A connection on which nothing was said yet."""
    asked = f"?v={v}&encoding={encoding}" + (f"&compress={compress}" if compress else "")
    async with connect(f"{url or discord.gateway_url}/{asked}", compression=None, max_size=None) as socket:
        yield Client(socket, encoding=encoding, compress=compress)


@asynccontextmanager
async def shard(
    discord: DiscordSimulator, number: int = 0, count: int = 1, *, intents: int = ALL, **how: Any
) -> AsyncIterator[Client]:
    """A client that identified and has all its guilds."""
    async with AsyncExitStack() as stack:
        made = await stack.enter_async_context(client(discord, **how))
        await made.identify(discord.token, intents=intents, shard=[number, count])
        guilds = (await made.next("READY"))["guilds"]
        for _ in guilds if intents & Intents.GUILDS else []:
            await made.next("GUILD_CREATE")
        yield made
