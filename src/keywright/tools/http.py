"""HTTP serving: loopback addresses, listening sockets, the one server for ASGI applications, and signals.

Needs uvicorn and starlette, which `keywright[explorer]` and `keywright-service` install.
"""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from keywright.errors import UsageError

__all__ = ["LOOPBACK", "STOP_SIGNALS", "UvicornServer", "is_loopback", "listening", "on_signals", "url_of"]

LOOPBACK = "127.0.0.1"
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

OnSignal = Callable[[signal.Signals], object]


def is_loopback(host: str) -> bool:
    """Return whether a name or address means this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def listening(host: str, port: int, *, remedy: str) -> Iterator[socket.socket]:
    """Yield a socket that accepts connections until the end of the block. Port 0 takes a free port.

    Raise UsageError with the remedy if the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise UsageError(f"{host}:{port} cannot be listened on: {error}. {remedy}") from error
    with bound:
        # asyncio sets it only on sockets that name their protocol; without it each answer waits 40 ms.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield bound


def url_of(bound: socket.socket) -> str:
    """Return the address of a listening socket as a URL."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class UvicornServer(uvicorn.Server):
    """uvicorn for one ASGI application, in an event loop of the program's: `await server.serve([bound])`.

    Signals are left to the program. Requests are not logged, because an address may contain a secret.
    `on_started` is called once requests are answered.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        lifespan: bool = False,
        proxy_headers: bool = True,
        grace_seconds: int = 10,
        on_started: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="on" if lifespan else "off",
                ws="none",
                server_header=False,
                proxy_headers=proxy_headers,
                timeout_graceful_shutdown=grace_seconds,
            )
        )
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


@contextmanager
def on_signals(
    first: OnSignal, again: OnSignal | None = None, *, signals: Sequence[signal.Signals] = STOP_SIGNALS
) -> Iterator[None]:
    """Within the block, call `first` for the first of these signals, and `again` for every later one.

    Without `again` later signals have their default action: they end the process. In another thread than the
    main one, where Python cannot handle signals, do nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def receive(number: signal.Signals) -> None:
        for each in signals:
            if again is None:
                loop.remove_signal_handler(each)
            else:
                loop.add_signal_handler(each, again, each)
        first(number)

    for number in signals:
        loop.add_signal_handler(number, receive, number)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
