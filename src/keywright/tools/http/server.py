"""The one server for ASGI applications."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from keywright.tools.http.limits import BoundedProtocol, BoundedState, HttpLimits

__all__ = ["UvicornServer"]


class UvicornServer(uvicorn.Server):
    """uvicorn for one ASGI application, in an event loop of the program's: `await server.serve([bound])`.

    Signals are left to the program. Requests are not logged, because an address may contain a secret.
    `on_started` is called once requests are answered. `limits` bounds the connections and how long a request
    may take to arrive.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        lifespan: bool = False,
        proxy_headers: bool = True,
        grace_seconds: int = 10,
        limits: HttpLimits | None = None,
        on_started: Callable[[], None] | None = None,
    ) -> None:
        limits = limits or HttpLimits()
        super().__init__(
            uvicorn.Config(
                app,
                http=BoundedProtocol,
                log_config=None,
                access_log=False,
                lifespan="on" if lifespan else "off",
                ws="none",
                server_header=False,
                proxy_headers=proxy_headers,
                timeout_graceful_shutdown=grace_seconds,
                # One more than the limit: only where nobody is left who could make room.
                limit_concurrency=limits.connections + 1,
                backlog=limits.connections,  # which is also how many asyncio accepts at once
            )
        )
        self.server_state = BoundedState(limits)
        self._on_started = on_started

    def stop(self, *, at_once: bool = False) -> None:
        """End `serve`: after the requests under way, for which `grace_seconds` are left, or at once."""
        self.should_exit = True
        self.force_exit = at_once

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._on_started is not None:
            self._on_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
