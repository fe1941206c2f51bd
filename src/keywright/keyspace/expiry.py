"""When keys expire: after a time, with jitter, renewed on read, or at a moment."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from keywright.errors import DeclarationError

if TYPE_CHECKING:
    from keywright.keyspace.context import Context

Moment = datetime | Callable[[Any], datetime | None]


class Expiry:
    """How long a key lives; renewed by every write, and by every read when it slides."""

    __slots__ = ("jitter", "moment", "sliding", "ttl_ms")

    def __init__(
        self, ttl_ms: int | None, *, jitter: float = 0.0, sliding: bool = False, moment: Moment | None = None
    ) -> None:
        self.ttl_ms = ttl_ms
        self.jitter = jitter
        self.sliding = sliding
        self.moment = moment

    def resolved(self, value: object) -> Expiry | None:
        """Return this expiry for one value, with a moment that depends on the value resolved."""
        if self.moment is None or isinstance(self.moment, datetime):
            return self
        moment = self.moment(value)
        return None if moment is None else Expiry(None, moment=moment)

    def arguments(self, context: Context) -> tuple[bytes, int]:
        """Return the expiry option of SET and GETEX."""
        if self.ttl_ms is not None:
            return b"PX", self._drawn(context)
        return b"PXAT", self._moment_ms()

    def command(self, name: bytes, context: Context) -> tuple[bytes, bytes, int]:
        """Return the command that gives a key this expiry."""
        if self.ttl_ms is not None:
            return b"PEXPIRE", name, self._drawn(context)
        return b"PEXPIREAT", name, self._moment_ms()

    def _drawn(self, context: Context) -> int:
        assert self.ttl_ms is not None
        if not self.jitter:
            return self.ttl_ms
        spread = self.ttl_ms * self.jitter
        return max(1, round(self.ttl_ms + context.random.uniform(-spread, spread)))

    def _moment_ms(self) -> int:
        if not isinstance(self.moment, datetime):
            raise DeclarationError(
                "expires_at(function)",
                "the moment depends on the value, so it is only known for writes of whole values",
                "Give this write an expiry of its own.",
            )
        return round(self.moment.timestamp() * 1000)

    @property
    def longest_ms(self) -> int | None:
        """The longest time to live, or None if it depends on the value."""
        return None if self.ttl_ms is None else round(self.ttl_ms * (1 + self.jitter))

    def describe(self) -> str:
        if self.ttl_ms is None:
            when = self.moment.isoformat() if isinstance(self.moment, datetime) else "a moment in the value"
            return f"at {when}"
        words = [f"{self.ttl_ms / 1000:g} s"]
        if self.jitter:
            words.append(f"± {self.jitter:.0%}")
        if self.sliding:
            words.append("after the last read or write")
        return " ".join(words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expiry) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return f"Expiry({self.describe()})"

    def _fields(self) -> tuple[object, ...]:
        return self.ttl_ms, self.jitter, self.sliding, self.moment


def expires_in(ttl: timedelta, *, jitter: float = 0.0, sliding: bool = False) -> Expiry:
    """Expire this long after the last write, or the last read too when `sliding`.

    `jitter` spreads the time by that share either way (0.1 is ±10 %), so that keys written together
    do not expire together.
    """
    milliseconds = round(ttl / timedelta(milliseconds=1))
    if milliseconds < 1:
        raise DeclarationError("expires_in", f"{ttl} is not a time that can pass", "Give at least 1 ms.")
    if not 0 <= jitter < 1:
        raise DeclarationError("expires_in", f"a jitter of {jitter} is not a share", "Give 0 ≤ jitter < 1.")
    return Expiry(milliseconds, jitter=jitter, sliding=sliding)


def expires_at(moment: Moment) -> Expiry:
    """Expire at a moment: an aware datetime, or a function from the written value to one (or None)."""
    if isinstance(moment, datetime) and moment.tzinfo is None:
        raise DeclarationError("expires_at", f"{moment} has no time zone", "Give an aware datetime.")
    return Expiry(None, moment=moment)
