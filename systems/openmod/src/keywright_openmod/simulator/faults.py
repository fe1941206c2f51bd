"""Faults of the simulated Reddit that a test injects."""

from __future__ import annotations

import json
from typing import Any

from starlette.types import Receive, Scope, Send

from keywright_service.testing.http_faults import FaultyApp

__all__ = ["RedditFaults"]

# Reddit itself answers in JSON; other statuses come from the proxy in front of it, in HTML.
_MESSAGES = {403: "Forbidden", 404: "Not Found"}


class RedditFaults(FaultyApp):
    """Outages, rate limits and lost replies. None at first."""

    def fail(self, path: str, status: int | None = 500, **settings: Any) -> None:
        if status in _MESSAGES:
            settings["body"] = json.dumps({"message": _MESSAGES[status], "error": status})
            settings["headers"] = {"content-type": "application/json"}
        super().fail(path, status, **settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["path"] = scope["path"].rstrip("/") or "/"
        await super().__call__(scope, receive, send)
