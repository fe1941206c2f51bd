"""Asking an HTTP API through trouble: what is worth a repeat, and after which pause."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Awaitable, Callable
from functools import cache
from http import HTTPStatus
from types import TracebackType
from typing import Self, TypedDict

import httpx

__all__ = [
    "LONGEST_WAIT_SECONDS",
    "HttpApi",
    "Manner",
    "Sleep",
    "backoff",
    "described",
    "never_sent",
    "worth_repeating",
]

Sleep = Callable[[float], Awaitable[None]]

ATTEMPTS = 5
TIMEOUT_SECONDS = 20.0
# A limit that lasts longer ends the call: the next run of the task comes soon enough.
LONGEST_WAIT_SECONDS = 60.0


class Manner(TypedDict, total=False):
    """How a client of an API asks, where that is not as usual."""

    timeout: float
    attempts: int
    sleep: Sleep
    transport: httpx.AsyncBaseTransport


class HttpApi:
    """What clients of an HTTP API share. `async with` them."""

    def __init__(
        self,
        *,
        timeout: float = TIMEOUT_SECONDS,
        attempts: int = ATTEMPTS,
        sleep: Sleep = asyncio.sleep,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._attempts = attempts
        self._sleep = sleep
        self._client = httpx.AsyncClient(timeout=timeout, transport=transport, verify=_tls())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()


@cache
def _tls() -> ssl.SSLContext:
    """One for all clients: reading the certificates takes longer than many a request."""
    return httpx.create_ssl_context()


def backoff(attempt: int) -> float:
    """Seconds to wait after this many failures, half of it at random."""
    return float(min(LONGEST_WAIT_SECONDS, 0.25 * 2.0**attempt) * (0.5 + random.random() / 2))


def worth_repeating(status: int) -> bool:
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.REQUEST_TIMEOUT


def never_sent(error: httpx.HTTPError) -> bool:
    """Whether the request cannot have arrived, so that nothing can have come of it."""
    return isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def described(error: httpx.HTTPError) -> str:
    return f"{type(error).__name__} {error}".strip()
