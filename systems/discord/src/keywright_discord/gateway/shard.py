"""One shard of this process: waits until it is ours, then connects, receives and sends while it is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from keywright import AsyncDatabase
from keywright.errors import EngineError
from keywright_discord.event_cache import EventCache
from keywright_discord.gateway.actions import Session
from keywright_discord.gateway.connection import Connection
from keywright_discord.gateway.event_filter import Wanted
from keywright_discord.gateway.limits import Turn
from keywright_discord.gateway.metrics import Monitor, ShardHealth
from keywright_discord.gateway.packets import SETTLE_SECONDS, PacketSender
from keywright_discord.gateway.pipeline import Pipeline, Progress
from keywright_discord.gateway.protocol import Conversation, Identity
from keywright_discord.gateway.schema import SessionState
from keywright_discord.gateway.sessions import Tenancy
from keywright_discord.gateway.wire import Wire
from keywright_discord.interpreter import BotSession
from keywright_messaging import Broker
from keywright_service.backoff import retry
from keywright_service.waits import ended, unless

__all__ = ["Shard", "Surroundings"]

log = logging.getLogger("keywright.gateway")

DRAIN_SECONDS = 30.0


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What the shards of a process share."""

    db: AsyncDatabase
    broker: Broker
    monitor: Monitor
    bot: str
    shards: int
    url: str
    identity: Identity
    wanted: Wanted
    terms: str
    make_wire: Callable[[], Wire]
    make_cache: Callable[[BotSession], EventCache[Any] | None]
    turn: Callable[[int], Awaitable[Turn]]


class Shard:
    """Run it; `stop` ends it cleanly, all that was received being safe and the session resumable."""

    def __init__(self, shard: int, around: Surroundings, tenancy: Tenancy) -> None:
        self.id = shard
        self._around = around
        self._tenancy = tenancy
        self._stopping = asyncio.Event()
        self._tenure: _Tenure | None = None

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        """Raises RefusedByDiscordError."""
        try:
            while not self._stopping.is_set():
                self._tenure = await unless(self._stopping, self._begun())
                if self._tenure is not None:
                    await self._tenure.run(self._stopping)
                self._tenure = None
        finally:
            await self._give_up()

    async def _begun(self) -> _Tenure:
        await self._tenancy.begin()
        return _Tenure(self.id, self._around, self._tenancy, await self._tenancy.load())

    async def _give_up(self) -> None:
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                await self._tenancy.end()
        except (EngineError, TimeoutError) as error:
            log.warning("shard %d is not given up, it runs out: %s", self.id, str(error) or "Redis is silent")

    def health(self) -> ShardHealth:
        if self._tenure is None:
            return ShardHealth(self.id, "standby" if self._tenancy.elsewhere else "starting", 0)
        conversation = self._tenure.conversation
        latency = None if conversation.latency is None else round(conversation.latency * 1000, 1)
        return ShardHealth(self.id, conversation.phase.value, self._tenure.pipeline.backlog, latency)


class _Tenure:
    """The time during which this process runs a shard."""

    def __init__(
        self,
        shard: int,
        around: Surroundings,
        tenancy: Tenancy,
        state: SessionState | None,
    ) -> None:
        self.shard = shard
        self._around = around
        self._tenancy = tenancy
        known = state if state is not None and state.terms == around.terms else None
        session = Session(known.id, known.url) if known else None
        self._viewpoint = BotSession(known.bot if known else None, shard, around.shards)
        self.pipeline = Pipeline(
            tenancy,
            around.make_cache(self._viewpoint),
            around.db,
            around.broker,
            around.wanted,
            self._save,
            around.monitor,
            session,
        )
        self.conversation = Conversation(
            shard,
            around.shards,
            around.identity,
            around.url,
            session=session,
            sequence=known.sequence if known else None,
        )
        self._connection = Connection(
            self.conversation, self.pipeline, around.make_wire, around.turn, around.monitor
        )
        self._sender = PacketSender(around.broker, shard, self._connection, around.monitor)

    async def run(self, stopping: asyncio.Event) -> None:
        """Until it is time to stop, the shard is another's, or something is wrong, which is raised."""
        pipeline = asyncio.create_task(self.pipeline.run())
        holding = asyncio.create_task(self._tenancy.keep())
        talking = asyncio.create_task(self._connection.run())
        sending = asyncio.create_task(self._sender.run())
        waiting = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait(
                [pipeline, holding, talking, sending, waiting], return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            waiting.cancel()
            self._sender.stop()
            await ended(sending, within=SETTLE_SECONDS)
            await self._connection.stop()
            await asyncio.wait([talking])
            await self._finish(pipeline, holding)
            await ended(holding, within=0)
        for task in (talking, pipeline, sending, holding):
            if not task.cancelled() and (error := task.exception()):
                raise error

    async def _finish(self, pipeline: asyncio.Task[None], holding: asyncio.Task[None]) -> None:
        """Make what was received safe, for as long as the shard is ours."""
        if not holding.done():
            self.pipeline.close()
            await asyncio.wait(
                [pipeline, holding], timeout=DRAIN_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        if holding.done():
            # The process that has the shard now receives these events too, and in order.
            log.warning("shard %d is run by another process now", self.shard)
        elif not pipeline.done():
            log.error(
                "shard %d: %d events are not safe; a restart receives them again",
                self.shard,
                self.pipeline.backlog,
            )
        await ended(pipeline, within=0)

    async def _save(self, progress: Progress) -> None:
        state = SessionState(
            progress.session.id,
            progress.session.url,
            progress.sequence,
            self._around.terms,
            self._viewpoint.bot,
        )
        await retry(
            lambda: self._tenancy.save(state), f"store the sequence of shard {self.shard}", on=EngineError
        )
