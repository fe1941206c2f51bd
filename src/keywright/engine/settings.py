"""Settings of an open database: timeouts, retries, bounds, durability."""

from __future__ import annotations

from typing import NamedTuple

from keywright.engine.packed_commands import pack_command
from keywright.engine.retry import Retry


class Durability(NamedTuple):
    """The number of replicas that must confirm each write before it counts as done (WAIT)."""

    replicas: int
    within_ms: int = 1000

    @property
    def command(self) -> bytes:
        """Return the packed WAIT command."""
        return pack_command((b"WAIT", self.replicas, self.within_ms))


class Caching(NamedTuple):
    """Bounds on the replies that a database keeps of classes declared or bound with `cached=`.

    `silence_seconds` is how long replies are served without a sign of life on the connection that reports
    changes, so it bounds the age of a stale reply when that connection dies without notice.
    `longest_seconds` bounds the age of every reply, whatever the server reports.
    """

    most_bytes: int = 64 * 1024 * 1024
    most_entries: int = 100_000
    longest_seconds: float = 300.0
    silence_seconds: float = 3.0


class Settings(NamedTuple):
    """Timeouts, retries and bounds.

    `timeout_seconds` is the time of one round trip in all: connections, attempts and the reply. Blocking
    commands and `durability` add their own waits, and a batch that is sent in parts has it for each part.
    `connect_seconds` bounds one attempt to connect. With `read_only` calls that may write are refused before
    anything is sent; so are reads that renew an expiry.
    `caching=None` caches nothing, whatever is declared.
    """

    timeout_seconds: float = 5.0
    connect_seconds: float = 2.0
    retry: Retry = Retry()
    most_connections: int = 64
    most_bytes_in_flight: int = 64 * 1024 * 1024
    most_calls_in_flight: int = 100_000
    durability: Durability | None = None
    read_only: bool = False
    caching: Caching | None = Caching()
