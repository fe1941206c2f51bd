"""When keys expire: a time after the first write, the last write or the last use, at a moment, or some do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

from keywright.errors import DeclarationError
from keywright.keyspace.misuse import explained
from keywright.keyspace.script import Script

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.wires import Arguments

Moment = datetime | Callable[[Any], datetime | None]
TimeToLive = timedelta | Callable[[Any], timedelta | None]
Since = Literal["first write", "last write", "last use"]
"""The event that the time counts from; a use is a read or a write."""

# PEXPIRE … NX is Redis 7.0. `commits` knows this script: a commit is one already, and cannot run another.
EXPIRE_ONCE = Script("keywright.keyspace", "expire_once")


class Expiry:
    """How long a key lives, and since when."""

    __slots__ = ("by_kind", "jitter", "moment", "optional", "since", "ttl_ms", "ttl_of")

    def __init__(
        self,
        ttl_ms: int | None,
        *,
        jitter: float = 0.0,
        since: Since = "last write",
        moment: Moment | None = None,
        ttl_of: Callable[[Any], timedelta | None] | None = None,
        optional: bool = False,
    ) -> None:
        self.ttl_ms = ttl_ms
        self.jitter = jitter
        self.since: Since = since
        self.moment = moment
        self.ttl_of = ttl_of
        self.optional = optional
        self.by_kind = ttl_of is None and not optional  # a write gives it to every key of a class alike

    @property
    def sliding(self) -> bool:
        """Whether reads renew it."""
        return self.since == "last use"

    @property
    def uniform(self) -> bool:
        """Whether all keys that are written together expire at the same time."""
        return not self.jitter and not callable(self.moment) and self.ttl_of is None

    def of_key(self, key: object) -> Expiry | None:
        """Return the expiry that a write gives to a key: its own, or none where only some keys expire."""
        if self.optional:
            return None
        if self.ttl_of is None:
            return self
        ttl = self.ttl_of(key)
        return None if ttl is None else Expiry(_milliseconds(ttl), jitter=self.jitter, since=self.since)

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

    def command(self, name: bytes, context: Context) -> Arguments:
        """Return the command that follows a write in its transaction, and gives the key this expiry."""
        if self.ttl_ms is None:
            return b"PEXPIREAT", name, self._moment_ms()
        if self.since == "first write":
            return b"EVAL", EXPIRE_ONCE.source, 1, name, self._drawn(context)
        return b"PEXPIRE", name, self._drawn(context)

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
        """The longest time to live; None if it depends on the value or on the key, or has no bound."""
        return None if self.ttl_ms is None else round(self.ttl_ms * (1 + self.jitter))

    def describe(self) -> str:
        """Return the expiry in words, as documents show it."""
        if self.optional:
            return "some expire" + (f", within {self.ttl_ms / 1000:g} s" if self.ttl_ms is not None else "")
        if self.ttl_of is not None:
            return f"a time that follows from the key, after the {self.since}"
        if self.ttl_ms is None:
            when = self.moment.isoformat() if isinstance(self.moment, datetime) else "a moment in the value"
            return f"at {when}"
        words = [f"{self.ttl_ms / 1000:g} s"]
        if self.jitter:
            words.append(f"± {self.jitter:.0%}")
        if self.since != "last write":
            words.append(f"after the {self.since}")
        return " ".join(words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expiry) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return f"Expiry({self.describe()})"

    def _fields(self) -> tuple[object, ...]:
        return self.ttl_ms, self.jitter, self.since, self.moment, self.ttl_of, self.optional


def _milliseconds(ttl: timedelta) -> int:
    milliseconds = round(ttl / timedelta(milliseconds=1))
    if milliseconds < 1:
        raise DeclarationError("expires_in", f"{ttl} is not a time that can pass", "Give at least 1 ms.")
    return milliseconds


@explained
def expires_in(ttl: TimeToLive, *, jitter: float = 0.0, since: Since = "last write") -> Expiry:
    """Expire this long after the first write, the last write, or the last use, which may be a read.

    Since the first write, the time is fixed: `Counter.add`, `Set.add`, `List.push`, `Record.update` and other
    changes of a key leave the expiry that it has, so a counter is a window of that length. `set`, `put` and
    `replace` write the whole value: they make the key again, and the time starts again.

    `ttl` may be a function from the key to a time (or None), where the name of the key says how long it
    lives: `expires_in(lambda key: timedelta(seconds=key.window))`. It cannot count since the last use.

    `jitter` spreads the time by that share either way (0.1 is ±10 %), so that keys written together
    do not expire together.
    """
    milliseconds = None if callable(ttl) else _milliseconds(ttl)
    if not 0 <= jitter < 1:
        raise DeclarationError("expires_in", f"a jitter of {jitter} is not a share", "Give 0 ≤ jitter < 1.")
    if since not in get_args(Since):
        choices = ", ".join(map(repr, get_args(Since)))
        raise DeclarationError("expires_in", f"a time cannot count since {since!r}", f"Use one of {choices}.")
    if callable(ttl) and since == "last use":
        raise DeclarationError(
            "expires_in",
            "a time that follows from the key cannot count since the last use",
            "Use since='first write' or since='last write'.",
        )
    return Expiry(milliseconds, jitter=jitter, since=since, ttl_of=ttl if callable(ttl) else None)


@explained
def may_expire(*, within: timedelta | None = None) -> Expiry:
    """Declare that some keys expire and others do not, as their writers decide with `expire`.

    Writes give no expiry, unless they are passed one. The audit accepts keys with and without; with `within`
    it reports those that expire later.
    """
    return Expiry(None if within is None else _milliseconds(within), optional=True)


@explained
def expires_at(moment: Moment) -> Expiry:
    """Expire at a moment: an aware datetime, or a function from the written value to one (or None)."""
    if isinstance(moment, datetime) and moment.tzinfo is None:
        raise DeclarationError("expires_at", f"{moment} has no time zone", "Give an aware datetime.")
    return Expiry(None, moment=moment)
