"""The process of a service: opened, run until it is stopped, and closed in reverse order."""

from __future__ import annotations

import asyncio
import logging
import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack

from starlette.routing import Route
from starlette.types import ASGIApp

from keywright import Secret
from keywright.tools.http import url_of
from keywright_service.health import Health, health_route, ready_route
from keywright_service.http import serving
from keywright_service.metrics import Metrics, metrics_route
from keywright_service.signals import stop_on_signals
from keywright_service.tasks import Runnable, running

__all__ = ["Service"]

log = logging.getLogger("keywright.service")


class Service(ABC):
    """One process. `run` it; `stop` ends it, as SIGTERM and SIGINT do.

    A subclass opens what it needs in `start`, on the stack that it is given: databases, a listening socket,
    `run_tasks`, `serve`. At the end all of it is closed in reverse order: what was started last ends first.
    """

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.address: tuple[str, int] | None = None
        """Host and port, once it listens; of the first listener, if there are several."""
        self.started = False
        """True from the end of the start until the stop."""

    def stop(self) -> None:
        """End cleanly: requests are answered and tasks under way finished, or cut off after a while."""
        self.stopping.set()

    async def run(self, *, handle_signals: bool = False) -> None:
        """Run until `stop`, or until a part fails for good, whose error is raised."""
        async with AsyncExitStack() as opened:
            if handle_signals:
                opened.enter_context(stop_on_signals(self.stop))
            await self.start(opened)
            self.started = True
            await self.stopping.wait()
        log.info("stopped")

    @abstractmethod
    async def start(self, opened: AsyncExitStack) -> None:
        """Open and start everything, on this stack."""

    def endpoints(
        self,
        metrics: Metrics,
        *,
        report: Callable[[], Awaitable[Health]],
        check: Callable[[], Awaitable[object]],
        health_token: Secret[str] | None = None,
        metrics_token: Secret[str] | None = None,
        metrics_path: str = "/metrics",
    ) -> list[Route]:
        """Return `/health`, which answers with `report`; `/ready`, which needs `check`; and the metrics."""
        return [
            health_route(report, token=health_token),
            ready_route(lambda: self.started and not self.stopping.is_set(), check),
            metrics_route(metrics, metrics_path, token=metrics_token),
        ]

    async def run_tasks(
        self, opened: AsyncExitStack, tasks: Iterable[Runnable], *, grace: float | None = 20.0
    ) -> None:
        """Run tasks until the service ends; None as `grace` waits for as long as the last run takes."""
        await opened.enter_async_context(running(tasks, on_failure=self.stop, grace=grace))

    async def serve(self, opened: AsyncExitStack, app: ASGIApp, bound: socket.socket) -> None:
        """Answer requests on a listening socket until the service ends."""
        answering = await opened.enter_async_context(serving(app, bound))
        answering.add_done_callback(lambda _: self.stop())
        host, port = bound.getsockname()[:2]
        self.address = self.address or (host, port)
        log.info("listening on %s", url_of(bound))
