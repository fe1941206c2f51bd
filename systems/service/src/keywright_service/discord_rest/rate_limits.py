"""Discord's rate limits, as its answers report them: for each bucket and top-level resource, and for all.

Requests of one bucket are made one after the other, because each answer says whether there may be another.
The bucket of a route is learned from its first answer; until then the route is a bucket of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic

from keywright_service.backoff import Sleep
from keywright_service.errors import PlatformTroubleError
from keywright_service.http_client import LONGEST_WAIT_SECONDS

__all__ = ["RateLimits", "Route"]


@dataclass(frozen=True)
class Route:
    """A kind of request, and the channel or guild that it is about."""

    method: str
    template: str
    resource: str = ""


@dataclass
class _Bucket:
    left: int = 1
    resets_at: float = 0.0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class RateLimits:
    """`async with limits.turn(route):` waits until a request may be sent; `note` the headers of its answer.

    Raise PlatformTroubleError instead of waiting for more than a minute.
    """

    def __init__(self, *, clock: Callable[[], float] = monotonic, sleep: Sleep = asyncio.sleep) -> None:
        self._clock = clock
        self._sleep = sleep
        self._names: dict[tuple[str, str], str] = {}
        self._buckets: dict[tuple[str, str], _Bucket] = {}
        self._all_until = 0.0

    @asynccontextmanager
    async def turn(self, route: Route) -> AsyncIterator[None]:
        while True:
            bucket = self._bucket(route)
            async with bucket.turn:
                if bucket is not self._bucket(route):
                    continue  # while this one waited, an answer named the true bucket
                await self._until_free(bucket, route)
                if bucket.resets_at <= self._clock():
                    bucket.left = 1  # a new window: at least this one request is allowed
                bucket.left -= 1
                yield
                return

    async def _until_free(self, bucket: _Bucket, route: Route) -> None:
        while (wait := self._wait(bucket)) > 0:
            if wait > LONGEST_WAIT_SECONDS:
                asked = f"{route.method} {route.template}"
                raise PlatformTroubleError("Discord", asked, f"a rate limit for {wait:.0f} s")
            await self._sleep(wait)

    def note(self, route: Route, headers: Mapping[str, str]) -> None:
        """Learn from the headers of any answer."""
        name = headers.get("X-RateLimit-Bucket")
        if name is None:
            return
        self._names[route.method, route.template] = name
        bucket = self._bucket(route)
        try:
            left = int(headers["X-RateLimit-Remaining"])
            after = float(headers["X-RateLimit-Reset-After"])
        except (KeyError, ValueError):
            return
        bucket.left, bucket.resets_at = left, self._clock() + after

    def refused(self, route: Route, seconds: float, *, everything: bool) -> None:
        """Note an answer of 429: send nothing of this bucket, or nothing at all, for so long."""
        until = self._clock() + seconds
        if everything:
            self._all_until = max(self._all_until, until)
        else:
            bucket = self._bucket(route)
            bucket.left, bucket.resets_at = 0, until

    def _bucket(self, route: Route) -> _Bucket:
        name = self._names.get((route.method, route.template), f"{route.method} {route.template}")
        return self._buckets.setdefault((name, route.resource), _Bucket())

    def _wait(self, bucket: _Bucket) -> float:
        now = self._clock()
        of_bucket = bucket.resets_at - now if bucket.left < 1 else 0.0
        return max(of_bucket, self._all_until - now)
