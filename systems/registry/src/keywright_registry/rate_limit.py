"""Rate limits by client address, as token buckets.

The registry's script empties the bucket when it refuses a request, so a client that keeps asking is refused
forever, and all its limiters share one bucket (docs/resolutions.md#mistake-1). Here a refused request takes
nothing, the clock is that of the server with fractions of a second, and each limiter but the default one has
its name in the key.
"""

from __future__ import annotations

import base64
import ipaddress
import math
from datetime import timedelta

import msgspec

from keywright import Call
from keywright.errors import DeclarationError, UsageError
from keywright.operations import Effect, Script, Steps, bound_context, procedure
from keywright_registry.schema import NamedRateLimit, RateLimit

__all__ = ["RateLimitDecision", "RateLimiter"]

TAKE_TOKEN = Script("keywright_registry", "take_token", Effect.ONCE)
IPV6_PREFIX = 64


class RateLimitDecision(msgspec.Struct, frozen=True):
    """Whether a request is allowed, and the values for the headers of its response."""

    allowed: bool
    remaining: int
    retry_after: timedelta
    """The time until the next request is allowed; zero if one is allowed now."""
    reset_after: timedelta
    """The time until the bucket is full again."""


class RateLimiter(msgspec.Struct, frozen=True):
    """At most `rate` requests in a `period` on average, and `burst` at once.

    The limiter without a name has the registry's published key and can share its content; give every other
    limiter a name. Calls raise EngineError if Redis does not answer: the caller decides whether to allow.
    """

    rate: float
    period: timedelta
    burst: int
    name: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.rate < math.inf or self.period <= timedelta(0) or self.burst < 1:
            raise DeclarationError(
                "RateLimiter",
                f"{self.rate} in {self.period} with bursts of {self.burst} is not a rate limit",
                "Give a rate and a period above 0, both finite, and a burst of 1 or more.",
            )

    def take(self, address: str) -> Call[RateLimitDecision]:
        """Take a token for one request of a client. One script; a refused request takes none."""
        return self._take(self.key(address))

    @procedure
    def _take(self, key: RateLimit | NamedRateLimit) -> Steps[RateLimitDecision]:
        flow = repr(self.rate), repr(self.period.total_seconds())
        context = yield bound_context()
        now = repr(context.now().timestamp()) if context.injected_clock else b""
        decision: RateLimitDecision = yield TAKE_TOKEN.call([key], (self.burst, *flow, now), _decision)
        return decision

    def key(self, address: str) -> RateLimit | NamedRateLimit:
        """Return the bucket of a client: its address, or the /64 network of an IPv6 address, in base64."""
        encoded = base64.b64encode(_client(address).encode()).decode()
        return RateLimit(encoded) if self.name is None else NamedRateLimit(encoded, self.name)


def _client(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError as error:
        raise UsageError(
            f"{address!r} is not an IP address. Pass the address of the client, without a port."
        ) from error
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), IPV6_PREFIX), strict=False))


def _decision(reply: list[int]) -> RateLimitDecision:
    taken, remaining, retry_ms, reset_ms = reply
    return RateLimitDecision(
        bool(taken), remaining, timedelta(milliseconds=retry_ms), timedelta(milliseconds=reset_ms)
    )
