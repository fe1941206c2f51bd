"""The gateway URL, and the session starts that a bot has left, from Discord's REST API."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from time import monotonic

from keywright.errors import KeywrightError
from keywright_discord.gateway.connection import RefusedByDiscordError
from keywright_service.backoff import Backoff
from keywright_service.discord_rest import DiscordRest, GatewayInfo
from keywright_service.errors import HttpRefusedError, PlatformTroubleError
from keywright_service.http_client import ClientOptions

__all__ = ["OPTIONS", "SessionStarts", "UnreachableApiError", "ask_gateway"]

log = logging.getLogger("keywright.gateway")

OPTIONS = ClientOptions(timeout_seconds=10.0, attempts=8, backoff=Backoff(0.5, 30.0))
# How old a count of session starts may be before it is asked for again, and how many starts other processes
# may make of it meanwhile in each bucket of `max_concurrency`.
FRESH_SECONDS = 60.0
OTHERS_STARTS = 12


class UnreachableApiError(KeywrightError):
    """Discord's API failed at every attempt."""

    exit_code = 3

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__(f"{url} does not answer: {reason}. Check the network and Discord's status.")


async def ask_gateway(api: DiscordRest) -> GatewayInfo:
    """Return the gateway URL and the session limits.

    Raise RefusedByDiscordError for an invalid token, UnreachableApiError after the last attempt.
    """
    try:
        return await api.gateway()
    except PlatformTroubleError as error:
        raise UnreachableApiError(api.url, error.reason) from error
    except HttpRefusedError as error:
        if error.status == HTTPStatus.UNAUTHORIZED:
            raise RefusedByDiscordError(
                "the token", error.status, "it is not valid. Give the bot's token of the developer portal."
            ) from error
        raise RefusedByDiscordError(
            "GET /gateway/bot", error.status, "it is not answered here. Check api.host and api.version."
        ) from error


class SessionStarts:
    """The session starts that the bot has left today. If it starts more, Discord resets the token."""

    def __init__(
        self,
        ask: Callable[[], Awaitable[GatewayInfo]],
        info: GatewayInfo,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._ask = ask
        self._limit = info.session_start_limit
        self._clock = clock
        self._asked_at = clock()
        self._used = 0
        self._turn = asyncio.Lock()

    async def spend(self) -> float:
        """Count one start and return 0; if none is left, return in how many seconds to ask again.

        Each bucket of `max_concurrency` may be starting one that Discord has not counted yet, so as many
        must be left.
        """
        async with self._turn:
            if self._is_doubtful():
                await self._refresh()
            if self._left >= self._buckets:
                self._used += 1
                return 0.0
        wait = max(1.0, self._limit.reset_after / 1000)
        log.error("no session may be started for %.0f s: Discord's daily limit is used up", wait)
        return wait

    @property
    def _left(self) -> int:
        return self._limit.remaining - self._used

    @property
    def _buckets(self) -> int:
        return max(1, self._limit.max_concurrency)

    def _is_doubtful(self) -> bool:
        old = self._clock() - self._asked_at > FRESH_SECONDS
        return old or self._left < self._buckets * (1 + OTHERS_STARTS)

    async def _refresh(self) -> None:
        try:
            self._limit = (await self._ask()).session_start_limit
        except UnreachableApiError as error:
            log.warning("using the last known number of session starts: %s", error)
            return
        self._asked_at = self._clock()
        self._used = 0
