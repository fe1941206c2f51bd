"""One shard of this process: waits for its lease, then connects, receives and sends while it holds it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from keywright import AsyncDatabase, Value
from keywright.errors import EngineError
from keywright_discord.cache_session import FilledBy
from keywright_discord.event_cache import EventCache
from keywright_discord.gateway.actions import Session
from keywright_discord.gateway.cache_watch import CacheWatch
from keywright_discord.gateway.connection import ShardConnection
from keywright_discord.gateway.event_filter import EventFilter
from keywright_discord.gateway.limits import Turn
from keywright_discord.gateway.metrics import Monitor, ShardHealth
from keywright_discord.gateway.packets import SETTLE_SECONDS, PacketSender
from keywright_discord.gateway.pipeline import Pipeline, Progress
from keywright_discord.gateway.protocol import Conversation, Identity
from keywright_discord.gateway.schema import SessionState
from keywright_discord.gateway.sessions import Tenancy, may_resume_at
from keywright_discord.gateway.wire import Wire
from keywright_discord.interpreter import BotSession
from keywright_messaging import Broker
from keywright_service.backoff import retry
from keywright_service.waits import ended, unless

__all__ = ["Shard", "ShardEnvironment"]

log = logging.getLogger("keywright.gateway")

DRAIN_SECONDS = 30.0


class ShardEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that the shards of a process share."""

    db: AsyncDatabase
    broker: Broker
    monitor: Monitor
    bot: str
    shards: int
    url: str
    identity: Identity
    wanted: EventFilter
    terms: str
    make_wire: Callable[[], Wire]
    make_cache: Callable[[BotSession], EventCache[Any] | None]
    mark: Callable[[int, int], Value[FilledBy]] | None
    turn: Callable[[int], Awaitable[Turn]]


class Shard:
    """Runs one shard. `stop` ends it cleanly: all received events are safe, the session is resumable."""

    def __init__(self, shard: int, environment: ShardEnvironment, tenancy: Tenancy) -> None:
        self.id = shard
        self._environment = environment
        self._tenancy = tenancy
        self._stopping = asyncio.Event()
        self._tenure: _Tenure | None = None
        mark = None if environment.mark is None else environment.mark(environment.shards, shard)
        self._watch = CacheWatch(environment.db, environment.bot, shard, environment.shards, mark)

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        """Run the shard until `stop`. Raise RefusedByDiscordError if Discord refuses it."""
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
        state = await self._tenancy.load()
        if state is not None and (reason := await self._needs_session(state.id)):
            self._watch.refill(reason)
            log.warning("shard %d: %s; a new session fills the cache", self.id, reason)
            state = None
        return _Tenure(self.id, self._environment, self._tenancy, self._watch, state)

    async def _needs_session(self, session: str) -> str | None:
        return await retry(
            lambda: self._watch.needs_session(session),
            f"read the mark of the cache for shard {self.id}",
            on=EngineError,
        )

    async def _give_up(self) -> None:
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                await self._tenancy.end()
        except (EngineError, TimeoutError) as error:
            reason = str(error) or "Redis does not answer"
            log.warning("the lease of shard %d was not released and will expire: %s", self.id, reason)

    def health(self) -> ShardHealth:
        if self._tenure is None:
            return ShardHealth(self.id, "standby" if self._tenancy.elsewhere else "starting", 0)
        conversation = self._tenure.conversation
        latency = None if conversation.latency is None else round(conversation.latency * 1000, 1)
        return ShardHealth(
            self.id,
            conversation.phase.value,
            self._tenure.pipeline.backlog,
            latency,
            refills=self._watch.refills,
            refill_reason=self._watch.last_reason,
            trouble=self._watch.trouble,
        )


class _Tenure:
    """The work of one shard for as long as this process holds its lease."""

    def __init__(
        self,
        shard: int,
        environment: ShardEnvironment,
        tenancy: Tenancy,
        watch: CacheWatch,
        state: SessionState | None,
    ) -> None:
        self.shard = shard
        self._environment = environment
        self._tenancy = tenancy
        self._watch = watch
        known = state if state is not None and state.terms == environment.terms else None
        if known is not None and not may_resume_at(known.url, environment.url):
            log.warning(
                "shard %d: the stored resume address is not one of the gateway or of Discord, so the token "
                "is not sent there; starting a new session. Check which programs can write to this Redis.",
                shard,
            )
            known = None
        session = Session(known.id, known.url) if known else None
        self._bot_session = BotSession(known.bot if known else None, shard, environment.shards)
        self.pipeline = Pipeline(
            tenancy,
            environment.make_cache(self._bot_session),
            environment.db,
            environment.broker,
            environment.wanted,
            self._save,
            environment.monitor,
            watch,
            session,
        )
        self.conversation = Conversation(
            shard,
            environment.shards,
            environment.identity,
            environment.url,
            session=session,
            sequence=known.sequence if known else None,
        )
        self._connection = ShardConnection(
            self.conversation, self.pipeline, environment.make_wire, environment.turn, environment.monitor
        )
        self._sender = PacketSender(environment.broker, shard, self._connection, environment.monitor)

    async def run(self, stopping: asyncio.Event) -> None:
        """Run until `stopping` is set or another process takes over. Raise the error of any task."""
        pipeline = asyncio.create_task(self.pipeline.run())
        holding = asyncio.create_task(self._tenancy.keep())
        talking = asyncio.create_task(self._connection.run())
        sending = asyncio.create_task(self._sender.run())
        watching = asyncio.create_task(self._watch_cache())
        waiting = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait(
                [pipeline, holding, talking, sending, watching, waiting], return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            waiting.cancel()
            await ended(watching, within=0)
            self._sender.stop()
            await ended(sending, within=SETTLE_SECONDS)
            await self._connection.stop()
            await asyncio.wait([talking])
            await self._finish(pipeline, holding)
            await ended(holding, within=0)
        for task in (talking, pipeline, sending, holding, watching):
            if not task.cancelled() and (error := task.exception()):
                raise error

    async def _watch_cache(self) -> None:
        """Begin a new session when the cache is no longer the one that this session fills."""
        while True:
            await asyncio.sleep(self._tenancy.renew_seconds)
            session = self.pipeline.filling
            if session is None:
                continue
            known_trouble = self._watch.trouble
            try:
                reason = await self._watch.needs_session(session)
            except EngineError:
                continue  # an outage, which the renewal of the lease reports
            if self._watch.trouble and not known_trouble:
                log.error("shard %d: the cache is not reliable: %s", self.shard, self._watch.trouble)
            if not reason:
                continue
            self._tenancy.doubt()  # the lease may be lost with the cache, and another process may fill it
            await self._tenancy.assured()
            if session == self.pipeline.filling and await self._connection.begin_again(reason):
                self.pipeline.filling = None
                self._watch.refill(reason)
                log.warning("shard %d: %s; a new session fills the cache", self.shard, reason)

    async def _finish(self, pipeline: asyncio.Task[None], holding: asyncio.Task[None]) -> None:
        """Finish the pipeline, for as long as this process holds the lease."""
        if not holding.done():
            self.pipeline.close()
            await asyncio.wait(
                [pipeline, holding], timeout=DRAIN_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        if holding.done():
            # The process that took over receives these events too, and in order.
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
            self._environment.terms,
            self._bot_session.bot,
        )
        await retry(
            lambda: self._tenancy.save(state), f"store the sequence of shard {self.shard}", on=EngineError
        )
