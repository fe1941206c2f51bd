"""Clients of HTTP APIs: one connection pool, a bounded number of attempts, back-off between them."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from functools import cache
from http import HTTPStatus
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

import httpx
import msgspec

from keywright_service.backoff import Backoff, Sleep
from keywright_service.errors import PlatformTroubleError

__all__ = [
    "DEFAULTS",
    "LONGEST_WAIT_SECONDS",
    "MALFORMED",
    "Again",
    "ClientOptions",
    "HttpClient",
    "is_worth_repeating",
    "retry_after",
]

T = TypeVar("T")

log = logging.getLogger("keywright.service")

# A rate limit that lasts longer ends the call: the next run of the task comes soon enough.
LONGEST_WAIT_SECONDS = 60.0
# What msgspec raises for an answer that is not as expected, not UTF-8, or nested too deep.
MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class ClientOptions(NamedTuple):
    """How an API is asked."""

    timeout_seconds: float = 20.0
    attempts: int = 5
    backoff: Backoff = Backoff(0.25, LONGEST_WAIT_SECONDS)
    sleep: Sleep = asyncio.sleep
    transport: httpx.AsyncBaseTransport | None = None


DEFAULTS = ClientOptions()


class Again(NamedTuple):
    """A reason for another attempt, unless what was asked may be done and must not be done twice."""

    reason: str
    maybe_done: bool
    after: float | None = None
    """Seconds to wait. None: as the back-off says."""


class HttpClient:
    """A client of one platform's API. `async with` it."""

    def __init__(self, platform: str, options: ClientOptions = DEFAULTS) -> None:
        self.platform = platform
        self._options = options
        self._client = httpx.AsyncClient(
            timeout=options.timeout_seconds, transport=options.transport, verify=_tls()
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def _ask(
        self, asked: str, attempt: Callable[[], Awaitable[T | Again]], *, repeatable: bool = True
    ) -> T:
        """Return the result of the first attempt that is not to be made again.

        Errors of the connection are repeated as well. Raise PlatformTroubleError after the last attempt, and
        at once for what is not `repeatable` and may have been done though no answer came.
        """
        again = Again("it was not asked", maybe_done=False)
        for number in range(1, self._options.attempts + 1):
            try:
                got = await attempt()
            except httpx.HTTPError as error:
                # These cannot have sent anything.
                unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
                got = Again(f"{type(error).__name__} {error}".strip(), maybe_done=not unsent)
            if not isinstance(got, Again):
                return got
            again = got
            log.warning("%s's API: %s", self.platform, again.reason)
            if again.maybe_done and not repeatable:
                break
            if number < self._options.attempts:
                pause = self._options.backoff.pause(number) if again.after is None else again.after
                await self._options.sleep(min(pause, LONGEST_WAIT_SECONDS))
        raise PlatformTroubleError(self.platform, asked, again.reason)


def is_worth_repeating(status: int) -> bool:
    """Return whether a status means that the server failed, or gave up waiting."""
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.REQUEST_TIMEOUT


def retry_after(answer: httpx.Response) -> float | None:
    """Return the seconds of a Retry-After header, if it has a number."""
    try:
        return max(0.0, float(answer.headers["Retry-After"]))
    except (KeyError, ValueError):
        return None


@cache
def _tls() -> ssl.SSLContext:
    """One for all clients: reading the certificates takes longer than many a request."""
    return httpx.create_ssl_context()
