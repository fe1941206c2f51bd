"""Answering HTTP requests in the event loop of the service."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from keywright.errors import UsageError
from keywright.tools.http import UvicornServer

__all__ = ["json_response", "refuse", "serving"]

log = logging.getLogger("keywright.service")

RETRY_SECONDS = "1"


@asynccontextmanager
async def serving(app: ASGIApp, bound: socket.socket) -> AsyncIterator[asyncio.Task[None]]:
    """Answer requests on a listening socket until the end of the block.

    Yield the task that does so; before the end of the block it is done only if it failed. At the end requests
    under way are answered, or cut off after 10 seconds.
    """
    server = UvicornServer(app)
    answering = asyncio.create_task(server.serve([bound]))
    try:
        yield answering
    finally:
        server.stop()
        await answering


def json_response(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(data), status, headers, media_type="application/json")


async def refuse(request: Request, error: Exception) -> Response:
    """Handle an exception of an application: register it for HTTPException and KeywrightError.

    The answer is JSON with `error`: that of an HTTPException, 400 for UsageError, 503 for any other. A 503
    names the class of the error only, because its reason may name servers; the reason is logged.
    """
    if isinstance(error, HTTPException):
        return json_response({"error": error.detail}, error.status_code, error.headers)
    if isinstance(error, UsageError):
        return json_response({"error": str(error)}, 400)
    log.warning("cannot serve: %s", error)
    reason = f"{type(error).__name__}: try again later"
    return json_response({"error": reason}, 503, {"Retry-After": RETRY_SECONDS})
