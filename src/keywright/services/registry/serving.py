"""The process around the application: opens what it needs, listens, flushes, and ends without loss."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import timedelta

import msgspec
import uvicorn
from starlette.applications import Starlette

from keywright.engine import AsyncDatabase, aconnect
from keywright.errors import UsageError
from keywright.keyspace import Secret
from keywright.models.registry.cache import RepositoryCache
from keywright.models.registry.metadata import Metadata, open_metadata
from keywright.models.registry.registry import Registry
from keywright.models.registry.repository import Counts, Repository
from keywright.services.registry.app import LARGEST_BODY, registry_app
from keywright.services.registry.flusher import FLUSH_EVERY, ScheduledFlusher
from keywright.services.registry.monitoring import Monitor
from keywright.services.registry.schema import FlushTurn
from keywright.services.registry.totals import total

__all__ = ["RegistryService", "ServiceSettings"]

log = logging.getLogger("keywright.registry")

LOOPBACK = "127.0.0.1"
SHUTDOWN_SECONDS = 10


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where it listens, what it opens. No `redis` is REDIS_URL, else an embedded server."""

    host: str = LOOPBACK
    port: int = 8088
    token: Secret[str] | None = None
    redis: str | None = None
    database: str | None = None
    flush_every: timedelta = FLUSH_EVERY
    largest_body: int = LARGEST_BODY


class RegistryService:
    """One process of the service. `run` it; `stop` ends it, as SIGTERM and SIGINT do.

    Ending: requests under way are answered, then what is counted is moved to the database.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        _require_token(settings)
        self.settings = settings
        self.monitor = Monitor()
        self.address: tuple[str, int] | None = None
        """Host and port, once it listens."""
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self, *, handle_signals: bool = False) -> None:
        """Until it is told to stop."""
        async with AsyncExitStack() as opened:
            if handle_signals:
                opened.enter_context(_signals(self))
            listening = opened.enter_context(_listening(self.settings.host, self.settings.port))
            redis = await opened.enter_async_context(aconnect(self.settings.redis))
            metadata = await self._metadata(opened)
            app = await self._app(redis, metadata, opened)
            await self._serve(listening, app, self._flusher(redis, metadata))

    async def _metadata(self, opened: AsyncExitStack) -> Metadata | None:
        if self.settings.database is None:
            log.warning("there is no metadata database: counts stay in Redis")
            return None
        metadata = await open_metadata(self.settings.database)
        opened.push_async_callback(metadata.close)
        if taken := await metadata.migrate():
            log.info("migrated the metadata database: %s", ", ".join(taken))
        return metadata

    async def _app(
        self, redis: AsyncDatabase, metadata: Metadata | None, opened: AsyncExitStack
    ) -> Starlette:
        cache = RepositoryCache()
        registry = Registry(redis, metadata, cache=cache) if metadata else None
        if registry:
            opened.push_async_callback(registry.close)

        async def find(path: str) -> Repository | None:
            return await (registry.find(path) if registry else redis.run(cache.get(path)))

        async def totals(path: str) -> Counts:
            return await total(redis, metadata, path)

        async def check() -> None:
            await redis.run(FlushTurn().holder())
            if metadata:
                await metadata.counts("health")

        return registry_app(
            redis,
            find=find,
            totals=totals,
            check=check,
            monitor=self.monitor,
            token=self.settings.token,
            largest_body=self.settings.largest_body,
        )

    def _flusher(self, redis: AsyncDatabase, metadata: Metadata | None) -> ScheduledFlusher | None:
        if metadata is None:
            return None
        return ScheduledFlusher(redis, metadata, self.monitor, every=self.settings.flush_every)

    async def _serve(
        self, listening: socket.socket, app: Starlette, flusher: ScheduledFlusher | None
    ) -> None:
        server = _Server(app)
        flushing = asyncio.create_task(flusher.run()) if flusher else None
        serving = asyncio.create_task(server.serve([listening]))
        stopping = asyncio.create_task(self._stopping.wait())
        host, port = listening.getsockname()[:2]
        self.address = host, port
        log.info("listening on http://%s:%d", host, port)
        try:
            await asyncio.wait(
                [task for task in (serving, flushing, stopping) if task], return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            stopping.cancel()
            server.should_exit = True
            await serving
            # Only now: whatever was acknowledged is counted by then.
            if flusher and flushing:
                flusher.stop()
                await flushing
        log.info("stopped")


class _Server(uvicorn.Server):
    """uvicorn that leaves signals to the service."""

    def __init__(self, app: Starlette) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                server_header=False,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _require_token(settings: ServiceSettings) -> None:
    if settings.token is not None and not settings.token.reveal():
        raise UsageError("the token is empty. Set KEYWRIGHT_REGISTRY_TOKEN to a long random text.")
    if settings.token is None and not _is_loopback(settings.host):
        raise UsageError(
            f"{settings.host} can be reached from outside, and anybody could count there. "
            f"Set KEYWRIGHT_REGISTRY_TOKEN, or listen on {LOOPBACK}."
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise UsageError(f"{host}:{port} cannot be listened on: {error}. Choose another address.") from error
    with bound:
        # asyncio sets it only on sockets that name their protocol; without it each answer waits 40 ms.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield bound


class _signals:  # noqa: N801  # reads as the function it stands for
    """SIGTERM and SIGINT stop the service; the second one ends it at once."""

    def __init__(self, running: RegistryService) -> None:
        self._running = running

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)

    def __exit__(self, *exc: object) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    def _stop(self, number: signal.Signals) -> None:
        log.info("stopping: %s", number.name)
        self._running.stop()
        asyncio.get_running_loop().remove_signal_handler(number)
