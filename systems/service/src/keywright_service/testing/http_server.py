"""An ASGI application on a loopback port: in its own thread, or in the event loop of the test."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from typing import Self

from starlette.types import ASGIApp

from keywright.testing import wait_until
from keywright.tools.http import UvicornServer, listening, url_of

__all__ = ["HttpServer"]


class HttpServer:
    """Serves on `url` until the end of the block. Raise UsageError if the address cannot be listened on.

    `with HttpServer(app) as server:` in its own thread, so that any test can talk to it;
    `async with HttpServer(app) as server:` in the event loop that enters it, which the application may share.
    At the end of the block requests under way are cut off: those that a fault leaves without an answer would
    be waited for.
    """

    def __init__(self, app: ASGIApp, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._opened = ExitStack()
        self._socket = self._opened.enter_context(listening(host, port, remedy="Choose another port."))
        self.host, self.port = self._socket.getsockname()[:2]
        self.url = url_of(self._socket)
        self._server = UvicornServer(app)
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._server.serve([self._socket])), daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self._server.started or not self._thread.is_alive(), "a server that listens")
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.stop(at_once=True)
        self._thread.join()
        self._opened.close()

    async def __aenter__(self) -> Self:
        self._serving = asyncio.create_task(self._server.serve([self._socket]))
        while not (self._server.started or self._serving.done()):  # noqa: ASYNC110  # uvicorn has no event for it
            await asyncio.sleep(0.001)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.stop(at_once=True)
        await self._serving
        self._opened.close()
