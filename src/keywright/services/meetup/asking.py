"""Asking an HTTP API through trouble: what is worth a repeat, and after which pause."""

from __future__ import annotations

import random
import ssl
from functools import cache
from http import HTTPStatus

import httpx

__all__ = [
    "ATTEMPTS",
    "LONGEST_WAIT_SECONDS",
    "TIMEOUT_SECONDS",
    "backoff",
    "described",
    "never_sent",
    "tls",
    "worth_repeating",
]

ATTEMPTS = 5
TIMEOUT_SECONDS = 20.0
# A limit that lasts longer ends the call: the next run of the task comes soon enough.
LONGEST_WAIT_SECONDS = 60.0


@cache
def tls() -> ssl.SSLContext:
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
