"""The connection to Reddit: asyncpraw, used so that nothing is done twice and failures are distinguished.

A rate limit, an outage, a timeout and a malformed reply are PlatformTroubleError: nothing is known, retry. A
refusal that a retry does not change is PlatformRefusedError. Neither means that anything was deleted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import aiohttp
from asyncpraw import Reddit
from asyncpraw.exceptions import AsyncPRAWException, RedditAPIException
from asyncprawcore import Requestor
from asyncprawcore.exceptions import (
    AsyncPrawcoreException,
    OAuthException,
    RequestException,
    ResponseException,
    ServerError,
    TooManyRequests,
)

from keywright_openmod.service.credentials import Credentials
from keywright_service.errors import PlatformRefusedError, PlatformTroubleError

__all__ = ["RateLimitedError", "RedditConnection"]

REDDIT = "Reddit"
PATIENCE = timedelta(minutes=2)
_REFUSALS = {
    400: ("the request is invalid", "Report it as a bug."),
    401: ("the credentials are invalid", "Check the client id, its secret, the name and the password."),
    403: ("it is forbidden", "Make the account a moderator with the permissions, or an approved user."),
    404: ("it does not exist", "Check the name."),
}


class RateLimitedError(PlatformTroubleError):
    """Reddit rate-limits this program. No request is sent before the limit ends."""

    def __init__(self, asked: str, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(REDDIT, asked, f"a rate limit for another {seconds:.0f} s", retry_after=seconds)


class RedditConnection:
    """Opens asyncpraw, as `async with`. Send every request inside `asking`.

    No request takes longer than `patience`, though asyncpraw may wait ten minutes for a rate limit to end.
    """

    def __init__(self, credentials: Credentials, *, patience: timedelta = PATIENCE) -> None:
        self._patience = patience
        self._limited_until = 0.0
        self.reddit = Reddit(
            client_id=credentials.client_id,
            client_secret=credentials.client_secret.reveal(),
            username=credentials.username or None,
            password=credentials.password.reveal() if credentials.password else None,
            refresh_token=credentials.refresh_token.reveal() if credentials.refresh_token else None,
            user_agent=credentials.user_agent,
            reddit_url=credentials.url,
            oauth_url=credentials.oauth_url,
            check_for_updates=False,
            requestor_class=_NoRetries,
            requestor_kwargs={"patience_seconds": credentials.timeout_seconds},
        )

    async def __aenter__(self) -> RedditConnection:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.reddit.close()

    @asynccontextmanager
    async def asking(self, asked: str) -> AsyncIterator[None]:
        """Translate the errors of asyncpraw, and limit the time of a request."""
        left = self._limited_until - time.monotonic()
        if left > 0:
            raise RateLimitedError(asked, left)
        try:
            async with asyncio.timeout(self._patience.total_seconds()):
                yield
        except TooManyRequests as error:
            raise self._limited(asked, error.retry_after) from error
        except OAuthException as error:
            raise PlatformRefusedError(REDDIT, asked, str(error), _REFUSALS[401][1]) from error
        except ResponseException as error:
            raise _by_status(asked, error) from error
        except RedditAPIException as error:
            raise _by_code(asked, error) from error
        except (AsyncPrawcoreException, AsyncPRAWException) as error:
            raise PlatformTroubleError(REDDIT, asked, str(error)) from error
        except TimeoutError as error:
            raise PlatformTroubleError(REDDIT, asked, "no reply in time") from error
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            # This is how asyncpraw fails on a malformed reply.
            raise PlatformTroubleError(REDDIT, asked, f"a malformed reply ({error!r})") from error

    def _limited(self, asked: str, retry_after: str | None) -> RateLimitedError:
        seconds = float(retry_after or 1.0)  # asyncprawcore has checked that it is a number
        self._limited_until = max(self._limited_until, time.monotonic() + seconds)
        return RateLimitedError(asked, seconds)


def _by_status(asked: str, error: ResponseException) -> PlatformTroubleError | PlatformRefusedError:
    refusal = _REFUSALS.get(error.response.status)
    if refusal is None:
        return PlatformTroubleError(REDDIT, asked, f"status {error.response.status}")
    return PlatformRefusedError(REDDIT, asked, *refusal)


def _by_code(asked: str, error: RedditAPIException) -> PlatformTroubleError | PlatformRefusedError:
    codes = [item.error_type for item in error.items]
    if "RATELIMIT" in codes:
        return PlatformTroubleError(REDDIT, asked, str(error))
    return PlatformRefusedError(REDDIT, asked, ", ".join(codes), "Check the settings of the subreddit.")


class _UnansweredError(AsyncPrawcoreException):
    """No reply to a request, which may have been performed."""


class _NoRetries(Requestor):
    """Keeps asyncprawcore from retrying: a submission that succeeded would be repeated.

    The service retries, after it has searched for the post.
    """

    def __init__(self, *, patience_seconds: float, **given: Any) -> None:
        super().__init__(**given)
        self._patience = patience_seconds

    @asynccontextmanager
    async def request(self, *args: Any, **kwargs: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with super().request(*args, **kwargs | {"timeout": self._patience}) as response:
                if response.status >= 500 or response.status == 408:
                    raise ServerError(response)
                yield response
        except RequestException as error:
            raise _UnansweredError(str(error)) from error
