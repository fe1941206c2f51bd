"""Faults of a simulated HTTP API, which a test injects, and a record of the requests that it got."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keywright_service.testing.http_server import HttpServer

__all__ = ["Answered", "Fault", "FaultyApp", "FaultyServer"]


class Answered(NamedTuple):
    """A request that was made, and the status it was answered with."""

    method: str
    path: str
    status: int

    @property
    def reads(self) -> bool:
        return self.method in ("GET", "HEAD")


@dataclass
class Fault:
    """What happens to the next requests that match."""

    path: str
    method: str | None = None
    status: int | None = 500
    """None: the request is never answered. 0: it is answered as if there were no fault."""
    times: int = 1
    done: bool = False
    """Whether the request is carried out, and only its answer is lost."""
    seconds: float = 0.0
    """How long the answer takes."""
    body: str | bytes = "<html><body>the servers are busy</body></html>"
    """As the servers in front of an API answer: not in JSON."""
    headers: Mapping[str, str] = field(default_factory=dict)

    def matches(self, scope: Scope) -> bool:
        return self.path in scope["path"] and self.method in (None, scope["method"])


class FaultyApp:
    """An ASGI application that injects faults in front of another, and records the requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._faults: list[Fault] = []
        self._outage: Fault | None = None
        self._limited_until = 0.0
        self.answered: list[Answered] = []

    def fail(self, path: str, status: int | None = 500, **settings: Any) -> None:
        """Make the next requests whose path contains this fail; the settings are those of a Fault."""
        self._faults.append(Fault(path, status=status, **settings))

    def slow(self, path: str, seconds: float, *, times: int = 1) -> None:
        """Delay the next requests whose path contains this; they are carried out and answered."""
        self._faults.append(Fault(path, status=0, times=times, seconds=seconds))

    @contextmanager
    def outage(self, status: int | None = 503) -> Iterator[None]:
        """Answer every request with this status, and carry none out."""
        self._outage = Fault("", status=status)
        try:
            yield
        finally:
            self._outage = None

    def rate_limit(self, seconds: float) -> None:
        """Answer every request with 429 and a Retry-After for this time."""
        self._limited_until = time.monotonic() + seconds

    def clear(self) -> None:
        """Remove every fault, an outage too."""
        self._faults.clear()
        self._outage = None
        self._limited_until = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = self._outage or self._rate_limit() or self._next(scope)
        if fault is None:
            await self._app(scope, receive, self._noting(scope, send))
            return
        if fault.seconds:
            await asyncio.sleep(fault.seconds)
        if fault.status == 0:
            await self._app(scope, receive, self._noting(scope, send))
            return
        if fault.done:
            await self._app(scope, receive, _unheard)
        if fault.status is None:
            self.answered.append(Answered(scope["method"], scope["path"], 0))
            await _until_left(receive)
            return
        response = Response(fault.body, fault.status, dict(fault.headers))
        await response(scope, receive, self._noting(scope, send))

    def _rate_limit(self) -> Fault | None:
        left = self._limited_until - time.monotonic()
        return Fault("", status=429, headers={"Retry-After": str(int(left) + 1)}) if left > 0 else None

    def _next(self, scope: Scope) -> Fault | None:
        for fault in self._faults:
            if fault.matches(scope):
                fault.times -= 1
                if not fault.times:
                    self._faults.remove(fault)
                return fault
        return None

    def _noting(self, scope: Scope, send: Send) -> Send:
        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.answered.append(Answered(scope["method"], scope["path"], message["status"]))
            await send(message)

        return noted


class FaultyServer:
    """An application behind faults, on its own port; `with` it."""

    def __init__(self, app: ASGIApp, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.faults = FaultyApp(app)
        self._server = HttpServer(self.faults, host=host, port=port)

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.__exit__(*exc)

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def answered(self) -> list[Answered]:
        """Every request since the start, oldest first."""
        return self.faults.answered


async def _unheard(message: Message) -> None:
    return None


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
