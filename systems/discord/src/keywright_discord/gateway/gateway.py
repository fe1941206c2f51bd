"""A gateway process: opens its database and broker, runs its shards, and ends cleanly."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import msgspec
from starlette.applications import Starlette

from keywright import AsyncDatabase, aconnect
from keywright.tools.http import listening
from keywright_discord.event_cache import ALL_KINDS, EventCache
from keywright_discord.gateway.configuration import Configuration, check_ids
from keywright_discord.gateway.event_filter import EventFilter
from keywright_discord.gateway.limits import IDENTIFY_PAUSE, IdentifyTurns
from keywright_discord.gateway.metrics import Monitor
from keywright_discord.gateway.packets import SEND, SETTLE_SECONDS, SendRouter
from keywright_discord.gateway.protocol import Identity
from keywright_discord.gateway.schema import IdentifyTurn, gateway
from keywright_discord.gateway.session_starts import OPTIONS, SessionStarts, ask_gateway
from keywright_discord.gateway.sessions import HOLD, Tenancy
from keywright_discord.gateway.shard import Shard, ShardEnvironment
from keywright_discord.gateway.wire import Wire
from keywright_discord.interpreter import BotSession
from keywright_discord.layouts import LAYOUTS
from keywright_messaging import Broker, BrokerSettings, open_broker
from keywright_service.configuration import ConfigurationError, host_and_port
from keywright_service.discord_rest import DiscordRest, GatewayInfo
from keywright_service.health import Health
from keywright_service.service import Service
from keywright_service.waits import ended, unless

__all__ = ["Gateway", "bot_of"]

log = logging.getLogger("keywright.gateway")

# A packet may be delivered again at every reconnect; malformed ones become dead letters without attempts.
PACKET_ATTEMPTS = 1000


class Gateway(Service):
    """One process of a bot.

    When it ends, all received events are in the cache and with the broker, sessions stay resumable, and
    packets stay queued.
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        identify_pause: timedelta = IDENTIFY_PAUSE,
        hold: timedelta = HOLD,
    ) -> None:
        super().__init__()
        self.configuration = configuration
        self._identify_pause = identify_pause
        self._hold = hold
        self.monitor = Monitor()

    async def start(self, opened: AsyncExitStack) -> None:
        prepared = await unless(self.stopping, self._prepared(opened))
        if prepared is not None:
            await opened.enter_async_context(self._running(*prepared))

    async def _prepared(self, opened: AsyncExitStack) -> tuple[list[Shard], SendRouter]:
        chosen = self.configuration
        db, broker = await self._connected(opened)
        api = await opened.enter_async_context(DiscordRest(chosen.token, url=chosen.api.url, options=OPTIONS))
        info = await ask_gateway(api)
        starts = SessionStarts(lambda: ask_gateway(api), info)
        environment = self._environment(db, broker, info, starts)
        shards = self._shards(environment)
        await self._declare(broker, environment)
        await self._serve_endpoints(opened, db)
        return shards, SendRouter(broker, environment.shards, self.monitor)

    async def _connected(self, opened: AsyncExitStack) -> tuple[AsyncDatabase, Broker]:
        chosen = self.configuration
        url = chosen.redis.url
        if url is None:
            raise ConfigurationError("redis.url", "is missing", "Set REDIS_URL, or url below [redis].")
        layout = LAYOUTS.get(chosen.cache.layout)
        cache_bindings = layout.bind(chosen.cache.prefix) if layout else ()
        bindings = (gateway.bind(prefix=chosen.shard_store.prefix), *cache_bindings)
        db = await opened.enter_async_context(aconnect(url, *bindings))
        settings = BrokerSettings(
            group=chosen.broker.group,
            encoding=chosen.broker.encoding,
            claim_after=chosen.message_timeout,
            prefix=chosen.broker.prefix,
            quorum=chosen.broker.quorum,
            max_attempts=PACKET_ATTEMPTS,
        )
        broker = await open_broker(chosen.broker_url or url, settings)
        return db, await opened.enter_async_context(broker)

    def _environment(
        self, db: AsyncDatabase, broker: Broker, info: GatewayInfo, starts: SessionStarts
    ) -> ShardEnvironment:
        chosen = self.configuration
        bot = bot_of(chosen.token.reveal())
        concurrency = info.session_start_limit.max_concurrency
        turns = IdentifyTurns(db, bot, concurrency, starts.spend, pause=self._identify_pause)
        return ShardEnvironment(
            db=db,
            broker=broker,
            monitor=self.monitor,
            bot=bot,
            shards=chosen.shards.count or info.shards,
            url=chosen.gateway_url or info.url,
            identity=Identity(
                token=chosen.token,
                intents=chosen.intent_bits,
                presence=chosen.presence,
                large_threshold=chosen.connection.large_threshold,
            ),
            wanted=EventFilter(chosen.events),
            terms=terms_of(chosen),
            make_wire=self._make_wire,
            make_cache=self._make_cache,
            turn=turns.turn,
        )

    def _make_wire(self) -> Wire:
        connection = self.configuration.connection
        return Wire(connection.encoding, connection.compression, version=self.configuration.gateway_version)

    def _make_cache(self, session: BotSession) -> EventCache[Any] | None:
        layout = LAYOUTS.get(self.configuration.cache.layout)
        if layout is None:
            return None
        return layout.cache(session, ALL_KINDS - set(self.configuration.cache.without))

    def _shards(self, environment: ShardEnvironment) -> list[Shard]:
        ids = self.configuration.shards.ids
        check_ids(ids if ids is not None else [0], environment.shards)
        self.monitor.total_shards = environment.shards
        shards = [
            Shard(
                shard,
                environment,
                Tenancy(environment.db, environment.bot, shard, environment.shards, hold=self._hold),
            )
            for shard in sorted(ids if ids is not None else range(environment.shards))
        ]
        self.monitor.shards = lambda: [each.health() for each in shards]
        return shards

    async def _declare(self, broker: Broker, environment: ShardEnvironment) -> None:
        """Declare every queue, so that nothing is dropped before the first consumer comes."""
        await broker.declare(SEND, *map(str, range(environment.shards)))
        if not environment.wanted:
            log.warning(
                "DISCORD_EVENTS is empty: nothing is published. Name the events to publish, or * for all"
            )
        if names := list(environment.wanted):
            for subgroup in (None, *self.configuration.broker.subgroups):
                await broker.declare(*names, subgroup=subgroup)

    async def _serve_endpoints(self, opened: AsyncExitStack, db: AsyncDatabase) -> None:
        chosen = self.configuration.prometheus
        if chosen.address is None:
            return

        async def report() -> Health:
            return self.monitor.health()

        async def check() -> None:
            await db.run(IdentifyTurn(bot_of(self.configuration.token.reveal()), 0).holder())

        routes = self.endpoints(self.monitor, report=report, check=check, metrics_path=chosen.endpoint)
        app = Starlette(routes=routes)
        host, port = host_and_port("prometheus.address", chosen.address)
        remedy = "Set PROMETHEUS_ADDRESS to another address."
        await self.serve(opened, app, opened.enter_context(listening(host, port, remedy=remedy)))

    @asynccontextmanager
    async def _running(self, shards: list[Shard], router: SendRouter) -> AsyncIterator[None]:
        log.info("shards %s of %d", [each.id for each in shards], self.monitor.total_shards)
        running = [asyncio.create_task(each.run()) for each in shards]
        routing = asyncio.create_task(router.run())
        for task in (*running, routing):
            task.add_done_callback(lambda _: self.stop())
        try:
            yield
        finally:
            router.stop()
            for shard in shards:
                shard.stop()
            await ended(routing, within=SETTLE_SECONDS)
            await asyncio.wait(running)
        for task in (*running, routing):
            if not task.cancelled() and (error := task.exception()):
                raise error


def terms_of(configuration: Configuration) -> str:
    """Return a fingerprint of the settings of a session: with other settings it must not be resumed."""
    terms = (
        configuration.connection,
        configuration.intent_bits,
        configuration.gateway_version,
        configuration.presence,
        configuration.cache,
    )
    return hashlib.sha256(msgspec.json.encode(terms)).hexdigest()[:16]


def bot_of(token: str) -> str:
    """Return a name for the bot: its user id, with which Discord's tokens begin, else a fingerprint."""
    head = token.split(".", 1)[0]
    try:
        decoded = base64.urlsafe_b64decode(head + "=" * (-len(head) % 4))
    except (binascii.Error, ValueError):
        decoded = b""
    if decoded.isdigit() and 15 <= len(decoded) <= 20:
        return decoded.decode()
    return hashlib.sha256(token.encode()).hexdigest()[:16]
