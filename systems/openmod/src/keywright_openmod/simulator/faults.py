"""Faults of the simulated Reddit that a test injects."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

__all__ = ["Faults", "ScriptedFault"]


@dataclass
class ScriptedFault:
    """A fault of the next requests to a path."""

    path: str
    status: int | None
    """None: no reply is ever sent."""
    times: int
    done: bool
    """Whether the request is performed, and only the reply is lost."""


class Faults:
    """Outages, rate limits and lost replies. None at first."""

    def __init__(self) -> None:
        self._outage: int | None = None
        self._limited_until = 0.0
        self._scripted: list[ScriptedFault] = []

    @contextmanager
    def outage(self, status: int = 503) -> Iterator[None]:
        """Reply to every request with this status."""
        self._outage = status
        try:
            yield
        finally:
            self._outage = None

    def rate_limit(self, seconds: float) -> None:
        """Reply with 429 and a Retry-After for this time."""
        self._limited_until = time.monotonic() + seconds

    def fail(self, path: str, status: int | None = 500, *, times: int = 1, done: bool = False) -> None:
        """Let the next requests whose path contains this text fail."""
        self._scripted.append(ScriptedFault(path, status, times, done))

    def clear(self) -> None:
        self._scripted.clear()
        self._limited_until = 0.0
        self._outage = None

    def before(self, request: Request) -> Response | None:
        """Return the reply of an outage or a rate limit, which replaces the request."""
        if self._outage is not None:
            return _page(self._outage)
        left = self._limited_until - time.monotonic()
        if left > 0:
            headers = {"Retry-After": str(int(left) + 1)}
            return JSONResponse({"message": "Too Many Requests", "error": 429}, 429, headers)
        return None

    def scripted(self, request: Request) -> ScriptedFault | None:
        """Return the fault of this request, and count it as used."""
        for fault in self._scripted:
            if fault.path in request.url.path:
                fault.times -= 1
                if not fault.times:
                    self._scripted.remove(fault)
                return fault
        return None

    async def reply(self, fault: ScriptedFault) -> Response:
        if fault.status is None:
            await asyncio.Event().wait()
        return _page(fault.status or 500)


def _page(status: int) -> Response:
    """Return an error page: HTML as of a proxy before Reddit, or JSON for the errors of Reddit itself."""
    if status in (403, 404):
        return JSONResponse(
            {"message": "Not Found" if status == 404 else "Forbidden", "error": status}, status
        )
    return HTMLResponse("<html><body>Our CDN was unable to reach our servers</body></html>", status)
