"""Rate limits by client address: a token bucket that a steady client never finds empty for good.

The registry's own script empties the bucket when it refuses, so a client that keeps asking is refused for
ever; and all its limiters share a bucket. Here a refused request costs nothing, time is the server's and
counted in fractions of a second, and every limiter but the default one has its name in the key.
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

__all__ = ["RateLimiter", "Verdict"]

TAKE_TOKEN = Script("keywright_registry", "take_token", Effect.ONCE)
IPV6_PREFIX = 64


class Verdict(msgspec.Struct, frozen=True):
    """Whether a request may pass, and what to tell its client."""

    allowed: bool
    remaining: int
    retry_after: timedelta
    """Until the next request may pass; nothing when one may right now."""
    reset_after: timedelta
    """Until the limit is back to where it began."""


class RateLimiter(msgspec.Struct, frozen=True):
    """At most `rate` requests in a `period` over time, and `burst` at once.

    The limiter without a name has the registry's published key, whose content it can share; every other one
    must have a name of its own. Calls raise when Redis is not there: the caller chooses whether to let pass.
    """

    rate: float
    period: timedelta
    burst: int
    name: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.rate < math.inf or self.period <= timedelta(0) or self.burst < 1:
            raise DeclarationError(
                "RateLimiter",
                f"{self.rate} in {self.period} with bursts of {self.burst} is no limit",
                "Give a rate and a period above 0, both finite, and a burst of 1 or more.",
            )

    def take(self, address: str) -> Call[Verdict]:
        """Count one request of a client. One script; a request that is refused takes no token."""
        return self._take(self.key(address))

    @procedure
    def _take(self, key: RateLimit | NamedRateLimit) -> Steps[Verdict]:
        flow = repr(self.rate), repr(self.period.total_seconds())
        context = yield bound_context()
        now = repr(context.now().timestamp()) if context.injected_clock else b""
        verdict: Verdict = yield TAKE_TOKEN.call([key], (self.burst, *flow, now), _verdict)
        return verdict

    def key(self, address: str) -> RateLimit | NamedRateLimit:
        """The bucket of a client: its address, or the /64 network of an IPv6 one, in base64."""
        encoded = base64.b64encode(_client(address).encode()).decode()
        return RateLimit(encoded) if self.name is None else NamedRateLimit(encoded, self.name)


def _client(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError as error:
        raise UsageError(f"{address!r} is no IP address. Pass the client's, without a port.") from error
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), IPV6_PREFIX), strict=False))


def _verdict(reply: list[int]) -> Verdict:
    taken, remaining, retry_ms, reset_ms = reply
    return Verdict(bool(taken), remaining, timedelta(milliseconds=retry_ms), timedelta(milliseconds=reset_ms))
