"""A shard's websocket: performs the actions of the conversation, and reports events to it.

Two tasks share the socket. One reads, and stops reading while the pipeline is full; the other keeps the time,
so heartbeats go on meanwhile. Packets of workers are sent by another task through `send`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import monotonic

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.protocol import State

from keywright.errors import EngineError, UsageError
from keywright_discord.gateway.actions import Close, Connect, Dispatch, Output, Stop, Transmit
from keywright_discord.gateway.close_codes import RESUMABLE
from keywright_discord.gateway.limits import SendBudget, Turn
from keywright_discord.gateway.metrics import Monitor
from keywright_discord.gateway.opcodes import Op
from keywright_discord.gateway.pipeline import Pipeline
from keywright_discord.gateway.protocol import Conversation
from keywright_discord.gateway.requests import PendingRequests
from keywright_discord.gateway.wire import MOST_BYTES, Wire, WireError
from keywright_service.backoff import retry
from keywright_service.waits import first_of, unless

__all__ = ["RefusedByDiscordError", "ShardConnection"]

log = logging.getLogger("keywright.gateway")
# At DEBUG the library logs frames, and the token is in one of them.
socket_log = logging.getLogger("keywright.gateway.socket")
socket_log.setLevel(logging.WARNING)

OPEN_SECONDS = 15.0
CLOSE_SECONDS = 3.0
IDLE_SECONDS = 3600.0


class RefusedByDiscordError(UsageError):
    """Discord does not accept the bot as it is configured; a retry cannot help."""

    def __init__(self, subject: str, code: int, reason: str) -> None:
        self.subject = subject
        self.code = code
        self.reason = reason
        super().__init__(f"Discord refused {subject} ({code}): {reason}")


class ShardConnection:
    """Keeps one shard connected until it is stopped, or Discord refuses it for good."""

    def __init__(
        self,
        conversation: Conversation,
        pipeline: Pipeline,
        make_wire: Callable[[], Wire],
        turn: Callable[[int], Awaitable[Turn]],
        monitor: Monitor,
    ) -> None:
        self.conversation = conversation
        self.is_ready = asyncio.Event()
        self.is_down = asyncio.Event()
        self.is_down.set()
        self._shard = conversation.shard
        self._pipeline = pipeline
        self._make_wire = make_wire
        self._turn_of = turn
        self._turn: Turn | None = None
        self._monitor = monitor
        self._wire = make_wire()
        self._budget = SendBudget()
        self.requests = PendingRequests()
        self._socket: ClientConnection | None = None
        self._stirred = asyncio.Event()
        self._stopping = asyncio.Event()
        self._latency: float | None = None

    async def run(self) -> None:
        """Connect and reconnect until `stop`. Raise RefusedByDiscordError if Discord refuses the shard."""
        while not self._stopping.is_set():
            await self._rest()
            for output in self.conversation.ticked(monotonic()):
                if isinstance(output, Connect):
                    code = await self._connected(output)
                    await self._give_turn_back()
                    self._monitor.closed(self._shard, code)
                    self._finish(self.conversation.closed(code, monotonic()))

    async def stop(self) -> None:
        """Close the connection so that the session can be resumed; `run` returns."""
        self._stopping.set()
        await self._perform(self.conversation.stop())

    async def begin_again(self, reason: str) -> bool:
        """Replace the session by a new one. Return False if that is not possible now."""
        outputs = self.conversation.begin_again(reason)
        if outputs is None:
            return False
        await self._perform(outputs)
        return True

    async def allowance(self, op: int) -> None:
        """Wait until the limits allow a worker's packet."""
        while (wait := self._budget.wait(op, monotonic())) > 0:  # noqa: ASYNC110  # time, not an event
            await asyncio.sleep(wait)

    async def send(self, frame: str | bytes, op: int) -> None:
        """Send a worker's packet. Raise ConnectionClosed if it was not sent."""
        socket = self._socket
        if socket is None or not self.conversation.ready:
            raise ConnectionClosed(None, None)
        self._budget.spend(op, monotonic())
        try:
            await socket.send(frame)
        except ConnectionClosed:
            self._note_phase()  # the reading task may be waiting for room, and has not noticed yet
            raise
        self._monitor.sent(self._shard, op)

    def frame(self, op: int, d: object) -> str | bytes:
        """Return a packet in the encoding of this shard's connections."""
        return self._wire.write(op, d)

    async def _rest(self) -> None:
        due = self.conversation.due
        pause = 0.0 if due is None else due - monotonic()
        if pause > 0:
            await unless(self._stopping, asyncio.sleep(pause))

    async def _connected(self, wanted: Connect) -> int | None:
        """Run one connection until it ends. Return its close code, or None if it had none."""
        self._wire = self._make_wire()
        if not wanted.resuming:
            self._turn = await unless(
                self._stopping,
                retry(lambda: self._turn_of(self._shard), "wait for a turn to identify", on=EngineError),
            )
        try:
            log.info("shard %d: %s", self._shard, "resuming" if wanted.resuming else "connecting")
            socket = await unless(self._stopping, self._open(wanted.url))
            return None if socket is None else await self._converse(socket)
        except (OSError, WebSocketException) as error:
            log.warning("shard %d: cannot connect: %s", self._shard, error)
            return None

    async def _open(self, url: str) -> ClientConnection:
        return await connect(
            self._wire.address(url),
            open_timeout=OPEN_SECONDS,
            close_timeout=CLOSE_SECONDS,
            ping_interval=None,
            compression=None,
            max_size=MOST_BYTES,
            logger=socket_log,
        )

    async def _give_turn_back(self) -> None:
        if self._turn is not None:
            turn, self._turn = self._turn, None
            await turn.give_back()

    async def _converse(self, socket: ClientConnection) -> int | None:
        if self._stopping.is_set():
            await socket.close(RESUMABLE)
            return None
        self._socket = socket
        self._budget = SendBudget()
        self.conversation.opened(monotonic())
        clock = asyncio.create_task(self._keep_time())
        try:
            await self._read(socket)
        finally:
            self._socket = None
            self._note_phase()
            clock.cancel()
            await asyncio.wait([clock])
            await socket.close(RESUMABLE)
        if not clock.cancelled():
            clock.result()  # raises its error
        log.info("shard %d: closed with %s %s", self._shard, socket.close_code, socket.close_reason or "")
        return socket.close_code

    async def _read(self, socket: ClientConnection) -> None:
        conversation, monitor, shard = self.conversation, self._monitor, self._shard
        try:
            async for message in socket:
                payload = self._wire.read(message)
                if payload is None:
                    continue
                monitor.received(shard, payload.op, payload.t)
                await self._perform(conversation.received(payload, monotonic()))
                if payload.op != Op.DISPATCH or not self.is_ready.is_set():
                    self._note_phase()
                if self._pipeline.full:
                    await self._wait_for_room()
        except WireError as error:
            log.error("shard %d: %s", shard, error)
            await self._perform(conversation.give_up("unreadable"))
        except ConnectionClosed:
            return

    async def _wait_for_room(self) -> None:
        self.conversation.deafen()
        await unless(self._stopping, self._pipeline.room())
        self.conversation.listen()

    async def _keep_time(self) -> None:
        while True:
            due = self.conversation.due
            pause = IDLE_SECONDS if due is None else max(0.0, due - monotonic())
            self._stirred.clear()
            await first_of(self._stirred.wait(), asyncio.sleep(pause))
            try:
                await self._perform(self.conversation.ticked(monotonic()))
            except ConnectionClosed:
                return

    async def _perform(self, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, Dispatch):
                self.requests.heard(output)
                self._pipeline.add(output)
            elif isinstance(output, Transmit):
                await self._transmit(output)
            elif isinstance(output, Close):
                self._note_phase()
                log.info("shard %d: closing: %s", self._shard, output.reason)
                if self._socket is not None:
                    await self._socket.close(output.code, output.reason)

    async def _transmit(self, output: Transmit) -> None:
        if self._socket is None:
            return
        self._budget.spend(output.op, monotonic())
        await self._socket.send(self._wire.write(output.op, output.d))
        self._monitor.sent(self._shard, output.op)
        if output.op is Op.IDENTIFY and self._turn is not None:
            await self._turn.taken()

    def _note_phase(self) -> None:
        """Publish whether packets can be sent, and wake the clock."""
        self._stirred.set()
        conversation = self.conversation
        if conversation.latency is not None and conversation.latency != self._latency:
            self._latency = conversation.latency
            self._monitor.ping(self._shard, conversation.latency)
        if conversation.ready and self._socket is not None and self._socket.state is State.OPEN:
            if not self.is_ready.is_set():
                log.info("shard %d: ready", self._shard)
            self.is_down.clear()
            self.is_ready.set()
        else:
            self.is_ready.clear()
            self.is_down.set()

    def _finish(self, outputs: list[Output]) -> None:
        self._note_phase()
        for output in outputs:
            if isinstance(output, Stop):
                raise RefusedByDiscordError(f"shard {self._shard}", output.code, output.reason)
