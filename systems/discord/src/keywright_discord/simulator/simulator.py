"""The simulated Discord: a gateway and a REST API, each on a port of its own, and the controls for tests."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from itertools import chain
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from keywright.errors import UsageError
from keywright_discord.gateway.close_codes import CloseCode
from keywright_discord.gateway.opcodes import Op
from keywright_discord.simulator.connection import SimulatedConnection
from keywright_discord.simulator.gateway import Received, SimulatedGateway
from keywright_discord.simulator.protocol import converse
from keywright_discord.simulator.resources import SimulatedInteraction, interaction
from keywright_discord.simulator.rest import rest_app
from keywright_discord.simulator.session import SimulatedSession
from keywright_discord.simulator.settings import SimulatorSettings
from keywright_discord.simulator.world import SimulatedWorld
from keywright_service.testing.http_server import HttpServer

__all__ = ["DiscordSimulator"]

T = TypeVar("T")

_RESUME_PATH = "/resume"
_WATCHED_EVERY = 0.05
_LARGEST_MESSAGE = 1024 * 1024  # beyond it websockets closes with 1009; between, Discord's own 4002
_PLAYED_AT_ONCE = 100
_PATIENCE = 1.0


class DiscordSimulator:
    """A local Discord, for clients that connect to `api_url` or `gateway_url`.

    `async with DiscordSimulator() as discord:`. It runs in the event loop that entered the block; leaving
    closes all connections.
    """

    def __init__(self, settings: SimulatorSettings | None = None) -> None:
        self.settings = settings or SimulatorSettings()
        self._gateway = SimulatedGateway(self.settings)
        self._server: Server | None = None
        self._api: HttpServer | None = None
        self._opened = AsyncExitStack()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._reachable = asyncio.Event()
        self._reachable.set()
        self.port = self.settings.port

    async def __aenter__(self) -> Self:
        try:
            self._server = await self._listen()
        except OSError as exc:
            address = f"{self.settings.host}:{self.settings.port}"
            raise UsageError(f"cannot listen on {address}: {exc}. Choose another port.") from exc
        app = rest_app(self._gateway, lambda: self.gateway_url, self._reachable)
        try:
            api = HttpServer(app, host=self.settings.host, port=self.settings.api_port)
        except UsageError:
            self._server.close()
            raise
        self._api = await self._opened.enter_async_context(api)
        self.port = next(iter(self._server.sockets)).getsockname()[1]
        self._gateway.resume_url = f"{self.gateway_url}{_RESUME_PATH}"
        self._start(self._watch())
        return self

    async def _listen(self) -> Server:
        return await serve(
            lambda socket: converse(self._gateway, socket),
            self.settings.host,
            self.settings.port,
            process_request=self._route,
            compression=None,
            ping_interval=None,
            close_timeout=2,
            max_size=_LARGEST_MESSAGE,
            logger=logging.getLogger("keywright.discord_simulator"),
            server_header="keywright-simulator",
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        await self._opened.aclose()

    async def _route(self, socket: ServerConnection, request: Request) -> Response | None:
        """Return None to continue with the WebSocket handshake, or refuse another path."""
        await self._reachable.wait()
        path = urlsplit(request.path).path.rstrip("/")
        return None if path in ("", _RESUME_PATH) else socket.respond(HTTPStatus.NOT_FOUND, "404\n")

    @property
    def gateway_url(self) -> str:
        return f"ws://{self.settings.host}:{self.port}"

    @property
    def resume_url(self) -> str:
        """The address for resuming; it has its own path, so that `connections` shows which client resumed."""
        return self._gateway.resume_url

    @property
    def api_url(self) -> str:
        """The address of the REST API, which has a port of its own."""
        assert self._api is not None
        return f"{self._api.url}/api/v10"

    @property
    def token(self) -> str:
        return self._gateway.token

    @property
    def world(self) -> SimulatedWorld:
        return self._gateway.world

    @property
    def sessions(self) -> list[SimulatedSession]:
        """The sessions that are connected or can be resumed, oldest first."""
        return list(self._gateway.sessions.values())

    @property
    def connections(self) -> list[SimulatedConnection]:
        """The open connections, oldest first."""
        return list(self._gateway.connections.values())

    def received(self, op: Op | None = None, *, shard: int | None = None) -> list[Received]:
        """Return packets of clients, oldest first: of one opcode, from one shard, or all that are kept."""
        return [
            each
            for each in self._gateway.received
            if (op is None or each.op == op) and (shard is None or each.shard == shard)
        ]

    async def dispatch(self, event: str, data: Any, *, guild: str | None = None) -> int:
        """Send an event to the shard of its guild, or to shard 0. Return the number of sessions.

        The guild is `guild_id` in the data unless it is given. A session that is not connected receives the
        event when it resumes.
        """
        reached = self._gateway.dispatch(event, data, guild=guild)
        await asyncio.sleep(0)
        return reached

    async def say(self, content: str, *, guild: str) -> dict[str, Any]:
        """Let a member write a message. Return the message."""
        made = self.world.message(content, guild=guild)
        await self.dispatch("MESSAGE_CREATE", made)
        return made

    @property
    def commands(self) -> list[str]:
        """The names of the commands that the bot has registered."""
        return [each["name"] for each in chain.from_iterable(self._gateway.commands.values())]

    async def use_command(
        self, name: str, *, guild: str, options: Iterable[dict[str, Any]] = ()
    ) -> SimulatedInteraction:
        """Let a member use a command that the bot has registered. Return it; its `response` is to come."""
        known = chain.from_iterable(self._gateway.commands.values())
        used = next((each for each in known if each["name"] == name), None)
        if used is None:
            raise UsageError(f"the bot has no command {name!r}. Register it first: PUT …/commands.")
        made = interaction(self.world, used, guild, list(options))
        known_uses = self._gateway.interactions
        known_uses[made.id] = made
        if len(known_uses) > self.settings.remembered:
            del known_uses[next(iter(known_uses))]
        await self.dispatch("INTERACTION_CREATE", made.data)
        return made

    async def join_guild(self, *, members: int | None = None) -> str:
        """Add the bot to a new guild. Return its id."""
        created = self.world.new_guild(members or self.settings.members)
        await self.dispatch("GUILD_CREATE", created)
        return str(created["id"])

    async def leave_guild(self, guild: str) -> None:
        self.world.leave(guild)
        await self.dispatch("GUILD_DELETE", {"id": guild})

    async def play(self, events: Iterable[tuple[str, Any]], *, rate: float | None = None) -> int:
        """Dispatch events, `rate` per second or as fast as clients read. Return how many.

        A client that reads too slowly is waited for briefly; then its outbox overflows, and it is cut off.
        """
        started = time.monotonic()
        played = 0
        for played, (event, data) in enumerate(events, 1):
            self._gateway.dispatch(event, data)
            if rate is not None and (ahead := started + played / rate - time.monotonic()) > 0:
                await asyncio.sleep(ahead)
            elif played % _PLAYED_AT_ONCE == 0:
                await self._wait_for_readers()
        return played

    async def _wait_for_readers(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        await asyncio.sleep(0)
        while any(each.waiting > self.settings.outbox // 2 for each in self.connections):
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(0.001)

    def start_traffic(
        self, *, rate: float, count: int | None = None, mix: Mapping[str, float] | None = None
    ) -> asyncio.Task[int]:
        """Dispatch everyday events in the background, `count` or without end; `mix` overrides weights."""
        return self._start(self.play(self.world.events(count, mix=mix), rate=rate))

    async def close(self, shard: int, code: CloseCode) -> None:
        """Close the shard's connection with this code, after all waiting packets."""
        await self._end(self.connection(shard), lambda connection: self._gateway.hang_up(connection, code))

    async def cut(self, shard: int) -> None:
        """Abort the shard's TCP connection."""
        await self._end(self.connection(shard), self._gateway.cut)

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        """Cut off every client; those that reconnect wait until the block ends."""
        self._reachable.clear()
        try:
            for connection in self.connections:
                await self._end(connection, self._gateway.cut)
            yield
        finally:
            self._reachable.set()

    async def reconnect(self, shard: int) -> None:
        """Send op 7: the shard has to reconnect and resume."""
        self.connection(shard).send(Op.RECONNECT, None)

    async def invalidate(self, shard: int, *, resumable: bool) -> None:
        """Send op 9: the shard's session is invalid, or has to be resumed."""
        self._gateway.invalidate(self.connection(shard), resumable=resumable)

    async def request_heartbeat(self, shard: int) -> None:
        """Send op 1: the shard has to send a heartbeat at once."""
        self.connection(shard).send(Op.HEARTBEAT, None)

    def stop_acks(self, shard: int) -> None:
        """Do not acknowledge heartbeats of the shard's connection any more."""
        self.connection(shard).acks = False

    def connection(self, shard: int) -> SimulatedConnection:
        """Return the newest connection with a session of this shard. Raise UsageError if none has one."""
        for connection in reversed(self.connections):
            if connection.shard is not None and connection.shard.id == shard:
                return connection
        raise UsageError(f"no client is connected as shard {shard}. Wait with until() for one that is.")

    async def until(self, probe: Callable[[], T | None], what: str, *, seconds: float = 30.0) -> T:
        """Poll until `probe` returns something true, and return it. Raise AssertionError after `seconds`."""
        deadline = time.monotonic() + seconds
        while not (found := probe()):
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {seconds:g} s: {what}")
            await asyncio.sleep(0.005)
        return found

    async def _end(self, connection: SimulatedConnection, end: Callable[[SimulatedConnection], None]) -> None:
        end(connection)
        await self.until(lambda: connection not in self.connections, "the connection is gone")

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_WATCHED_EVERY)
            self._gateway.expire()

    def _start(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
