"""The explorer as a process: opens the database, listens, and ends when it is told to."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import uvicorn

from keywright.engine import Retry, Settings, aconnect
from keywright.explorer.app import create_app
from keywright.explorer.settings import ExplorerSettings
from keywright.keyspace import Binding, Keyspace
from keywright.tools.http import listening

__all__ = ["serve"]

# A person waits for the page: better an error page soon than an answer late.
PATIENCE = Settings(timeout_seconds=5.0, connect_seconds=2.0, retry=Retry(attempts=3))
SHUTDOWN_SECONDS = 2
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def serve(
    spaces: Sequence[Keyspace],
    settings: ExplorerSettings | None = None,
    *,
    url: str | None = None,
    bindings: Sequence[Binding] = (),
    on_listening: Callable[[str], None] | None = None,
) -> None:
    """Explore a database until SIGINT or SIGTERM; `on_listening` gets the address once pages can be opened.

    No `url` is REDIS_URL, else an embedded server. UsageError when it cannot listen, EngineError when the
    server cannot be reached at the start; one that goes away later is waited for.
    """
    settings = settings or ExplorerSettings()
    settings.check()
    with listening(settings.host, settings.port, remedy="Choose another --port.") as bound:
        async with aconnect(url, *bindings, settings=PATIENCE) as db:
            app = create_app(db, spaces, settings)
            server = _Server(
                uvicorn.Config(
                    app,
                    log_config=None,
                    access_log=False,
                    lifespan="on",
                    ws="none",
                    server_header=False,
                    proxy_headers=False,
                    timeout_graceful_shutdown=SHUTDOWN_SECONDS,
                )
            )
            if on_listening is not None:
                server.on_started = lambda: on_listening(_address(bound))
            await server.serve([bound])


class _Server(uvicorn.Server):
    """uvicorn that says when it has started, and for which SIGINT and SIGTERM are a good end."""

    on_started: Callable[[], None] | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self.on_started is not None:
            self.on_started()


def _address(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
