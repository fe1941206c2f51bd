"""Pages first: an audit, or the plan of a repair, pauses while a request is answered.

A walk has a thread of its own, but shares the interpreter and the server with the pages.
"""

from __future__ import annotations

import asyncio
import time

from starlette.types import ASGIApp, Receive, Scope, Send

from keywright.tools.pace import GENTLE, Pacemaker

__all__ = ["CountedRequests", "Requests", "YieldingPacemaker"]

LONGEST_PAUSE_SECONDS = 0.05
"""So long a page of names waits for requests: an export of minutes must not stop an audit."""
LOOK_SECONDS = 0.004


class Requests:
    """The number of requests that are being answered."""

    def __init__(self) -> None:
        self.open = 0


class CountedRequests:
    """Middleware that counts the requests which are being answered."""

    def __init__(self, app: ASGIApp, requests: Requests) -> None:
        self.app = app
        self.requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        self.requests.open += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.requests.open -= 1


class YieldingPacemaker(Pacemaker):
    """The pacemaker of a walk that lets requests pass."""

    def __init__(self, requests: Requests) -> None:
        super().__init__(GENTLE)
        self._requests = requests

    async def wait(self, count: int) -> None:
        """Wait until the rate allows `count` more, then for the requests, up to a limit."""
        await super().wait(count)
        until = time.monotonic() + LONGEST_PAUSE_SECONDS
        # An event cannot be awaited: requests are counted in another thread.
        while self._requests.open and time.monotonic() < until:  # noqa: ASYNC110  # see above
            await asyncio.sleep(LOOK_SECONDS)
