"""An ASGI application on a loopback port: in a thread of its own, or in the event loop of the test."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from keywright.errors import UsageError
from keywright.testing import wait_until

__all__ = ["HttpServer"]


class HttpServer:
    """Serves on `url` until the end of the block.

    `with HttpServer(app) as server:` in a thread of its own, so that any test can talk to it;
    `async with HttpServer(app) as server:` in the event loop that enters it, which the application may share.
    """

    def __init__(self, app: ASGIApp, *, host: str = "127.0.0.1", port: int = 0) -> None:
        try:
            self._socket = socket.create_server((host, port))
        except (OSError, OverflowError) as exc:
            raise UsageError(f"cannot listen on {host}:{port}: {exc}. Choose another port.") from exc
        # asyncio sets it only on sockets that name their protocol; without it each answer waits 40 ms.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.host, self.port = self._socket.getsockname()[:2]
        self._server = _Server(app)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self._server.started or not self._thread.is_alive(), "a server that listens")
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.end()
        self._thread.join()
        self._socket.close()

    async def __aenter__(self) -> Self:
        self._serving = asyncio.create_task(self._server.serve([self._socket]))
        while not (self._server.started or self._serving.done()):  # noqa: ASYNC110  # it tells no other way
            await asyncio.sleep(0.001)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.end()
        await self._serving
        self._socket.close()

    def _serve(self) -> None:
        asyncio.run(self._server.serve([self._socket]))


class _Server(uvicorn.Server):
    """uvicorn that leaves signals to the program."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none"))

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def end(self) -> None:
        self.should_exit = True
        self.force_exit = True  # requests that a fault leaves without an answer would be waited for
