"""What Discord's REST API tells a gateway: where to connect, how many shards, how many may still identify."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from time import monotonic

import httpx
import msgspec

from keywright import Secret
from keywright.errors import KeywrightError
from keywright_discord.gateway.connection import RefusedByDiscordError

__all__ = ["DiscordApi", "GatewayInfo", "SessionStarts", "UnreachableApiError"]

log = logging.getLogger("keywright.gateway")

TIMEOUT_SECONDS = 10.0
ATTEMPTS = 8
LONGEST_PAUSE_SECONDS = 30.0
# How old a count of session starts may be before it is asked for again, and how many starts other processes
# may make of it meanwhile in each bucket of `max_concurrency`.
FRESH_SECONDS = 60.0
OTHERS_STARTS = 12


class UnreachableApiError(KeywrightError):
    """Discord's API did not answer as it should, many times."""

    exit_code = 3

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__(f"{url} does not answer: {reason}. Check the network and Discord's status.")


class SessionStartLimit(msgspec.Struct, frozen=True):
    total: int = 1000
    remaining: int = 1000
    reset_after: int = 0
    max_concurrency: int = 1


class GatewayInfo(msgspec.Struct, frozen=True):
    """The answer of GET /gateway/bot."""

    url: str
    shards: int = 1
    session_start_limit: SessionStartLimit = SessionStartLimit()


class DiscordApi:
    """The API as the bot sees it."""

    def __init__(self, url: str, token: Secret[str], *, attempts: int = ATTEMPTS) -> None:
        self._url = url
        self._token = token
        self._attempts = attempts

    async def gateway(self) -> GatewayInfo:
        """Where and how to connect. Raises RefusedByDiscordError for a wrong token, UnreachableApiError."""
        reason = ""
        async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS) as client:
            for attempt in range(self._attempts):
                try:
                    answer = await client.get(f"{self._url}/gateway/bot", headers=self._headers())
                    if info := self._info(answer):
                        return info
                    reason = f"status {answer.status_code}"
                    pause = _retry_after(answer)
                except (httpx.HTTPError, msgspec.MsgspecError) as error:
                    reason, pause = f"{type(error).__name__} {error}".strip(), None
                log.warning("Discord's API: %s", reason)
                if attempt < self._attempts - 1:
                    await asyncio.sleep(_backoff(attempt) if pause is None else pause)
        raise UnreachableApiError(self._url, reason)

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bot {self._token.reveal()}",
            "User-Agent": "DiscordBot (https://pypi.org/project/keywright, 0.1)",
        }

    def _info(self, answer: httpx.Response) -> GatewayInfo | None:
        """None where it is worth asking again."""
        status = answer.status_code
        if status == HTTPStatus.OK:
            return msgspec.json.decode(answer.content, type=GatewayInfo)
        if status == HTTPStatus.UNAUTHORIZED:
            raise RefusedByDiscordError(
                "the token", status, "it is not valid. Give the bot's token of the developer portal."
            )
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
            return None
        raise RefusedByDiscordError(
            "GET /gateway/bot", status, "it is not answered here. Check api.host and api.version."
        )


class SessionStarts:
    """How many sessions the bot may still start today. Starting more makes Discord reset the token."""

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
        """Count one start, and return 0; when none is left, in how many seconds to ask again.

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
            log.warning("going by the last known session starts: %s", error)
            return
        self._asked_at = self._clock()
        self._used = 0


def _retry_after(answer: httpx.Response) -> float | None:
    try:
        return min(LONGEST_PAUSE_SECONDS, max(0.0, float(answer.headers["Retry-After"])))
    except (KeyError, ValueError):
        return None


def _backoff(attempt: int) -> float:
    return min(LONGEST_PAUSE_SECONDS, 0.5 * 2.0**attempt) * (0.5 + random.random() / 2)
