"""What can go wrong with the simulated Reddit, when a test says so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

__all__ = ["Faults", "Scripted"]


@dataclass
class Scripted:
    """A fault of some requests."""

    path: str
    status: int | None
    """None: the request is never answered."""
    times: int
    done: bool
    """Whether what was asked for is done all the same, and only the answer is lost."""


class Faults:
    """Outages, rate limits, and answers that are lost. None at first."""

    def __init__(self) -> None:
        self._outage: int | None = None
        self._limited_until = 0.0
        self._scripted: list[Scripted] = []

    @contextmanager
    def outage(self, status: int = 503) -> Iterator[None]:
        """Everything is answered with this status."""
        self._outage = status
        try:
            yield
        finally:
            self._outage = None

    def rate_limit(self, seconds: float) -> None:
        """429 for so long, with a Retry-After."""
        self._limited_until = time.monotonic() + seconds

    def fail(self, path: str, status: int | None = 500, *, times: int = 1, done: bool = False) -> None:
        """The next requests whose path holds this fail so."""
        self._scripted.append(Scripted(path, status, times, done))

    def clear(self) -> None:
        self._scripted.clear()
        self._limited_until = 0.0
        self._outage = None

    def before(self, request: Request) -> Response | None:
        """The answer to give instead of doing anything."""
        if self._outage is not None:
            return _page(self._outage)
        left = self._limited_until - time.monotonic()
        if left > 0:
            headers = {"Retry-After": str(int(left) + 1)}
            return JSONResponse({"message": "Too Many Requests", "error": 429}, 429, headers)
        return None

    def scripted(self, request: Request) -> Scripted | None:
        """The fault of this request, which is used up by it."""
        for fault in self._scripted:
            if fault.path in request.url.path:
                fault.times -= 1
                if not fault.times:
                    self._scripted.remove(fault)
                return fault
        return None

    async def answer(self, fault: Scripted) -> Response:
        if fault.status is None:
            await asyncio.Event().wait()
        return _page(fault.status or 500)


def _page(status: int) -> Response:
    """As the servers before Reddit answer: not in JSON. Those errors that are Reddit's own are."""
    if status in (403, 404):
        return JSONResponse(
            {"message": "Not Found" if status == 404 else "Forbidden", "error": status}, status
        )
    return HTMLResponse("<html><body>Our CDN was unable to reach our servers</body></html>", status)
