"""What a service is as a process: HTTP in its own event loop, and an end when it is told to."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec
import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp

__all__ = ["json_response", "serving", "stopped_by_signals"]

SHUTDOWN_SECONDS = 10


@asynccontextmanager
async def serving(app: ASGIApp, listening: socket.socket) -> AsyncIterator[asyncio.Task[None]]:
    """Answer requests until the end of the block; yields the task that does it, which may only fail before.

    Requests that are under way at the end are answered, or cut off after a while.
    """
    server = _Server(app)
    answering = asyncio.create_task(server.serve([listening]))
    try:
        yield answering
    finally:
        server.should_exit = True
        await answering


@contextmanager
def stopped_by_signals(stop: Callable[[], None], log: logging.Logger) -> Iterator[None]:
    """Within the block SIGTERM and SIGINT stop the service; the second one ends it at once."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def told(number: signal.Signals) -> None:
        log.info("stopping: %s", number.name)
        stop()
        ignore()

    def ignore() -> None:
        for each in numbers:
            loop.remove_signal_handler(each)

    for number in numbers:
        loop.add_signal_handler(number, told, number)
    try:
        yield
    finally:
        ignore()


def json_response(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(data), status, headers, media_type="application/json")


class _Server(uvicorn.Server):
    """uvicorn that leaves signals to the service."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,  # addresses may hold what is secret
                lifespan="off",
                ws="none",
                server_header=False,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
