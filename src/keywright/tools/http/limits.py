"""Bounds on the connections of a server: how many there are, and how long a request may take to arrive.

uvicorn has no time limit for the head or the body of a request, and its `limit_concurrency` counts
connections that wait: a client that opens many and sends nothing shuts everybody out. Here a new connection
takes the place of the one that has waited longest for the rest of its request.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import h11
import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

if sys.platform != "win32":
    import resource

__all__ = ["BoundedProtocol", "BoundedState", "HttpLimits"]

MOST_CONNECTIONS = 512


def _affordable_connections() -> int:
    """Return a quarter of the file descriptors: as many are accepted at once, and other parts need some."""
    if sys.platform == "win32":
        return MOST_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if files == resource.RLIM_INFINITY else max(1, min(MOST_CONNECTIONS, files // 4))


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one server."""

    connections: int = msgspec.field(default_factory=_affordable_connections)
    head_seconds: float = 10.0
    """From the connection, or from the last answer on it, to the end of the headers."""
    body_seconds: float = 30.0
    """From the end of the headers to the end of the body."""


class BoundedState(ServerState):
    """The connections of a server, and which of them have not sent a whole request, oldest first."""

    def __init__(self, limits: HttpLimits) -> None:
        super().__init__()
        self.limits = limits
        self.unfinished: dict[BoundedProtocol, None] = {}

    def make_room(self) -> None:
        """Close the connection that has waited longest, if there are too many.

        While all others have sent whole requests, the newest stays, and uvicorn answers its request with 503.
        """
        if len(self.connections) > self.limits.connections and self.unfinished:
            next(iter(self.unfinished)).give_up()


class BoundedProtocol(H11Protocol):
    """One connection. It is closed if a request does not arrive in time; a late body is answered with 408."""

    def __init__(
        self,
        config: Config,
        server_state: BoundedState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._state = server_state
        self._awaited: object = None
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        self._state.make_room()
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def give_up(self) -> None:
        """Close the connection, whose request is not whole."""
        self._forget()
        if self.transport.is_closing():
            return
        in_body = self.conn.their_state is h11.SEND_BODY
        if in_body and self.conn.our_state is h11.SEND_RESPONSE:
            headers = [(b"connection", b"close"), (b"content-length", b"0")]
            late = h11.Response(status_code=408, headers=headers, reason=b"Request Timeout")
            self.transport.write(self.conn.send(late) or b"")
            self.cycle.disconnected = True  # nothing that the application sends may follow
        self.transport.close()

    def _watch(self) -> None:
        """Set the deadline for the next part of the request, unless it is that of before."""
        awaited = self.conn.their_state
        if awaited is self._awaited:
            return
        self._forget()
        self._awaited = awaited
        limits = self._state.limits
        seconds = {h11.IDLE: limits.head_seconds, h11.SEND_BODY: limits.body_seconds}.get(awaited)
        if seconds is not None and not self.transport.is_closing():
            self._state.unfinished[self] = None
            self._deadline = self.loop.call_later(seconds, self.give_up)

    def _forget(self) -> None:
        self._state.unfinished.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
